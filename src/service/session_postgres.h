/*
 * service/session_postgres: stage of the preface before TLS: PostgreSQL's SSLRequest.
 *
 *   client: SSLRequest -> we: `S` -> client: ClientHello
 *
 * A GSSENCRequest is refused with `N`, and the client may send the other. A client that begins with
 * TLS (sslnegotiation=direct) is passed on. Any other gets an error message, as TLS is required.
 * Bytes behind an SSLRequest would count as encrypted though they were not: the client is reset
 * (CVE-2021-23222).
 * Source: PostgreSQL, Frontend/Backend Protocol: SSL Session Encryption
 */
#ifndef SERVICE_SESSION_POSTGRES_H
#define SERVICE_SESSION_POSTGRES_H

#include "service/session_preface.h"

extern const struct session_preface_stage session_postgres_stage;

#endif
