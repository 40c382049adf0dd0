/*
 * tls/tls_certificate: one certificate with its key and chain, read from PEM files.
 *
 * Immutable: any thread may use it.
 */
#ifndef TLS_TLS_CERTIFICATE_H
#define TLS_TLS_CERTIFICATE_H

#include <openssl/x509.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "tls/tls_load.h"

struct tls_certificate;

/* Kinds of keys; ECDSA is first because it costs a server least. */
enum tls_key_kind { TLS_KEY_EC, TLS_KEY_RSA, TLS_KEY_OTHER, TLS_KEY_KINDS };

struct tls_certificate_files {
    const char *certificate; /* the certificate, its chain, maybe its key */
    const char *key;         /* NULL: the key is in a.pem (`certificate`), a.pem.key or a.key */
};

/*
 * tls_certificate_load(out, files, issuers, l):
 * Read and check a certificate, its key and its chain. The file has the certificate first, then its
 * issuers in any order. Certificates with the same issuer share its X509 through ${issuers}.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_certificate_load(struct tls_certificate **out, const struct tls_certificate_files *files,
                         STACK_OF(X509) * issuers, struct tls_load *l) NODISCARD;

/* tls_certificate_destroy(c): free ${c} or NULL. Thread: any, when no thread uses ${c} */
void tls_certificate_destroy(struct tls_certificate *c);

/*
 * tls_certificate_use_in(c, ctx) / tls_certificate_use(c, ssl):
 * Make ${ctx} / ${ssl} present ${c}, beside certificates with other kinds of keys.
 *
 * Thread: any / owner of ${ssl}
 * Errors: 0; -EINVAL (see the library's errors)
 */
int tls_certificate_use_in(const struct tls_certificate *c, SSL_CTX *ctx) NODISCARD;
int tls_certificate_use(const struct tls_certificate *c, SSL *ssl) NODISCARD;

/*
 * tls_certificate_kind(c) / tls_certificate_expires_at(c) / tls_certificate_is_current(c, now):
 * Return the kind of key / when ${c} expires / whether ${c} is valid at ${now}.
 *
 * Units:  seconds since 1970
 */
enum tls_key_kind tls_certificate_kind(const struct tls_certificate *c);
int64_t tls_certificate_expires_at(const struct tls_certificate *c);
bool tls_certificate_is_current(const struct tls_certificate *c, int64_t now);

/* tls_certificate_same(a, b): are ${a} and ${b} the same certificate? */
bool tls_certificate_same(const struct tls_certificate *a, const struct tls_certificate *b);

/*
 * tls_certificate_leaf(c) / tls_certificate_issuer(c) / tls_certificate_path(c):
 * Return the certificate itself / its issuer, or NULL without a chain / the path of its file.
 *
 * Owns:   ${c} keeps the result
 */
X509 *tls_certificate_leaf(const struct tls_certificate *c);
X509 *tls_certificate_issuer(const struct tls_certificate *c);
const char *tls_certificate_path(const struct tls_certificate *c);

#endif
