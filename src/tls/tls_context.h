/*
 * tls/tls_context: creates contexts (SSL_CTX): settings common to both roles, and the client
 * context.
 */
#ifndef TLS_TLS_CONTEXT_H
#define TLS_TLS_CONTEXT_H

#include <stdbool.h>

#include <openssl/ssl.h>

#include "base/must.h"
#include "tls/tls_certificate.h"
#include "tls/tls_profile_conf.h"
#include "tls/tls_load.h"

/*
 * tls_context_create(out, method, conf, l):
 * Create a context for ${method}, with the versions, ciphers and groups of ${conf}.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_context_create(SSL_CTX **out, const SSL_METHOD *method, const struct tls_profile_conf *conf,
                       struct tls_load *l) NODISCARD;

/*
 * tls_context_has_cipher(ctx, has_kind):
 * Can a handshake of TLS 1.2 succeed with one of the ciphers of ${ctx} and a certificate whose kind
 * of key is in ${has_kind}?
 *
 * Thread: any but loops
 */
bool tls_context_has_cipher(const SSL_CTX *ctx, const bool has_kind[TLS_KEY_KINDS]);

/*
 * tls_context_create_client(out, conf, l):
 * Create a context for connecting to servers, without a client certificate.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_context_create_client(SSL_CTX **out, const struct tls_profile_conf *conf,
                              struct tls_load *l) NODISCARD;

#endif
