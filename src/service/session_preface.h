/*
 * service/session_preface: PROXY preface: reads the PROXY header that names the client, before the
 * session starts.
 *
 *   session_adopt -> header is read -> admission -> service_ops.start -> ... session_preface_read
 *
 * After the header its client replaces the peer: in logs, ACLs, limits, and for choosing a server,
 * which starts only then. The client's bytes behind the header wait in handlers/proxy_protocol
 * until a server is connected.
 *
 * Sessions without headers pay for one flag, and no memory.
 */
#ifndef SERVICE_SESSION_PREFACE_H
#define SERVICE_SESSION_PREFACE_H

#include <stddef.h>

#include "service/session.h"

/*
 * session_preface_bytes(service):
 * Memory of the preface in a session of ${service}; 0 without PROXY headers. Aligned for any type
 * if the bytes before are.
 *
 * Thread: any
 * Units:  bytes
 */
size_t session_preface_bytes(const struct service *service);

/*
 * session_preface_add(s, ch, room, handlers_room):
 * Read the header of ${s}, whose `preface` is set; then add the listener's handlers to ${ch}.
 * ${room} has session_preface_bytes(); ${handlers_room} is for session_handlers_add_plan().
 *
 * Thread: loop of ${s}
 */
void session_preface_add(struct session *s, struct channel *ch, void *room, void *handlers_room);

/*
 * session_preface_read(s):
 * Read the client from now on, starting with bytes behind a header. For services.
 *
 * Thread: loop of ${s}
 */
void session_preface_read(struct session *s);

/*
 * session_preface_timeout_ns(s) / session_preface_give_up(s):
 * For the timer while `preface` is set: time for the header; its expiry.
 *
 * Thread: loop of ${s}
 * Units:  ns
 */
int64_t session_preface_timeout_ns(const struct session *s);
void session_preface_give_up(struct session *s);

/*
 * session_preface_proxy(s) / session_preface_destination(s):
 * Address of the proxy that named the client; the client's destination in the header. NULL without
 * a named client.
 *
 * Thread: loop of ${s}
 */
const struct address *session_preface_proxy(const struct session *s);
const struct address *session_preface_destination(const struct session *s);

#endif
