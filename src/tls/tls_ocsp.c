#include "tls/tls_ocsp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/ocsp.h>

/* A response, attached to the X509 of its certificate; the X509 frees it. */
struct tls_ocsp {
    int64_t until; /* end of validity, in seconds since 1970 */
    int bytes;
    unsigned char der[];
};

/* How much the CA's clock may differ from ours. */
#define TLS_OCSP_SKEW_SECONDS 300

static int tls_ocsp_index = -1;

static void tls_ocsp_free(void *parent, void *response, CRYPTO_EX_DATA *data, int index,
                          long unused, void *cookie)
{
    (void)parent, (void)data, (void)index, (void)unused, (void)cookie;
    free(response);
}

static void tls_ocsp_get_index(void)
{
    tls_ocsp_index = X509_get_ex_new_index(0, NULL, NULL, NULL, tls_ocsp_free);
}

static bool tls_ocsp_is_for(const OCSP_SINGLERESP *single, const struct tls_certificate *c)
{
    OCSP_CERTID *id = (OCSP_CERTID *)OCSP_SINGLERESP_get0_id(single), *ours;
    X509 *issuer = tls_certificate_issuer(c), *leaf = tls_certificate_leaf(c);
    ASN1_INTEGER *serial;
    ASN1_OBJECT *digest;
    bool same;

    OCSP_id_get0_info(NULL, &digest, NULL, &serial, id);
    if (ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) != 0 || !issuer)
        return ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) == 0;
    ours = OCSP_cert_to_id(EVP_get_digestbyobj(digest), leaf, issuer);
    same = ours && OCSP_id_cmp(ours, id) == 0;
    OCSP_CERTID_free(ours);
    return same;
}

static const struct tls_certificate *tls_ocsp_find(const struct tls_certificates *t,
                                                   const OCSP_SINGLERESP *single)
{
    for (unsigned i = 0; i < tls_certificates_n(t); i++)
        if (tls_ocsp_is_for(single, tls_certificates_at(t, i)))
            return tls_certificates_at(t, i);
    return NULL;
}

/* Is the response signed by ${issuer}, or by a responder that ${issuer} has certified? */
static bool tls_ocsp_is_signed(OCSP_BASICRESP *basic, X509 *issuer)
{
    X509_STORE *store = X509_STORE_new();
    STACK_OF(X509) *signers = sk_X509_new_null();
    bool is_signed = store && signers && sk_X509_push(signers, issuer) > 0 &&
                     X509_STORE_add_cert(store, issuer) == 1 &&
                     X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1 &&
                     OCSP_basic_verify(basic, signers, store, 0) == 1;

    sk_X509_free(signers);
    X509_STORE_free(store);
    return is_signed;
}

static int tls_ocsp_keep(const struct tls_certificate *c, const struct file_content *f,
                         const ASN1_GENERALIZEDTIME *until)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
    struct tls_ocsp *o = malloc(sizeof(*o) + f->len);
    struct tm tm;

    if (!o || !CRYPTO_THREAD_run_once(&once, tls_ocsp_get_index) || tls_ocsp_index < 0 ||
        ASN1_TIME_to_tm(until, &tm) != 1) {
        free(o);
        return -ENOMEM;
    }
    o->until = timegm(&tm);
    o->bytes = (int)f->len;
    memcpy(o->der, f->bytes, f->len);
    free(X509_get_ex_data(tls_certificate_leaf(c), tls_ocsp_index));
    if (X509_set_ex_data(tls_certificate_leaf(c), tls_ocsp_index, o) == 1)
        return 0;
    free(o);
    return -ENOMEM;
}

static int tls_ocsp_use(const struct tls_certificates *t, OCSP_BASICRESP *basic,
                        const struct file_content *f, const char *path, struct tls_load *l)
{
    OCSP_SINGLERESP *single = OCSP_resp_get0(basic, 0);
    const struct tls_certificate *c = single ? tls_ocsp_find(t, single) : NULL;
    ASN1_GENERALIZEDTIME *since, *until;
    int reason;

    if (!c)
        return tls_load_refuse(l, "%s: is for no certificate of this section", path);
    if (tls_certificate_issuer(c) && !tls_ocsp_is_signed(basic, tls_certificate_issuer(c)))
        return tls_load_refuse(l, "%s: is not signed by the issuer: %s", path, tls_load_library());
    if (OCSP_single_get0_status(single, &reason, NULL, &since, &until) != V_OCSP_CERTSTATUS_GOOD)
        return tls_load_refuse(l, "%s: says that %s is revoked or unknown", path,
                               tls_certificate_path(c));
    if (until && OCSP_check_validity(since, until, TLS_OCSP_SKEW_SECONDS, -1) == 1)
        return tls_ocsp_keep(c, f, until) < 0 ? tls_load_memory(l) : 0;
    tls_load_warn(l, "%s: is out of date, and is not sent", path);
    return 0;
}

int tls_ocsp_read(const struct tls_certificates *t, const char *path, struct tls_load *l)
{
    struct file_content f;
    const unsigned char *at;
    OCSP_RESPONSE *response;
    OCSP_BASICRESP *basic = NULL;
    int rc = tls_load_read(l, &f, path);

    if (rc < 0)
        return rc;
    at = (const unsigned char *)f.bytes;
    response = d2i_OCSP_RESPONSE(NULL, &at, (long)f.len);
    if (response && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL)
        basic = OCSP_response_get1_basic(response);
    rc = basic ? tls_ocsp_use(t, basic, &f, path, l)
               : tls_load_refuse(l, "%s: is no response of OCSP (DER)", path);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    free(f.bytes);
    return rc;
}

int tls_ocsp_staple(SSL *ssl, void *unused)
{
    X509 *x = SSL_get_certificate(ssl);
    const struct tls_ocsp *o =
        x && tls_ocsp_index >= 0 ? X509_get_ex_data(x, tls_ocsp_index) : NULL;
    unsigned char *copy;

    (void)unused;
    if (!o || time(NULL) > o->until)
        return SSL_TLSEXT_ERR_NOACK;
    copy = OPENSSL_memdup(o->der, (size_t)o->bytes);
    if (!copy)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, o->bytes); /* takes over `copy` */
    return SSL_TLSEXT_ERR_OK;
}
