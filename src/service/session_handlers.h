/*
 * service/session_handlers: a session and its handlers in one allocation.
 *
 *   | struct echo or struct proxy | service/session_preface | session_handlers | handler states |
 *
 * The second part exists only if the service has a preface, the last two only with handlers.
 */
#ifndef SERVICE_SESSION_HANDLERS_H
#define SERVICE_SESSION_HANDLERS_H

#include <stddef.h>

#include "service/session.h"

/*
 * session_handlers_alloc(service, bytes):
 * Allocate a session of ${bytes}, aligned to a cache line, with memory for its preface and handlers
 * behind it. Free it with free().
 *
 * Units:  ${bytes} is a multiple of CACHE_LINE_BYTES
 * Errors: NULL (no memory)
 */
void *session_handlers_alloc(const struct service *service, size_t bytes) NODISCARD;

/*
 * session_handlers_add(s, ch, memory):
 * Begin the preface on the client's channel ${ch}, or without one add the handlers. ${memory}: the
 * memory behind the session.
 *
 * Thread: loop of ${s}
 */
void session_handlers_add(struct session *s, struct channel *ch, void *memory);

#endif
