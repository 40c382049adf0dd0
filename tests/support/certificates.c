#include "support/certificates.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <check.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#define DAY (24L * 3600)

static void add_extension(X509 *x, X509V3_CTX *ctx, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, ctx, nid, value);

    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

static void add_extensions(X509 *x, const struct certificate_wish *wish)
{
    X509V3_CTX ctx;
    char hosts[256];

    X509V3_set_ctx(&ctx, wish->issuer ? wish->issuer->x509 : x, x, NULL, NULL, 0);
    add_extension(x, &ctx, NID_basic_constraints, wish->is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    add_extension(x, &ctx, NID_subject_key_identifier, "hash");
    if (wish->is_ca)
        return;
    snprintf(hosts, sizeof(hosts), "DNS:%s", wish->name);
    add_extension(x, &ctx, NID_subject_alt_name, wish->hosts ? wish->hosts : hosts);
}

static void set_serial(X509 *x)
{
    unsigned char bytes[8];
    BIGNUM *n;

    ck_assert_int_eq(RAND_bytes(bytes, sizeof(bytes)), 1);
    bytes[0] &= 0x7f;
    n = BN_bin2bn(bytes, sizeof(bytes), NULL);
    ck_assert_ptr_nonnull(BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)));
    BN_free(n);
}

static void set_name(X509 *x, const struct certificate_wish *wish)
{
    const struct certificate_name in_ascii = {MBSTRING_ASC, wish->name, -1},
                                  *cn = wish->common_name ? wish->common_name : &in_ascii;

    ck_assert_int_eq(X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", cn->type,
                                                (const unsigned char *)cn->bytes, cn->len, -1, 0),
                     1);
}

void certificates_make(struct certificate *out, const struct certificate_wish *wish)
{
    bool is_usual = wish->from_days == 0 && wish->to_days == 0;
    X509 *x = X509_new();
    const struct certificate *by;

    ck_assert_ptr_nonnull(x);
    out->x509 = x;
    out->key = wish->key_of ? wish->key_of->key : NULL;
    if (out->key)
        EVP_PKEY_up_ref(out->key);
    else
        out->key = wish->is_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    ck_assert_ptr_nonnull(out->key);
    by = wish->issuer ? wish->issuer : out;
    ck_assert_int_eq(X509_set_version(x, X509_VERSION_3), 1);
    set_serial(x);
    X509_gmtime_adj(X509_getm_notBefore(x), DAY * (is_usual ? -1 : wish->from_days));
    X509_gmtime_adj(X509_getm_notAfter(x), DAY * (is_usual ? 90 : wish->to_days));
    X509_set_pubkey(x, out->key);
    set_name(x, wish);
    X509_set_issuer_name(x, X509_get_subject_name(by->x509));
    add_extensions(x, wish);
    ck_assert_int_gt(X509_sign(x, by->key, EVP_sha256()), 0);
}

void certificates_free(struct certificate *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
    *c = (struct certificate){NULL, NULL};
}

void certificates_write(const char *path, const char *parts, ...)
{
    FILE *f = fopen(path, "w");
    va_list args;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(chmod(path, 0600), 0);
    va_start(args, parts);
    for (; *parts != '\0'; parts++) {
        const struct certificate *c = va_arg(args, const struct certificate *);

        if (*parts == 'c')
            ck_assert_int_eq(PEM_write_X509(f, c->x509), 1);
        else
            ck_assert_int_eq(PEM_write_PrivateKey(f, c->key, NULL, NULL, 0, NULL, NULL), 1);
    }
    va_end(args);
    ck_assert_int_eq(fclose(f), 0);
}

void certificates_write_crl(const char *path, const struct certificate *ca,
                            const struct certificate *revoked, long days)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -2 * DAY), *then = X509_gmtime_adj(NULL, days * DAY);
    FILE *f = fopen(path, "w");

    ck_assert(crl && now && then && f);
    X509_CRL_set_version(crl, 1);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->x509));
    X509_CRL_set1_lastUpdate(crl, now);
    X509_CRL_set1_nextUpdate(crl, then);
    if (revoked) {
        X509_REVOKED *r = X509_REVOKED_new();

        ck_assert_ptr_nonnull(r);
        X509_REVOKED_set_serialNumber(r, X509_get_serialNumber(revoked->x509));
        X509_REVOKED_set_revocationDate(r, now);
        ck_assert_int_eq(X509_CRL_add0_revoked(crl, r), 1);
    }
    X509_CRL_sort(crl);
    ck_assert_int_gt(X509_CRL_sign(crl, ca->key, EVP_sha256()), 0);
    ck_assert_int_eq(PEM_write_X509_CRL(f, crl), 1);
    ck_assert_int_eq(fclose(f), 0);
    X509_CRL_free(crl);
    ASN1_TIME_free(now);
    ASN1_TIME_free(then);
}
