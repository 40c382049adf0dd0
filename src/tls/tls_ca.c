#include "tls/tls_ca.h"

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "base/must.h"
#include "tls/tls_common_name.h"
#include "tls/tls_failure.h"
#include "tls/tls_pem.h"
#include "tls/tls_stream.h"

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

static void tls_ca_check_dates(const X509_CRL *crl, const char *path, struct tls_load *l)
{
    const ASN1_TIME *until = X509_CRL_get0_nextUpdate(crl);
    char issuer[128] = "?";

    X509_NAME_oneline(X509_CRL_get_issuer(crl), issuer, sizeof(issuer));
    if (until && X509_cmp_current_time(until) < 0)
        tls_load_warn(l, "%s: the revocation list of %s has expired: its certificates are refused",
                      path, issuer);
    else if (X509_cmp_current_time(X509_CRL_get0_lastUpdate(crl)) > 0)
        tls_load_warn(l, "%s: the revocation list of %s is not yet valid", path, issuer);
}

int tls_ca_revoke(SSL_CTX *ctx, const char *path, struct tls_load *l)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    struct tls_pem pem;
    int rc = tls_pem_read(&pem, path, l);

    if (rc == 0 && sk_X509_CRL_num(pem.crls) == 0)
        rc = tls_load_refuse(l, "%s: there is no revocation list", path);
    for (int i = 0; rc == 0 && i < sk_X509_CRL_num(pem.crls); i++) {
        X509_CRL *crl = sk_X509_CRL_value(pem.crls, i);

        tls_ca_check_dates(crl, path, l);
        if (X509_STORE_add_crl(store, crl) != 1)
            rc = tls_load_memory(l);
    }
    if (rc == 0)
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    tls_pem_free(&pem);
    return rc;
}

/* Append to ${reason}, if a certificate has another name, the name that was wanted. */
static void tls_ca_add_wanted(char *reason, size_t size, X509_STORE_CTX *ctx)
{
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    int error = X509_STORE_CTX_get_error(ctx);
    size_t len = strlen(reason);
    char *ip = NULL;

    if (error == X509_V_ERR_IP_ADDRESS_MISMATCH)
        ip = X509_VERIFY_PARAM_get1_ip_asc(param);
    if (ip)
        snprintf(reason + len, size - len, ", wanted: %s", ip);
    else if (error == X509_V_ERR_HOSTNAME_MISMATCH && X509_VERIFY_PARAM_get0_host(param, 0))
        snprintf(reason + len, size - len, ", wanted: %s", X509_VERIFY_PARAM_get0_host(param, 0));
    OPENSSL_free(ip);
}

int tls_ca_tell_refused(int ok, X509_STORE_CTX *ctx)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    const X509 *x = X509_STORE_CTX_get_current_cert(ctx);
    char name[TLS_COMMON_NAME_BYTES] = "", reason[TLS_FAILURE_REASON_BYTES];
    BIGNUM *serial;
    char *digits;

    if (ok || !x)
        return ok;
    (void)tls_common_name(name, x);
    serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
    digits = serial ? BN_bn2hex(serial) : NULL;
    snprintf(reason, sizeof(reason), "%s: certificate of '%s', serial %s",
             X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)), name,
             digits ? digits : "?");
    tls_ca_add_wanted(reason, sizeof(reason), ctx);
    OPENSSL_free(digits);
    BN_free(serial);
    tls_stream_note_reason(ssl, reason);
    return ok;
}
