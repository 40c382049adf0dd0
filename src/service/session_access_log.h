/*
 * service/session_access_log: the lines of a session in the access log of its listener: one when it
 * has ended, and with access_log_interval_ns others while it goes on, whose reason is SESSION_OPEN.
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
 * Its number in the access log; its line there when it has ended.
 *
 * Thread: any, before it was adopted; that of the end
 */
void session_access_log_begin(struct session *s);
void session_access_log_end(struct session *s);

/*
 * session_access_log_due_ns(s) / session_access_log_look(s, now_ns):
 * When it is to be in the log although it goes on (an instant, or CLOCK_NEVER); write that line if
 * it is due.
 *
 * Thread: loop of ${s}
 * Units:  ns
 */
int64_t session_access_log_due_ns(const struct session *s);
void session_access_log_look(struct session *s, int64_t now_ns);

/*
 * session_access_log_turned_away(service, client, listen, reason):
 * The line of a client of ${service} who got no session, for ${reason}.
 *
 * Thread: any
 */
void session_access_log_turned_away(const struct service *service, const struct address *client,
                                    const struct address *listen, enum session_reason reason);

#endif
