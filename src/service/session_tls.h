/*
 * service/session_tls: last stage of the preface: the TLS handshake with the client.
 *
 * After the handshake its handler stays in the pipeline and encrypts (tls/tls_handler). Byte counts
 * begin then, and so do the first-byte and read timeouts; idle_timeout and max_lifetime apply
 * during the handshake too. first_byte_timeout also applies to the first byte of the handshake.
 */
#ifndef SERVICE_SESSION_TLS_H
#define SERVICE_SESSION_TLS_H

#include <stdint.h>

#include "limits/quota.h"
#include "net/proxy_header.h"
#include "service/session_preface.h"
#include "tls/tls_handler.h"

struct access_log_record;
struct tls_sections;

/* A listener's settings for TLS with its clients. */
struct session_tls_conf {
    struct tls_sections *sections; /* one of them for each client, by the name it asks for */
    struct tls_handler_conf handler;
    enum quota_over over_limit; /* when too many handshakes wait for a thread */
    int64_t timeout_ns;         /* of the handshake, from its first byte on; 0: no timeout */
    bool postgres;              /* clients may send PostgreSQL's SSLRequest first */
};

extern const struct session_preface_stage session_tls_stage;

/* session_tls_end(s): cancel the retry of the handshake, because ${s} ends. Thread: loop of ${s} */
void session_tls_end(struct session *s);

/*
 * session_tls_free(s):
 * Free the TLS values of ${s}, after the last line of the access log.
 *
 * Thread: loop of ${s}
 */
void session_tls_free(struct session *s);

/*
 * session_tls_describe(s, r):
 * Add the facts of the client's TLS with us, or the alert of a failed handshake.
 *
 * Thread: loop of ${s}
 */
void session_tls_describe(const struct session *s, struct access_log_record *r);

/*
 * session_tls_protocol(s):
 * Return the protocol that the client has agreed on with us (ALPN); NULL: none.
 *
 * Thread: loop of ${s}
 * Owns:   ${s} keeps the text
 */
const char *session_tls_protocol(const struct session *s);

/* session_tls_name(s): as session_hello_name(), of TLS with us. Thread: loop of ${s} */
const char *session_tls_name(const struct session *s);

/* A client's TLS as values of a PROXY header. `tls` points into other members and the session. */
struct session_tls_told {
    struct proxy_header_tls tls;
    uint8_t ssl[PROXY_HEADER_MAX_BYTES];
    uint8_t certificate[PROXY_HEADER_MAX_BYTES];
};

/*
 * session_tls_tell(s, certificate, told):
 * Describe the client's TLS with us, and its certificate if ${certificate}, for a PROXY header.
 * False: the client uses no TLS with us.
 *
 * Thread: loop of ${s}
 */
bool session_tls_tell(const struct session *s, bool certificate, struct session_tls_told *told);

#endif
