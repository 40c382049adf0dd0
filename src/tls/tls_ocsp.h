/*
 * tls/tls_ocsp: responses of CAs that a certificate is not revoked, which its clients get with it
 * (stapling). They are read from files: nothing is fetched.
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
 * "good", with a signature of the issuer if that is in the chain. One that is out of date is a
 * warning, and not used.
 *
 * Thread: any but loops, before ${t} is shared
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_ocsp_read(const struct tls_certificates *t, const char *path, struct tls_load *l) NODISCARD;

/*
 * tls_ocsp_staple(ssl, unused):
 * Send the response of the certificate that ${ssl} presents, unless its time has passed: a callback
 * of the library.
 *
 * Thread: that of ${ssl}
 * Errors: SSL_TLSEXT_ERR_OK; SSL_TLSEXT_ERR_NOACK (none)
 */
int tls_ocsp_staple(SSL *ssl, void *unused);

#endif
