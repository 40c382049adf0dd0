/*
 * tls/tls_ca: CAs and revocation lists for verifying peers' certificates.
 */
#ifndef TLS_TLS_CA_H
#define TLS_TLS_CA_H

#include <openssl/types.h>

#include "base/must.h"
#include "tls/tls_load.h"

/*
 * tls_ca_trust(ctx, path, l):
 * Trust the certificates in the file ${path}, at least one.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_ca_trust(SSL_CTX *ctx, const char *path, struct tls_load *l) NODISCARD;

/*
 * tls_ca_trust_system(ctx, l):
 * Trust the CAs of the system.
 *
 * Thread: any but loops
 * Errors: 0; -ENOMEM
 */
int tls_ca_trust_system(SSL_CTX *ctx, struct tls_load *l) NODISCARD;

/*
 * tls_ca_ask(ctx, path, l):
 * As tls_ca_trust(), and name these CAs when asking clients for a certificate.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_ca_ask(SSL_CTX *ctx, const char *path, struct tls_load *l) NODISCARD;

/*
 * tls_ca_revoke(ctx, path, l):
 * Refuse certificates in the revocation lists of the file ${path}; each CA of a chain needs a list.
 * A list out of date is a warning: the library refuses all certificates of its CA.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_ca_revoke(SSL_CTX *ctx, const char *path, struct tls_load *l) NODISCARD;

/*
 * tls_ca_tell_refused(ok, ctx):
 * For SSL_CTX_set_verify(): keep the library's verdict, and note which certificate was refused, by
 * its common name and serial number, and the name that was wanted if it has another, as the reason
 * of the stream's failure.
 *
 * Thread: owner of the stream
 */
int tls_ca_tell_refused(int ok, X509_STORE_CTX *ctx);

#endif
