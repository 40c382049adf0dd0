/*
 * service/session_header: first stage of the preface: a PROXY header.
 *
 * The client that the header names replaces the peer in logs, ACLs, limits and server choice.
 * Bandwidth limits do not count the header.
 */
#ifndef SERVICE_SESSION_HEADER_H
#define SERVICE_SESSION_HEADER_H

#include "service/session_preface.h"

extern const struct session_preface_stage session_header_stage;

/*
 * session_header_proxy(s) / session_header_destination(s):
 * Address of the proxy that sent the header; destination of the client in the header. NULL without
 * a header, or if it names no client.
 *
 * Thread: loop of ${s}
 */
const struct address *session_header_proxy(const struct session *s);
const struct address *session_header_destination(const struct session *s);

#endif
