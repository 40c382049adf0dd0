/*
 * tls/tls_context: the library's context (SSL_CTX) with what both roles of a profile share.
 */
#ifndef TLS_TLS_CONTEXT_H
#define TLS_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "base/must.h"
#include "tls/tls_profile.h"
#include "tls/tls_load.h"

/*
 * tls_context_create(out, method, conf, l):
 * Create a context with the versions, ciphers and groups of ${conf}.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_context_create(SSL_CTX **out, const SSL_METHOD *method, const struct tls_profile_conf *conf,
                       struct tls_load *l) NODISCARD;

/*
 * tls_context_create_client(out, conf, l):
 * Create a context that connects to servers, without a certificate.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_context_create_client(SSL_CTX **out, const struct tls_profile_conf *conf,
                              struct tls_load *l) NODISCARD;

#endif
