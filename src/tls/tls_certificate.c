#include "tls/tls_certificate.h"

#include <errno.h>
#include <stdlib.h>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls/tls_pem.h"

struct tls_certificate {
    X509 *leaf;
    EVP_PKEY *key;
    STACK_OF(X509) * chain; /* without the leaf */
};

static X509 *tls_certificate_take_issuer(STACK_OF(X509) * from, X509 *of)
{
    for (int i = 0; i < sk_X509_num(from); i++) {
        if (X509_check_issued(sk_X509_value(from, i), of) == X509_V_OK)
            return sk_X509_delete(from, i);
    }
    return NULL;
}

static bool tls_certificate_is_self_issued(X509 *x)
{
    return X509_check_issued(x, x) == X509_V_OK;
}

/* Take the leaf and its issuers, in this order, from ${from}. */
static int tls_certificate_take(struct tls_certificate *c, STACK_OF(X509) * from)
{
    X509 *last;

    c->chain = sk_X509_new_null();
    c->leaf = last = sk_X509_shift(from);
    if (!c->chain)
        return -ENOMEM;
    while (!tls_certificate_is_self_issued(last)) {
        X509 *issuer = tls_certificate_take_issuer(from, last);

        if (!issuer)
            return 0;
        if (!sk_X509_push(c->chain, issuer)) {
            X509_free(issuer);
            return -ENOMEM;
        }
        last = issuer;
    }
    return 0;
}

static int tls_certificate_fill(struct tls_certificate *c, struct tls_pem *pem,
                                const struct tls_certificate_files *files,
                                const struct tls_why *why)
{
    if (sk_X509_num(pem->certificates) == 0)
        return tls_why_refuse(why, "%s: there is no certificate", files->certificate);
    if (!pem->key)
        return tls_why_refuse(why, "%s: there is no private key",
                              files->key ? files->key : files->certificate);
    if (tls_certificate_take(c, pem->certificates) < 0)
        return tls_why_memory(why);
    if (sk_X509_num(pem->certificates) > 0)
        return tls_why_refuse(why,
                              "%s: a certificate is not part of the chain (first the "
                              "certificate of the key, then its issuers)",
                              files->certificate);
    if (!X509_check_private_key(c->leaf, pem->key))
        return tls_why_refuse(why, "%s: is not the certificate of the key%s%s: %s",
                              files->certificate, files->key ? " in " : "",
                              files->key ? files->key : "", tls_why_library());
    c->key = pem->key;
    pem->key = NULL;
    return 0;
}

/* The key of ${path} replaces that of the certificate's file. */
static int tls_certificate_read_key(struct tls_pem *pem, const char *path,
                                    const struct tls_why *why)
{
    struct tls_pem file;
    int rc = tls_pem_read(&file, path, why);

    if (rc < 0)
        return rc;
    EVP_PKEY_free(pem->key);
    pem->key = file.key;
    file.key = NULL;
    tls_pem_free(&file);
    return 0;
}

int tls_certificate_load(struct tls_certificate **out, const struct tls_certificate_files *files,
                         const struct tls_why *why)
{
    struct tls_certificate *c;
    struct tls_pem pem;
    int rc = tls_pem_read(&pem, files->certificate, why);

    if (rc < 0)
        return rc;
    if (files->key)
        rc = tls_certificate_read_key(&pem, files->key, why);
    c = calloc(1, sizeof(*c));
    if (rc == 0)
        rc = c ? tls_certificate_fill(c, &pem, files, why) : tls_why_memory(why);
    tls_pem_free(&pem);
    if (rc < 0) {
        tls_certificate_destroy(c);
        return rc;
    }
    *out = c;
    return 0;
}

int tls_certificate_use_in(struct tls_certificate *c, SSL_CTX *ctx)
{
    return SSL_CTX_use_cert_and_key(ctx, c->leaf, c->key, c->chain, 1) == 1 ? 0 : -EINVAL;
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
