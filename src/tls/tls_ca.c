#include "tls/tls_ca.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "base/must.h"
#include "tls/tls_pem.h"

/*
 * Parse the certificates' extensions now. The library would parse them at their first use, in
 * memory that threads share, and ThreadSanitizer does not see the library's atomics.
 */
static void tls_ca_parse(SSL_CTX *ctx)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));

    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *x = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));

        if (x)
            (void)X509_check_purpose(x, -1, 0);
    }
}

static int tls_ca_add(SSL_CTX *ctx, const char *path, bool ask, struct tls_load *l)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    struct tls_pem pem;
    int rc = tls_pem_read(&pem, path, l);

    if (rc == 0 && sk_X509_num(pem.certificates) == 0)
        rc = tls_load_refuse(l, "%s: there is no certificate", path);
    for (int i = 0; rc == 0 && i < sk_X509_num(pem.certificates); i++) {
        X509 *x = sk_X509_value(pem.certificates, i);

        if (X509_STORE_add_cert(store, x) != 1 || (ask && SSL_CTX_add_client_CA(ctx, x) != 1))
            rc = tls_load_memory(l);
    }
    tls_pem_free(&pem);
    tls_ca_parse(ctx);
    return rc;
}

/*
 * Load the CA file of Debian or Fedora, else the library's default paths, whose directory is read
 * during handshakes.
 */
int tls_ca_trust_system(SSL_CTX *ctx, struct tls_load *l)
{
    static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
                                          "/etc/pki/tls/certs/ca-bundle.crt"};

    for (unsigned i = 0; i < ARRAY_LEN(bundles); i++) {
        if (SSL_CTX_load_verify_file(ctx, bundles[i]) == 1) {
            tls_ca_parse(ctx);
            return 0;
        }
        ERR_clear_error();
    }
    return SSL_CTX_set_default_verify_paths(ctx) == 1 ? 0 : tls_load_memory(l);
}

int tls_ca_trust(SSL_CTX *ctx, const char *path, struct tls_load *l)
{
    return tls_ca_add(ctx, path, false, l);
}

int tls_ca_ask(SSL_CTX *ctx, const char *path, struct tls_load *l)
{
    return tls_ca_add(ctx, path, true, l);
}

int tls_ca_revoke(SSL_CTX *ctx, const char *path, struct tls_load *l)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    struct tls_pem pem;
    int rc = tls_pem_read(&pem, path, l);

    if (rc == 0 && sk_X509_CRL_num(pem.crls) == 0)
        rc = tls_load_refuse(l, "%s: there is no revocation list", path);
    for (int i = 0; rc == 0 && i < sk_X509_CRL_num(pem.crls); i++) {
        if (X509_STORE_add_crl(store, sk_X509_CRL_value(pem.crls, i)) != 1)
            rc = tls_load_memory(l);
    }
    if (rc == 0)
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    tls_pem_free(&pem);
    return rc;
}
