/*
 * tls/tls_certificate: one certificate with its key and chain, read from PEM files.
 *
 * Immutable: any thread may use it.
 */
#ifndef TLS_TLS_CERTIFICATE_H
#define TLS_TLS_CERTIFICATE_H

#include <openssl/types.h>

#include "base/must.h"
#include "tls/tls_why.h"

struct tls_certificate;

struct tls_certificate_files {
    const char *certificate; /* the certificate, then its chain; may have the key */
    const char *key;         /* NULL: in `certificate` */
};

/*
 * tls_certificate_load(out, files, why):
 * Read and check: one key, which is the certificate's; a chain in which each certificate has signed
 * the one before, sorted if need be.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${why}); -ENOMEM
 */
int tls_certificate_load(struct tls_certificate **out, const struct tls_certificate_files *files,
                         const struct tls_why *why) NODISCARD;

/*
 * tls_certificate_use_in(c, ctx):
 * Make ${ctx} present the certificate.
 *
 * Thread: any
 * Errors: 0; -EINVAL (see the library's errors)
 */
int tls_certificate_use_in(struct tls_certificate *c, SSL_CTX *ctx) NODISCARD;

/*
 * tls_certificate_destroy(c):
 * Free ${c} or NULL.
 *
 * Thread: any, once it is not used
 */
void tls_certificate_destroy(struct tls_certificate *c);

#endif
