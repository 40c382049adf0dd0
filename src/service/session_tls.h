/*
 * service/session_tls: last stage of the preface: the TLS handshake with the client.
 *
 * The handler stays in the pipeline and encrypts (tls/tls_handler). Bytes and timeouts of the
 * session count from the end of the handshake.
 */
#ifndef SERVICE_SESSION_TLS_H
#define SERVICE_SESSION_TLS_H

#include <stdint.h>

#include "limits/quota.h"
#include "net/proxy_header.h"
#include "service/session_preface.h"
#include "tls/tls_handler.h"

struct access_log_record;
struct tls_slot;

/* A listener's settings for TLS with its clients. */
struct session_tls_conf {
    struct tls_slot *slot; /* has the certificates; held by the listener's generation */
    struct tls_handler_conf handler;
    enum quota_over over_limit; /* when too many handshakes wait for a thread */
    int64_t timeout_ns;         /* of the handshake; 0: none */
    bool postgres;              /* TLS follows PostgreSQL's SSLRequest */
};

extern const struct session_preface_stage session_tls_stage;

/*
 * session_tls_end(s):
 * ${s} ends: do not retry its handshake.
 *
 * Thread: loop of ${s}
 */
void session_tls_end(struct session *s);

/*
 * session_tls_free(s):
 * Free what session_tls_describe() uses, after the last line of the access log.
 *
 * Thread: loop of ${s}
 */
void session_tls_free(struct session *s);

/*
 * session_tls_describe(s, r):
 * Add the client's TLS with us, and why it failed.
 *
 * Thread: loop of ${s}
 */
void session_tls_describe(const struct session *s, struct access_log_record *r);

/* Values of `tls` point into the members below, and into the session. */
struct session_tls_told {
    struct proxy_header_tls tls;
    uint8_t ssl[PROXY_HEADER_MAX_BYTES];
    uint8_t certificate[PROXY_HEADER_MAX_BYTES];
};

/*
 * session_tls_tell(s, certificate, told):
 * Describe for a server the client's TLS with us, and the client's certificate if ${certificate}.
 * False: the client uses no TLS with us.
 *
 * Thread: loop of ${s}
 */
bool session_tls_tell(const struct session *s, bool certificate, struct session_tls_told *told);

#endif
