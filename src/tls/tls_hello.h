/*
 * tls/tls_hello: the parts of a client's ClientHello that are kept, also when its handshake fails.
 */
#ifndef TLS_TLS_HELLO_H
#define TLS_TLS_HELLO_H

#include "base/ref.h"
#include "tls/client_hello.h"
#include "tls/ja4.h"

struct tls_hello {
    struct ref references;
    const char *sni;                /* in lower case; empty: no SNI */
    struct client_hello_bytes alpn; /* offered protocols; see client_hello_alpn_next() */
    char ja4[JA4_BYTES];
    char storage[];
};

/*
 * tls_hello_create(out, data, len):
 * Read the ClientHello at the start of ${data}.
 *
 * Owns:   the caller releases ${out}
 * Errors: 0; as client_hello_scan() and client_hello_read(); -ENOMEM
 */
int tls_hello_create(struct tls_hello **out, const uint8_t *data, size_t len) NODISCARD;

/*
 * tls_hello_hold(h) / tls_hello_release(h):
 * Add a reference and return ${h} / drop one from ${h} or NULL; the last frees ${h}.
 */
struct tls_hello *tls_hello_hold(struct tls_hello *h);
void tls_hello_release(struct tls_hello *h);

/*
 * tls_hello_agrees(h, server_name, alpn):
 * Are these the extensions server_name and ALPN that ${h} has? Without bytes: not sent.
 */
bool tls_hello_agrees(const struct tls_hello *h, struct client_hello_bytes server_name,
                      struct client_hello_bytes alpn);

#endif
