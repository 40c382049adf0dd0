/*
 * service/session_handlers: the handlers of a listener's plan in the memory of each of its
 * sessions.
 *
 *   | struct echo or struct proxy | service/session_preface | the session as handlers see it |
 *   their states |
 *
 * All of it is one allocation. A session of a listener without handlers has the first part only,
 * and one that takes no headers of proxies lacks the second.
 */
#ifndef SERVICE_SESSION_HANDLERS_H
#define SERVICE_SESSION_HANDLERS_H

#include <stddef.h>

#include "service/session.h"

/*
 * session_handlers_alloc(service, bytes):
 * Memory for a session of ${service} that takes ${bytes} itself, on a cache line of its own; the
 * handlers' part is behind them. Free it with free().
 *
 * Thread: any
 * Owns:   the caller owns it
 * Units:  bytes, a multiple of CACHE_LINE_BYTES
 * Errors: NULL (no memory)
 */
void *session_handlers_alloc(const struct service *service, size_t bytes) NODISCARD;

/*
 * session_handlers_add(s, ch, room):
 * Add the listener's handlers to the pipeline of the client's channel ${ch}; if ${s} is `opening`,
 * when it is known who the client is, and until then the one that finds out. ${room} is what is
 * behind the ${bytes} that session_handlers_alloc() was asked for.
 *
 * Thread: loop of ${s}
 */
void session_handlers_add(struct session *s, struct channel *ch, void *room);

/*
 * session_handlers_add_plan(s, ch, room):
 * For service/session_preface: add them now. ${room} is that of the session as handlers see it.
 *
 * Thread: loop of ${s}
 */
void session_handlers_add_plan(struct session *s, struct channel *ch, void *room);

#endif
