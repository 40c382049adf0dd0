/*
 * tls/tls_ocsp: OCSP stapling: a CA's statement that a certificate is not revoked is sent to
 * clients with the certificate. Responses are read from files, never fetched.
 */
#ifndef TLS_TLS_OCSP_H
#define TLS_TLS_OCSP_H

#include <openssl/ssl.h>

#include "base/must.h"
#include "tls/tls_certificates.h"
#include "tls/tls_load.h"

/*
 * tls_ocsp_read(t, path, l):
 * Read a response (DER) and keep it with the certificate of ${t} that it is for. It must say
 * "good", and be signed by the issuer if the chain has the issuer. An outdated response causes a
 * warning and is not used.
 *
 * Thread: any but loops, before other threads can use ${t}
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_ocsp_read(const struct tls_certificates *t, const char *path, struct tls_load *l) NODISCARD;

/*
 * tls_ocsp_staple(ssl, unused):
 * Callback of the library: send the response for the certificate that ${ssl} presents, if it is
 * still valid.
 *
 * Thread: owner of ${ssl}
 * Errors: SSL_TLSEXT_ERR_OK; SSL_TLSEXT_ERR_NOACK (nothing is sent)
 */
int tls_ocsp_staple(SSL *ssl, void *unused);

#endif
