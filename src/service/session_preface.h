/*
 * service/session_preface: reads the PROXY header before the session starts.
 *
 *   session_adopt -> header is read -> admission -> service_ops.start -> ... session_preface_read
 *
 * Logs, ACLs, limits and balancers then use the client that the header names, not the peer. Bytes
 * behind the header wait in handlers/proxy_protocol until a server is connected; bandwidth limits
 * do not count them.
 */
#ifndef SERVICE_SESSION_PREFACE_H
#define SERVICE_SESSION_PREFACE_H

#include <stddef.h>

#include "service/session.h"

/*
 * session_preface_bytes(service):
 * Bytes to allocate for the preface; 0 without PROXY headers.
 *
 * Thread: any
 */
size_t session_preface_bytes(const struct service *service);

/*
 * session_preface_add(s, ch, room, handlers_room):
 * Read the header into ${room}, then add the listener's handlers to ${ch}; ${handlers_room} is for
 * session_handlers_add_template().
 *
 * Thread: loop of ${s}
 */
void session_preface_add(struct session *s, struct channel *ch, void *room, void *handlers_room);

/*
 * session_preface_read(s):
 * Called by services: begin to read the client, first the bytes behind a header.
 *
 * Thread: loop of ${s}
 */
void session_preface_read(struct session *s);

/*
 * session_preface_timeout_ns(s) / session_preface_give_up(s):
 * How long to wait for the header; stop waiting.
 *
 * Thread: loop of ${s}
 */
int64_t session_preface_timeout_ns(const struct session *s);
void session_preface_give_up(struct session *s);

/*
 * session_preface_proxy(s) / session_preface_destination(s):
 * Address of the proxy that sent the header; the client's destination in the header. NULL if no
 * header names a client.
 *
 * Thread: loop of ${s}
 */
const struct address *session_preface_proxy(const struct session *s);
const struct address *session_preface_destination(const struct session *s);

#endif
