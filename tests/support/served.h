/*
 * support/served: listeners with bosses, workers and a control loop, in place of a server; their
 * clients are echoed.
 *
 * One at a time. All listeners answer by `served.listeners[i]`, which a test changes before
 * served_change().
 */
#ifndef SUPPORT_SERVED_H
#define SUPPORT_SERVED_H

#include <stdatomic.h>

#include "limits/connection_limit.h"
#include "listen/listeners.h"
#include "net/descriptor_budget.h"
#include "server/server_conf.h"

#define SERVED_LISTENERS 3
#define SERVED_WORKERS   2
#define SERVED_LOGS      2

struct served {
    struct loop_group *boss, *workers;
    struct loop *control;
    struct worker *worker_list[SERVED_WORKERS];
    struct connection_limit connection_limit;
    struct descriptor_budget descriptors;
    struct listeners *all;
    struct carry_over *carry_over;
    struct listeners_change *change;
    struct server_conf conf;
    struct listener_conf listeners[SERVED_LISTENERS]; /* front, other, third */
    struct address addresses[SERVED_LISTENERS];       /* one of each, at first */
    int holders[SERVED_LISTENERS];                    /* of the addresses' ports */
    struct access_log *logs[SERVED_LOGS];             /* at `0` and `1` */
    /* Of the configuration's upstreams; to be called when no session is left. NULL: none. */
    struct upstream *(*find_upstream)(void *cookie, const char *name);
    void (*before_loops_go)(void);
    atomic_uint opened, stopped, accepted, ended;
    atomic_uint accepted_by[SERVED_LISTENERS];
    atomic_bool draining;
    unsigned before; /* descriptors */
};

extern struct served served;

/*
 * served_enter() / served_leave():
 * Checked fixtures: loops without threads and a set without listeners, one listener in the
 * configuration; end all, and see that no descriptor is left.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void served_enter(void);
void served_leave(void);

/*
 * served_start(n):
 * Begin to serve the first ${n} listeners.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void served_start(unsigned n);

/*
 * served_prepare(n) / served_commit() / served_cancel():
 * As listeners_prepare() for the first ${n} listeners, and so on, on the control loop.
 *
 * Thread: the test's
 * Errors: as listeners_prepare()
 */
int served_prepare(unsigned n);
void served_commit(void);
void served_cancel(void);

/*
 * served_change(n):
 * Prepare and commit.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void served_change(unsigned n);

/*
 * served_client(i) / served_refused(i):
 * A client of address ${i} that was echoed; is one refused?
 *
 * Thread: the test's
 * Owns:   the caller owns the descriptor
 * Errors: the test fails
 */
int served_client(unsigned i);
bool served_refused(unsigned i);

/*
 * served_log(i):
 * Let listener 0 use log ${i}, which tells whether the generation that began with it is still
 * there (access_log_used()).
 *
 * Thread: the test's
 */
void served_log(unsigned i);

#endif
