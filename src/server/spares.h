/*
 * server/spares: which workers keep spare connections to the servers of which upstreams.
 */
#ifndef SERVER_SPARES_H
#define SERVER_SPARES_H

#include "base/must.h"

struct server_conf;
struct spares;
struct upstream;
struct worker;

struct spares_conf {
    const struct server_conf
        *server;                 /* an upstream that none of its listeners leads to is not used */
    struct upstream **upstreams; /* in the order of ${server} */
    struct worker **workers;
    unsigned n_workers;
};

/*
 * spares_create(out, conf):
 * A pool for each worker, if any upstream is to have spares; none is opened yet.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; ${conf} is not kept, what it points at is borrowed
 * Errors: 0; -ENOMEM
 */
int spares_create(struct spares **out, const struct spares_conf *conf) MUST_CHECK;

/*
 * spares_look(s):
 * Have every pool open what it is to keep, and close what others need. This starts the threads of the workers, if there
 * are any pools.
 *
 * Thread: any
 * Errors: none
 */
void spares_look(const struct spares *s);

/*
 * spares_destroy(s):
 * Free it; NULL is allowed.
 *
 * Thread: main, after the workers have ended or were never started
 * Errors: none
 */
void spares_destroy(struct spares *s);

#endif
