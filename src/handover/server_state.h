/*
 * handover/server_state: continues the counters and server health that another process reports.
 *
 * A report is text: a line for each listener, upstream and server, with its totals so far. The
 * increase over the previous report is added to the counters of this process, those of the object
 * with this name at the first report.
 *
 *   listen NAME KEY=VALUE ...         and the lines of upstream/upstream_state
 */
#ifndef HANDOVER_SERVER_STATE_H
#define HANDOVER_SERVER_STATE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/must.h"

struct server;
struct server_state;

/*
 * server_state_write(sv, f):
 * Write a report of ${sv}, with all reports of other processes. Waits at most a second for a busy
 * control loop to apply them.
 *
 * Thread: main
 */
void server_state_write(const struct server *sv, FILE *f);

/*
 * server_state_write_names(sv, f) / server_state_use_names(sv, text):
 * Write the last answers of names (names/resolver_cache) / use those in ${text}; other lines
 * are ignored.
 *
 * Thread: main / main, before server_start()
 */
void server_state_write_names(struct server *sv, FILE *f);
void server_state_use_names(struct server *sv, const char *text);

/*
 * server_state_create(out, sv, text):
 * Create the state of another process with its last report, ${text}; "": no report yet. ${text} is
 * not added: the counters that our predecessor reports include it already.
 *
 * Thread: main, before server_start()
 * Owns:   ${text} is copied
 * Errors: 0; -ENOMEM
 */
int server_state_create(struct server_state **out, struct server *sv, const char *text) NODISCARD;

/*
 * server_state_report(st, text):
 * Add the report ${text}; a first report also sets the health of servers. Before server_start() at
 * once, afterwards on the control loop.
 *
 * Thread: main
 * Owns:   ${text} is copied
 * Errors: 0; as loop_submit(); -ENOMEM. After an error the next report includes this one
 */
int server_state_report(struct server_state *st, const char *text) NODISCARD;

/*
 * server_state_close(st, gave):
 * Count the open sessions of the other process, which was killed, as ended by SESSION_ERROR, but
 * not those that were taken from it, if it ${gave} any.
 *
 * Thread: main
 * Errors: as server_state_report()
 */
int server_state_close(struct server_state *st, bool gave) NODISCARD;

/*
 * server_state_text(st):
 * Return the last report.
 *
 * Thread: main
 * Owns:   valid until the next report
 */
const char *server_state_text(const struct server_state *st);

/* server_state_destroy(st): free ${st}; NULL is allowed. Thread: main */
void server_state_destroy(struct server_state *st);

#endif
