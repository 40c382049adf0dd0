/*
 * tls/tls_hello: the parts of a client's ClientHello that are kept, also when its handshake fails.
 */
#ifndef TLS_TLS_HELLO_H
#define TLS_TLS_HELLO_H

#include "tls/client_hello.h"
#include "tls/ja4.h"

struct tls_hello {
    const char *sni;                /* in lower case; empty: no SNI */
    struct client_hello_bytes alpn; /* offered protocols; see client_hello_alpn_next() */
    char ja4[JA4_BYTES];
    char room[];
};

/*
 * tls_hello_create(out, data, len):
 * Read the ClientHello at the start of ${data}.
 *
 * Thread: any
 * Owns:   the caller frees ${out}
 * Errors: 0; as client_hello_scan() and client_hello_read(); -ENOMEM
 */
int tls_hello_create(struct tls_hello **out, const uint8_t *data, size_t len) NODISCARD;

#endif
