/*
 * tls/tls_sessions: TLS sessions with one server, kept so that later connections can resume them.
 *
 * A session stands for a verified certificate, so it is resumed only with the same context
 * (profile) and name. A session of TLS 1.3 is resumed once (RFC 8446, C.4), one of TLS 1.2 until it
 * expires.
 */
#ifndef TLS_TLS_SESSIONS_H
#define TLS_TLS_SESSIONS_H

#include <openssl/types.h>

#include "base/must.h"

struct tls_sessions;

/* Limit of kept sessions; the oldest is dropped first. */
#define TLS_SESSIONS_MAX 8

/*
 * tls_sessions_create(out):
 * Create an empty list, with one reference.
 *
 * Errors: 0; -ENOMEM
 */
int tls_sessions_create(struct tls_sessions **out) NODISCARD;

/* tls_sessions_release(ts): drop the caller's reference; NULL is allowed. */
void tls_sessions_release(struct tls_sessions *ts);

/*
 * tls_sessions_use(ts, ssl, name):
 * Let ${ssl}, a new connection to the server, resume a session if there is one. Sessions that the
 * server sends to ${ssl} are kept in ${ts}. ${name}: verified name of the server; NULL: no name. If
 * memory is short, nothing is resumed or kept.
 */
void tls_sessions_use(struct tls_sessions *ts, SSL *ssl, const char *name);

/*
 * tls_sessions_enable(ctx):
 * Make connections of the client context ${ctx} keep the sessions that servers send.
 *
 * Thread: any, before other threads can use ${ctx}
 */
void tls_sessions_enable(SSL_CTX *ctx);

#endif
