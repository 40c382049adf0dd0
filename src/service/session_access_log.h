/*
 * service/session_access_log: writes a session's lines in the access logs: at its end, and each
 * access_log_interval_ns with reason SESSION_OPEN.
 */
#ifndef SERVICE_SESSION_ACCESS_LOG_H
#define SERVICE_SESSION_ACCESS_LOG_H

#include <stdint.h>

#include "stats/session_reason.h"

struct address;
struct service;
struct session;

/*
 * session_access_log_begin(s) / session_access_log_end(s):
 * Give ${s} its number in each access log / write the last lines of ${s}.
 *
 * Thread: loop of ${s}, or any before session_adopt()
 */
void session_access_log_begin(struct session *s);
void session_access_log_end(struct session *s);

/*
 * session_access_log_save(s, numbers) / session_access_log_restore(s, numbers):
 * Write the numbers of ${s} in its access logs to the SESSION_FACTS_LOGS ${numbers} / use these,
 * and new ones in further logs, instead of session_access_log_begin().
 *
 * Thread: loop of ${s} / any, before ${s} is on a loop
 */
void session_access_log_save(const struct session *s, uint64_t *numbers);
void session_access_log_restore(struct session *s, const uint64_t *numbers);

/*
 * session_access_log_opened(s):
 * Write the line at connect, once, in the logs that have one.
 *
 * Thread: loop of ${s}
 */
void session_access_log_opened(struct session *s);

/*
 * session_access_log_carry_over(s, before):
 * Use the logs of the new s->service, and its interval, instead of those of ${before}.
 *
 * Thread: loop of ${s}
 */
void session_access_log_carry_over(struct session *s, const struct service *before);

/*
 * session_access_log_due_ns(s) / session_access_log_look(s, now_ns):
 * Instant of the next interval line, or CLOCK_NEVER / write the line if due.
 *
 * Thread: loop of ${s}
 */
int64_t session_access_log_due_ns(const struct session *s);
void session_access_log_look(struct session *s, int64_t now_ns);

/*
 * session_access_log_turned_away(service, client, listen, reason):
 * Write the line of a client refused without a session.
 */
void session_access_log_turned_away(const struct service *service, const struct address *client,
                                    const struct address *listen, enum session_reason reason);

#endif
