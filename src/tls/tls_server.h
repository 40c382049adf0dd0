/*
 * tls/tls_server: the library's context that accepts clients, and the data of its callbacks.
 *
 * The context owns these data, so an SSL of this context works after the profile is freed.
 */
#ifndef TLS_TLS_SERVER_H
#define TLS_TLS_SERVER_H

#include <openssl/types.h>

#include "base/must.h"
#include "tls/tls_profile_conf.h"
#include "tls/tls_certificates.h"
#include "tls/tls_load.h"

/*
 * tls_server_create(out, conf, certificates, l):
 * Create a context that accepts clients, with ${certificates}.
 *
 * Thread: any but loops
 * Owns:   ${out} has a reference to ${certificates}
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_server_create(SSL_CTX **out, const struct tls_profile_conf *conf,
                      struct tls_certificates *certificates, struct tls_load *l) NODISCARD;

#endif
