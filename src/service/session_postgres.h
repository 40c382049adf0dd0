/*
 * service/session_postgres: stage of the preface before TLS: PostgreSQL's SSLRequest.
 *
 *   client: SSLRequest -> we: `S` -> client: ClientHello
 *   client: CancelRequest -> a server; no TLS, and nothing else of this client is read
 *
 * A GSSENCRequest is refused with `N`; the client may then send an SSLRequest. A client that begins
 * with TLS (sslnegotiation=direct) is passed on. Any other client gets an error message, because
 * TLS is required. A client that sends bytes behind the SSLRequest without waiting for `S` is
 * reset: an attacker may have added these bytes (CVE-2021-23214).
 *
 * A CancelRequest (psql: Ctrl-C) comes unencrypted, on a connection of its own, as servers accept
 * it too. It proves itself by the secret key in it. Its upstream is chosen as for a client without
 * a server name that offers the protocol `postgresql`.
 * Source: PostgreSQL, Frontend/Backend Protocol: SSL Session Encryption; Canceling Requests in
 *         Progress; Message Formats
 */
#ifndef SERVICE_SESSION_POSTGRES_H
#define SERVICE_SESSION_POSTGRES_H

#include "service/session_preface.h"

extern const struct session_preface_stage session_postgres_stage;

#endif
