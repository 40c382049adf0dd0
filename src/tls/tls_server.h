/*
 * tls/tls_server: the library's context that accepts clients, and what its callbacks need.
 *
 * The context owns that, so an SSL of it works when the profile is gone.
 */
#ifndef TLS_TLS_SERVER_H
#define TLS_TLS_SERVER_H

#include <openssl/types.h>

#include "base/must.h"
#include "tls/tls_profile.h"
#include "tls/tls_why.h"

/*
 * tls_server_create(out, conf, why):
 * Create a context that accepts clients, with its certificates.
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${why}); -ENOMEM
 */
int tls_server_create(SSL_CTX **out, const struct tls_profile_conf *conf,
                      const struct tls_why *why) NODISCARD;

#endif
