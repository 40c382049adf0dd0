/*
 * handover/sessions_export: hands the sessions of this process to the one that has replaced it.
 *
 *   each worker's loop: walk over its sessions, idle ones first; give one, send it
 *                       -> main: reads the answer -> that loop: free the session, or serve it on
 *
 * A worker walks over its sessions several times: first for those that have been idle for long, at
 * last for all; the last walk is repeated while sessions stay that may go later. See note: commit
 * in handover/session_message.h.
 */
#ifndef HANDOVER_SESSIONS_EXPORT_H
#define HANDOVER_SESSIONS_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
struct handoff_figures;
struct server;
struct sessions_export;

/*
 * sessions_export_begin(out, sv, fd, rate):
 * Begin to send sessions to ${fd}, ${rate} a second.
 *
 * Thread: main
 * Owns:   ${sv} and ${fd} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int sessions_export_begin(struct sessions_export **out, struct server *sv, int fd,
                          unsigned rate) NODISCARD;

/*
 * sessions_export_step(ex):
 * Read the answers. Call it when the descriptor is readable, and from time to time.
 *
 * sessions_export_is_through(ex) / sessions_export_is_over(ex):
 * Are no more sessions sent? / are all answered, too? Then destroy ${ex}.
 *
 * Thread: main
 */
void sessions_export_step(struct sessions_export *ex);
bool sessions_export_is_through(const struct sessions_export *ex);
bool sessions_export_is_over(const struct sessions_export *ex);

/*
 * sessions_export_stop(ex):
 * Send no more sessions; those without an answer are the other process's. Call it before
 * server_stop().
 *
 * Thread: main
 */
void sessions_export_stop(struct sessions_export *ex);

/*
 * sessions_export_figures(ex, out):
 * What became of the sessions, as of the last walk of each worker; complete when it is over.
 */
void sessions_export_figures(const struct sessions_export *ex, struct handoff_figures *out);

/*
 * sessions_export_destroy(ex):
 * Free ${ex}; NULL is allowed.
 *
 * Thread: main, when it is over, or the loops have ended
 */
void sessions_export_destroy(struct sessions_export *ex);

#endif
