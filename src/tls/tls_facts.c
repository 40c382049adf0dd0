#include "tls/tls_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tls/tls_common_name.h"
#include "tls/tls_stream.h"

struct tls_facts_texts {
    char name[TLS_COMMON_NAME_BYTES];
    char fingerprint[2 * EVP_MAX_MD_SIZE + 1];
    const unsigned char *alpn;
    unsigned alpn_bytes;
    const char *group;
};

static void tls_facts_read_fingerprint(char *out, const X509 *certificate)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (X509_digest(certificate, EVP_sha256(), hash, &n) != 1)
        n = 0;
    for (unsigned i = 0; i < n; i++) {
        *out++ = digits[hash[i] >> 4];
        *out++ = digits[hash[i] & 0xf];
    }
    *out = '\0';
}

static void tls_facts_read_certificate(struct tls_facts_texts *texts, const SSL *ssl)
{
    X509 *certificate = SSL_get0_peer_certificate(ssl);

    if (!certificate)
        return;
    (void)tls_common_name(texts->name, certificate);
    tls_facts_read_fingerprint(texts->fingerprint, certificate);
}

/* Append ${text} at ${at} and return the copy; NULL if it is empty. */
static const char *tls_facts_keep(char **at, const char *text, size_t len)
{
    char *copy = *at;

    if (len == 0)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

/* The context of ${ssl} has the name, and may end before the facts: a reload replaces it. */
static const char *tls_facts_group(SSL *ssl)
{
    const char *name = SSL_group_to_name(ssl, (int)SSL_get_negotiated_group(ssl));

    return name ? name : "";
}

static void tls_facts_fill(struct tls_facts *f, const struct tls_facts_texts *texts, SSL *ssl)
{
    char *at = f->storage;

    *f = (struct tls_facts){.version = SSL_get_version(ssl),
                            .cipher = SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)),
                            .resumed = SSL_session_reused(ssl) == 1,
                            .has_certificate = SSL_get0_peer_certificate(ssl) != NULL};
    f->verify = f->has_certificate ? (uint32_t)SSL_get_verify_result(ssl) : 1;
    f->group = tls_facts_keep(&at, texts->group, strlen(texts->group));
    f->alpn = tls_facts_keep(&at, (const char *)texts->alpn, texts->alpn_bytes);
    f->name = tls_facts_keep(&at, texts->name, strlen(texts->name));
    f->fingerprint = tls_facts_keep(&at, texts->fingerprint, strlen(texts->fingerprint));
}

int tls_facts_create(struct tls_facts **out, const struct tls_stream *st)
{
    struct tls_facts_texts texts = {.name = "", .fingerprint = ""};
    SSL *ssl = tls_stream_ssl(st);
    size_t bytes;

    SSL_get0_alpn_selected(ssl, &texts.alpn, &texts.alpn_bytes);
    tls_facts_read_certificate(&texts, ssl);
    texts.group = tls_facts_group(ssl);
    bytes = strlen(texts.group) + texts.alpn_bytes + strlen(texts.name) +
            strlen(texts.fingerprint) + 4; /* and NULs */
    *out = malloc(sizeof(**out) + bytes);
    if (!*out)
        return -ENOMEM;
    tls_facts_fill(*out, &texts, ssl);
    return 0;
}

size_t tls_facts_certificate(const struct tls_stream *st, uint8_t *out, size_t size)
{
    X509 *certificate = SSL_get0_peer_certificate(tls_stream_ssl(st));
    int n = certificate ? i2d_X509(certificate, NULL) : 0;

    return n > 0 && (size_t)n <= size ? (size_t)i2d_X509(certificate, &out) : 0;
}
