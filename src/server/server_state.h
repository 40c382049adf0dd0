/*
 * server/server_state: continues the counters and server health that another process reports.
 *
 * A report is text: a line for each listener, upstream and server, with its totals so far. The
 * increase over the previous report is added to the counters of this process.
 *
 *   listen NAME KEY=VALUE ...         and the lines of upstream/upstream_state
 */
#ifndef SERVER_SERVER_STATE_H
#define SERVER_SERVER_STATE_H

#include <stdio.h>

#include "base/must.h"

struct server;
struct server_state;

/*
 * server_state_write(sv, f):
 * Write a report of ${sv}.
 *
 * Thread: main
 */
void server_state_write(const struct server *sv, FILE *f);

/*
 * server_state_create(out, sv, text):
 * Create the state of another process. Its report so far, ${text}, is not added: our predecessor
 * has added it already to its own. "": no report yet.
 *
 * Thread: main
 * Owns:   ${text} is copied
 * Errors: 0; -ENOMEM
 */
int server_state_create(struct server_state **out, struct server *sv, const char *text) NODISCARD;

/*
 * server_state_report(st, text):
 * Add the report ${text}: before server_start() at once, with the health of servers; later on the
 * control loop.
 *
 * Thread: main
 * Owns:   ${text} is copied
 * Errors: 0; as loop_submit(); -ENOMEM. After an error the next report includes this one
 */
int server_state_report(struct server_state *st, const char *text) NODISCARD;

/*
 * server_state_close(st):
 * The other process was killed: end its sessions in the counters, as SESSION_ERROR.
 *
 * Thread: main
 * Errors: as server_state_report()
 */
int server_state_close(struct server_state *st) NODISCARD;

/*
 * server_state_text(st):
 * The last report.
 *
 * Thread: main
 * Owns:   valid until the next report
 */
const char *server_state_text(const struct server_state *st);

/*
 * server_state_destroy(st):
 * Free ${st}, or NULL.
 *
 * Thread: main
 */
void server_state_destroy(struct server_state *st);

#endif
