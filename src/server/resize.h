/* server/resize: changes the number of boss and worker threads while clients are served. */
#ifndef SERVER_RESIZE_H
#define SERVER_RESIZE_H

#include "base/must.h"
#include "server/threads.h"

struct descriptor_budget;
struct session_spread;
struct spares;
struct workers;

struct resize {
    struct threads *threads;
    struct workers *workers;
    struct spares *spares;
    struct descriptor_budget *descriptors;
    struct session_spread *spread;
    struct threads_change change; /* set by resize_prepare() */
};

/*
 * resize_prepare(r, boss, workers) / resize_commit(r) / resize_cancel(r):
 * Create what more threads need / use the new numbers / undo the prepare. Surplus threads are
 * parked: they get no new ones; surplus workers hand over their sessions (sessions/session_spread).
 *
 * Thread: control loop
 * Units:  as threads_prepare()
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int resize_prepare(struct resize *r, unsigned boss, unsigned workers) NODISCARD;
void resize_commit(const struct resize *r);
void resize_cancel(const struct resize *r);

#endif
