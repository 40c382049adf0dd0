#include "tls/tls_pem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/read_file.h"

struct tls_pem_part {
    char *name, *header;
    unsigned char *data;
    long len;
};

static int tls_pem_add_certificate(struct tls_pem *p, const struct tls_pem_part *part,
                                   const char *path, struct tls_load *l)
{
    const unsigned char *at = part->data;
    X509 *x = d2i_X509(NULL, &at, part->len);

    if (!x)
        return tls_load_refuse(l, "%s: certificate %d is broken: %s", path,
                               sk_X509_num(p->certificates) + 1, tls_load_library());
    if (sk_X509_push(p->certificates, x) > 0)
        return 0;
    X509_free(x);
    return tls_load_memory(l);
}

static int tls_pem_add_crl(struct tls_pem *p, const struct tls_pem_part *part, const char *path,
                           struct tls_load *l)
{
    const unsigned char *at = part->data;
    X509_CRL *crl = d2i_X509_CRL(NULL, &at, part->len);

    if (!crl)
        return tls_load_refuse(l, "%s: revocation list %d is broken: %s", path,
                               sk_X509_CRL_num(p->crls) + 1, tls_load_library());
    if (sk_X509_CRL_push(p->crls, crl) > 0)
        return 0;
    X509_CRL_free(crl);
    return tls_load_memory(l);
}

static int tls_pem_add_key(struct tls_pem *p, const struct tls_pem_part *part, const char *path,
                           struct tls_load *l)
{
    const unsigned char *at = part->data;

    if (strncmp(part->name, "ENCRYPTED", 9) == 0 || strstr(part->header, "ENCRYPTED"))
        return tls_load_refuse(l, "%s: the key has a passphrase (remove it: openssl pkey)", path);
    if (p->key)
        return tls_load_refuse(l, "%s: there are two keys (one)", path);
    p->key = d2i_AutoPrivateKey(NULL, &at, part->len);
    if (!p->key)
        return tls_load_refuse(l, "%s: the key is broken: %s", path, tls_load_library());
    return 0;
}

static bool tls_pem_ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), tail = strlen(end);

    return len >= tail && strcmp(name + len - tail, end) == 0;
}

static int tls_pem_add(struct tls_pem *p, const struct tls_pem_part *part, const char *path,
                       struct tls_load *l)
{
    if (tls_pem_ends_in(part->name, "PRIVATE KEY"))
        return tls_pem_add_key(p, part, path, l);
    if (strcmp(part->name, PEM_STRING_X509) == 0 || strcmp(part->name, PEM_STRING_X509_OLD) == 0)
        return tls_pem_add_certificate(p, part, path, l);
    if (strcmp(part->name, PEM_STRING_X509_CRL) == 0)
        return tls_pem_add_crl(p, part, path, l);
    return 0;
}

/* Read the next part; returns 1, 0 at the end of the file, or -EINVAL. */
static int tls_pem_next(struct tls_pem_part *part, BIO *file, const char *path, struct tls_load *l)
{
    if (PEM_read_bio(file, &part->name, &part->header, &part->data, &part->len))
        return 1;
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return tls_load_refuse(l, "%s: is no PEM file: %s", path, tls_load_library());
    ERR_clear_error();
    return 0;
}

static int tls_pem_read_parts(struct tls_pem *p, BIO *file, const char *path, struct tls_load *l)
{
    struct tls_pem_part part;
    int rc;

    for (;;) {
        rc = tls_pem_next(&part, file, path, l);
        if (rc <= 0)
            return rc;
        rc = tls_pem_add(p, &part, path, l);
        OPENSSL_free(part.name);
        OPENSSL_free(part.header);
        OPENSSL_clear_free(part.data, (size_t)part.len);
        if (rc < 0)
            return rc;
    }
}

int tls_pem_read(struct tls_pem *out, const char *path, struct tls_load *l)
{
    struct file_content content;
    BIO *file = NULL;
    int rc = tls_load_read(l, &content, path);

    *out = (struct tls_pem){.key = NULL};
    if (rc < 0)
        return rc;
    out->others_read = content.others_read;
    out->certificates = sk_X509_new_null();
    out->crls = sk_X509_CRL_new_null();
    file = BIO_new_mem_buf(content.bytes, (int)content.len);
    if (out->certificates && out->crls && file)
        rc = tls_pem_read_parts(out, file, path, l);
    else
        rc = tls_load_memory(l);
    BIO_free(file);
    OPENSSL_cleanse(content.bytes, content.len);
    free(content.bytes);
    if (rc < 0)
        tls_pem_free(out);
    return rc;
}

void tls_pem_free(struct tls_pem *p)
{
    sk_X509_pop_free(p->certificates, X509_free);
    sk_X509_CRL_pop_free(p->crls, X509_CRL_free);
    EVP_PKEY_free(p->key);
    *p = (struct tls_pem){.key = NULL};
}
