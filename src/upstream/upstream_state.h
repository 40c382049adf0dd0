/*
 * upstream/upstream_state: counters and health of an upstream and its servers, for the process that
 * replaces this one.
 *
 *   upstream NAME KEY=VALUE ...
 *   server UPSTREAM/NAME down=yes[,agent] [ejected=UNTIL,TIMES] since=NS [in_use=yes]
 *       [times=NS,AT,NS,AT] KEY=VALUE ...
 *
 * "agent": its agent said down, and has not said up since. UNTIL is the end of an ejection, in ns
 * of CLOCK_MONOTONIC, TIMES as in struct ejection. in_use is told with failback = no, times are the
 * averages of struct response_time and when they were measured.
 *
 * The state of a server whose name is not resolved yet is kept until the name is resolved.
 */
#ifndef UPSTREAM_UPSTREAM_STATE_H
#define UPSTREAM_UPSTREAM_STATE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/list.h"
#include "base/must.h"

struct counters_report;
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

/* upstream_state_write(up, f): write the lines of ${up} and its servers. */
void upstream_state_write(struct upstream *up, FILE *f);

/*
 * upstream_state_continue(up, report) / upstream_state_continue_server(up, name, report, health):
 * Continue the counters of ${up} / of the server ${name}, as counters_set_report(); with ${health}
 * take over the server's health too.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -ENOMEM (an unresolved server)
 */
void upstream_state_continue(struct upstream *up, struct counters_report *report);
int upstream_state_continue_server(struct upstream *up, const char *name,
                                   struct counters_report *report, bool health) NODISCARD;

/*
 * upstream_state_expects_up(up, name):
 * Is the state of the new server ${name} kept, and was it up in the other process?
 *
 * Thread: as upstream_state_continue_server()
 */
bool upstream_state_expects_up(struct upstream *up, const char *name);

/*
 * upstream_state_came(up, server):
 * Give the new ${server} the state kept for its name, if any.
 *
 * Thread: as upstream_state_continue_server(), before sessions can pick it
 */
void upstream_state_came(struct upstream *up, struct upstream_server *server);

#endif
