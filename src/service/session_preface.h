/*
 * service/session_preface: how a session begins whose peer is a proxy that says who the client is.
 *
 *   session_adopt -> opening: the header is read -> admission is asked -> service_ops.start -> ...
 *   session_preface_read
 *
 * From the header on the client it names stands in the place of the peer: in logs, rules and
 * limits, and where a server is chosen by it. No server is looked for before. What the client sent
 * behind the header waits with handlers/proxy_protocol until there is one.
 *
 * A session that does not begin like this only asks one flag, and has no memory for it.
 */
#ifndef SERVICE_SESSION_PREFACE_H
#define SERVICE_SESSION_PREFACE_H

#include <stddef.h>

#include "service/session.h"

/*
 * session_preface_bytes(service):
 * The memory for it in a session of ${service}; 0 if no proxy is asked. It is aligned for anything
 * if what is before it is.
 *
 * Thread: any
 * Units:  bytes
 */
size_t session_preface_bytes(const struct service *service);

/*
 * session_preface_add(s, ch, room, handlers_room):
 * ${s} is `opening`: have the header read, and add the listener's handlers to ${ch} when it is
 * there, so that they see the client from the first. ${room} has session_preface_bytes(),
 * ${handlers_room} is for session_handlers_add_plan().
 *
 * Thread: loop of ${s}
 */
void session_preface_add(struct session *s, struct channel *ch, void *room, void *handlers_room);

/*
 * session_preface_read(s):
 * For a service whose session has started: read the client from now on, beginning with what came
 * behind a header.
 *
 * Thread: loop of ${s}
 */
void session_preface_read(struct session *s);

/*
 * session_preface_timeout_ns(s) / session_preface_give_up(s):
 * For the timer of an `opening` session: how long it may be that, and the end of this time.
 *
 * Thread: loop of ${s}
 * Units:  ns
 */
int64_t session_preface_timeout_ns(const struct session *s);
void session_preface_give_up(struct session *s);

/*
 * session_preface_proxy(s) / session_preface_destination(s):
 * The proxy that has named the client; where that connected to, as the proxy says. NULL if none
 * has.
 *
 * Thread: loop of ${s}
 * Errors: NULL
 */
const struct address *session_preface_proxy(const struct session *s);
const struct address *session_preface_destination(const struct session *s);

#endif
