/*
 * upstream/upstream_state: counters and health of an upstream and its servers, for the process that
 * replaces this one.
 *
 *   upstream NAME KEY=VALUE ...
 *   server UPSTREAM/NAME down=yes KEY=VALUE ...
 *
 * The state of a server whose name is not resolved yet is kept until the name is resolved.
 */
#ifndef UPSTREAM_UPSTREAM_STATE_H
#define UPSTREAM_UPSTREAM_STATE_H

#include <stdio.h>

#include "base/list.h"
#include "base/must.h"

struct upstream;
struct upstream_server;

/*
 * Used by the control loop, or main before start. A search begins behind the server found last,
 * because reports keep the order of servers.
 */
struct upstream_state {
    unsigned next;        /* in the server set */
    struct list expected; /* state of unresolved servers, at most BALANCER_MAX_ENDPOINTS */
    unsigned n_expected;
    struct list *last; /* entry of `expected` found last, or the head of that list */
};

/*
 * upstream_state_init(st) / upstream_state_close(st):
 * Initialize ${st} / free the state of unresolved servers.
 *
 * Thread: as upstream_create() / as upstream_destroy()
 */
void upstream_state_init(struct upstream_state *st);
void upstream_state_close(struct upstream_state *st);

/*
 * upstream_state_write(up, f) / upstream_state_continue(up, text, before):
 * Write the lines of ${up} and its servers / continue the counters of ${up} by
 * counters_set_continue().
 *
 * Thread: any
 */
void upstream_state_write(struct upstream *up, FILE *f);
void upstream_state_continue(struct upstream *up, const char *text, const char *before);

/*
 * upstream_state_continue_server(up, name, text, before):
 * Continue the counters of the server ${name}. ${before} NULL, in the first report: take over its
 * health, too.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -ENOMEM (an unresolved server)
 */
int upstream_state_continue_server(struct upstream *up, const char *name, const char *text,
                                   const char *before) NODISCARD;

/*
 * upstream_state_came(up, server):
 * Give the new ${server} the state kept for its name, if any.
 *
 * Thread: as upstream_state_continue_server(), before sessions can pick it
 */
void upstream_state_came(struct upstream *up, struct upstream_server *server);

#endif
