#include "tls/tls_certificate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls/tls_pem.h"

struct tls_certificate {
    X509 *leaf;
    EVP_PKEY *key;
    STACK_OF(X509) * chain; /* without the leaf */
    int64_t from, to;       /* seconds since 1970 */
    char path[];
};

/* Limit of the issuers that a load remembers for sharing. */
#define TLS_CERTIFICATE_ISSUERS 64

/* ---- chain ---- */

static X509 *tls_certificate_take_issuer(STACK_OF(X509) * from, X509 *of)
{
    for (int i = 0; i < sk_X509_num(from); i++) {
        if (X509_check_issued(sk_X509_value(from, i), of) == X509_V_OK)
            return sk_X509_delete(from, i);
    }
    return NULL;
}

/*
 * Return the copy of ${x} in ${issuers}; if there is none, add ${x} and return it. Takes over the
 * caller's reference to ${x}; returns a reference.
 */
static X509 *tls_certificate_share(STACK_OF(X509) * issuers, X509 *x)
{
    int n = sk_X509_num(issuers);

    for (int i = 0; i < n; i++) {
        X509 *known = sk_X509_value(issuers, i);

        if (X509_cmp(known, x) != 0)
            continue;
        X509_up_ref(known);
        X509_free(x);
        return known;
    }
    if (n < TLS_CERTIFICATE_ISSUERS && sk_X509_push(issuers, x) > 0)
        X509_up_ref(x);
    return x;
}

/* Move the leaf, then its issuers one after the other, from ${from} to ${c}. */
static int tls_certificate_take(struct tls_certificate *c, STACK_OF(X509) * from,
                                STACK_OF(X509) * issuers)
{
    X509 *last;

    c->chain = sk_X509_new_null();
    c->leaf = last = sk_X509_shift(from);
    if (!c->chain)
        return -ENOMEM;
    while (X509_check_issued(last, last) != X509_V_OK) {
        X509 *issuer = tls_certificate_take_issuer(from, last);

        if (!issuer)
            return 0;
        issuer = tls_certificate_share(issuers, issuer);
        if (!sk_X509_push(c->chain, issuer)) {
            X509_free(issuer);
            return -ENOMEM;
        }
        last = issuer;
    }
    return 0;
}

/*
 * Does the file lack the intermediate certificate, which clients do not have? A certificate that
 * says where to fetch its issuer (RFC 5280, 4.2.2.1) was not signed by a root.
 */
static bool tls_certificate_lacks_issuer(const struct tls_certificate *c)
{
    return sk_X509_num(c->chain) == 0 && X509_check_issued(c->leaf, c->leaf) != X509_V_OK &&
           X509_get_ext_by_NID(c->leaf, NID_info_access, -1) >= 0;
}

/* ---- load ---- */

static int tls_certificate_time(int64_t *out, const ASN1_TIME *t)
{
    struct tm tm;

    if (ASN1_TIME_to_tm(t, &tm) != 1)
        return -EINVAL;
    *out = timegm(&tm);
    return 0;
}

static int tls_certificate_fill(struct tls_certificate *c, struct tls_pem *pem,
                                STACK_OF(X509) * issuers, struct tls_load *l)
{
    if (sk_X509_num(pem->certificates) == 0)
        return tls_load_refuse(l, "%s: there is no certificate", c->path);
    if (!pem->key)
        return tls_load_refuse(l, "%s: there is no private key (in it, in %s.key, or set key)",
                               c->path, c->path);
    if (tls_certificate_take(c, pem->certificates, issuers) < 0)
        return tls_load_memory(l);
    if (sk_X509_num(pem->certificates) > 0)
        return tls_load_refuse(l,
                               "%s: certificate %d is not of the chain (first the certificate of "
                               "the key, then its issuers)",
                               c->path, sk_X509_num(c->chain) + 2);
    if (!X509_check_private_key(c->leaf, pem->key))
        return tls_load_refuse(l, "%s: the key is not that of the certificate: %s", c->path,
                               tls_load_library());
    if (tls_certificate_time(&c->from, X509_get0_notBefore(c->leaf)) < 0 ||
        tls_certificate_time(&c->to, X509_get0_notAfter(c->leaf)) < 0)
        return tls_load_refuse(l, "%s: its dates cannot be read", c->path);
    if (tls_certificate_lacks_issuer(c))
        tls_load_warn(l, "%s: the chain is incomplete: the certificate of its issuer is missing",
                      c->path);
    c->key = pem->key;
    pem->key = NULL;
    return 0;
}

