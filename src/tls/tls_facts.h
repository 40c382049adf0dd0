/*
 * tls/tls_facts: what a completed handshake has agreed on, and who the client is, for logs and for
 * servers.
 */
#ifndef TLS_TLS_FACTS_H
#define TLS_TLS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct tls_stream;

/* Result of a handshake; missing texts are NULL. */
struct tls_facts {
    const char *version; /* TLSv1.3 */
    const char *cipher;  /* TLS_AES_128_GCM_SHA256 */
    const char *group;   /* x25519 */
    const char *alpn;    /* negotiated */
    bool resumed;
    bool has_certificate;    /* the client sent a certificate */
    uint32_t verify;         /* 0: verified; else an X509_V_ERR_ code; 1 without a certificate */
    const char *name;        /* common name in the certificate; see tls/tls_common_name */
    const char *fingerprint; /* SHA-256 of the certificate, in hex */
    char storage[];
};

/*
 * tls_facts_create(out, st):
 * Read the facts of ${st}, whose handshake is done.
 *
 * Thread: owner of ${st}
 * Owns:   the caller frees ${out}
 * Errors: 0; -ENOMEM
 */
int tls_facts_create(struct tls_facts **out, const struct tls_stream *st) NODISCARD;

/*
 * tls_facts_certificate(st, out, size):
 * Write the client's certificate to ${out}, in DER.
 *
 * Thread: owner of ${st}
 * Units:  returns bytes written; 0: no certificate, or one above ${size}
 */
size_t tls_facts_certificate(const struct tls_stream *st, uint8_t *out, size_t size);

#endif
