/*
 * service/session_header: first stage of the preface: a PROXY header.
 *
 * The client that the header names replaces the peer in logs, ACLs, limits and server choice.
 * Bandwidth limits do not count the header.
 */
#ifndef SERVICE_SESSION_HEADER_H
#define SERVICE_SESSION_HEADER_H

#include "net/proxy_header.h"
#include "service/session_preface.h"

struct access_log_record;

extern const struct session_preface_stage session_header_stage;

/*
 * session_header_proxy(s) / session_header_destination(s):
 * Address of the proxy that sent the header / destination of the client, as the header says. NULL
 * without a header, or if the header names no client.
 *
 * Thread: loop of ${s}
 */
const struct address *session_header_proxy(const struct session *s);
const struct address *session_header_destination(const struct session *s);

/*
 * session_header_tls(s):
 * The header's values of the client's TLS with the proxy; NULL as above.
 *
 * Thread: loop of ${s}
 */
const struct proxy_header_tls *session_header_tls(const struct session *s);

/*
 * session_header_tlv(s, type):
 * The header's value of the field (TLV) ${type}; at NULL: none. Until session_header_trim().
 *
 * Thread: loop of ${s}
 */
struct proxy_header_value session_header_tlv(const struct session *s, uint8_t type);

/*
 * session_header_trim(s):
 * Free the header's fields (TLVs), except those of session_header_tls().
 *
 * Thread: loop of ${s}
 */
void session_header_trim(struct session *s);

/*
 * session_header_describe(s, r):
 * Add the header's values of the client's TLS to ${r}.
 *
 * Thread: loop of ${s}
 */
void session_header_describe(struct session *s, struct access_log_record *r);

/*
 * session_header_free(s):
 * Free the header's fields (TLVs); call this after the last access log line of ${s}.
 *
 * Thread: loop of ${s}
 */
void session_header_free(struct session *s);

#endif