static int tls_certificate_read_key(struct tls_pem *pem, const char *path, struct tls_load *l)
{
    struct tls_pem file;
    int rc = tls_pem_read(&file, path, l);

    if (rc < 0)
        return rc;
    if (!file.key)
        rc = tls_load_refuse(l, "%s: there is no private key", path);
    EVP_PKEY_free(pem->key);
    pem->key = file.key;
    file.key = NULL;
    pem->others_read = file.others_read;
    tls_pem_free(&file);
    if (rc == 0 && pem->others_read)
        tls_load_warn(l, "%s: all users can read the key (chmod o-r)", path);
    return rc;
}

/* Look for the key of a.pem where HAProxy does: in a.pem.key, then in a.key. */
static int tls_certificate_read_key_beside(struct tls_pem *pem, const char *path,
                                           struct tls_load *l)
{
    const char *end = strrchr(path, '.');
    char beside[PATH_MAX];

    snprintf(beside, sizeof(beside), "%s.key", path);
    tls_load_note(l, beside);
    if (access(beside, F_OK) < 0 && end && !strchr(end, '/')) {
        snprintf(beside, sizeof(beside), "%.*s.key", (int)(end - path), path);
        tls_load_note(l, beside);
    }
    if (access(beside, F_OK) < 0 || strcmp(beside, path) == 0)
        return 0;
    return tls_certificate_read_key(pem, beside, l);
}

static int tls_certificate_read(struct tls_pem *pem, const struct tls_certificate_files *files,
                                struct tls_load *l)
{
    int rc = tls_pem_read(pem, files->certificate, l);

    if (rc < 0)
        return rc;
    if (files->key)
        rc = tls_certificate_read_key(pem, files->key, l);
    else if (!pem->key)
        rc = tls_certificate_read_key_beside(pem, files->certificate, l);
    else if (pem->others_read)
        tls_load_warn(l, "%s: all users can read the key (chmod o-r)", files->certificate);
    if (rc < 0)
        tls_pem_free(pem);
    return rc;
}

int tls_certificate_load(struct tls_certificate **out, const struct tls_certificate_files *files,
                         STACK_OF(X509) * issuers, struct tls_load *l)
{
    size_t path_bytes = strlen(files->certificate) + 1;
    struct tls_certificate *c;
    struct tls_pem pem;
    int rc = tls_certificate_read(&pem, files, l);

    if (rc < 0)
        return rc;
    c = calloc(1, sizeof(*c) + path_bytes);
    if (c) {
        memcpy(c->path, files->certificate, path_bytes);
        rc = tls_certificate_fill(c, &pem, issuers, l);
    } else {
        rc = tls_load_memory(l);
    }
    tls_pem_free(&pem);
    if (rc < 0)
        tls_certificate_destroy(c);
    else
        *out = c;
    return rc;
}

void tls_certificate_destroy(struct tls_certificate *c)
{
    if (!c)
        return;
    X509_free(c->leaf);
    EVP_PKEY_free(c->key);
    sk_X509_pop_free(c->chain, X509_free);
    free(c);
}

/* ---- use ---- */

int tls_certificate_use_in(const struct tls_certificate *c, SSL_CTX *ctx)
{
    return SSL_CTX_use_cert_and_key(ctx, c->leaf, c->key, c->chain, 1) == 1 ? 0 : -EINVAL;
}

int tls_certificate_use(const struct tls_certificate *c, SSL *ssl)
{
    return SSL_use_cert_and_key(ssl, c->leaf, c->key, c->chain, 1) == 1 ? 0 : -EINVAL;
}

enum tls_key_kind tls_certificate_kind(const struct tls_certificate *c)
{
    switch (EVP_PKEY_get_base_id(c->key)) {
    case EVP_PKEY_EC: return TLS_KEY_EC;
    case EVP_PKEY_RSA: return TLS_KEY_RSA;
    default: return TLS_KEY_OTHER;
    }
}

int64_t tls_certificate_expires_at(const struct tls_certificate *c)
{
    return c->to;
}

bool tls_certificate_is_current(const struct tls_certificate *c, int64_t now)
{
    return now >= c->from && now <= c->to;
}

bool tls_certificate_same(const struct tls_certificate *a, const struct tls_certificate *b)
{
    return X509_cmp(a->leaf, b->leaf) == 0;
}

X509 *tls_certificate_leaf(const struct tls_certificate *c)
{
    return c->leaf;
}

X509 *tls_certificate_issuer(const struct tls_certificate *c)
{
    return sk_X509_num(c->chain) > 0 ? sk_X509_value(c->chain, 0) : NULL;
}

const char *tls_certificate_path(const struct tls_certificate *c)
{
    return c->path;
}
