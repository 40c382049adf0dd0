#include "tls/tls_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "tls/tls_ca.h"
#include "tls/tls_certificate.h"
#include "tls/tls_context.h"

/* Owned by the context (note: owner). */
struct tls_server {
    struct tls_certificate *certificate;
    unsigned alpn_bytes;
    unsigned char alpn[];
};

/* note: owner. Index of struct tls_server in the context, which frees it after its last SSL. */
static int tls_server_index = -1;

static void tls_server_free(void *parent, void *server, CRYPTO_EX_DATA *data, int index,
                            long unused, void *cookie)
{
    struct tls_server *s = server;

    (void)parent, (void)data, (void)index, (void)unused, (void)cookie;
    if (!s)
        return;
    tls_certificate_destroy(s->certificate);
    free(s);
}

static void tls_server_get_index(void)
{
    tls_server_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, tls_server_free);
}

static struct tls_server *tls_server_attach(SSL_CTX *ctx, const struct tls_profile_conf *conf)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
    struct tls_server *s = calloc(1, sizeof(*s) + conf->alpn_bytes);

    if (!s || !CRYPTO_THREAD_run_once(&once, tls_server_get_index) || tls_server_index < 0 ||
        SSL_CTX_set_ex_data(ctx, tls_server_index, s) != 1) {
        free(s);
        return NULL;
    }
    s->alpn_bytes = conf->alpn_bytes;
    if (conf->alpn_bytes > 0)
        memcpy(s->alpn, conf->alpn, conf->alpn_bytes);
    return s;
}

/* In the order of `alpn`. Without a common protocol: an alert (RFC 7301, 3.2). */
static int tls_server_choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                                  const unsigned char *offered, unsigned n, void *cookie)
{
    const struct tls_server *s = cookie;
    unsigned char *chosen;

    (void)ssl;
    if (SSL_select_next_proto(&chosen, out_len, s->alpn, s->alpn_bytes, offered, n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int tls_server_set_verify(SSL_CTX *ctx, const struct tls_profile_conf *conf,
                                 const struct tls_why *why)
{
    int mode = SSL_VERIFY_PEER;
    int rc;

    if (!conf->client_ca || conf->verify == TLS_VERIFY_OFF)
        return 0;
    if (conf->verify == TLS_VERIFY_REQUIRED)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ctx, mode, NULL);
    rc = tls_ca_ask(ctx, conf->client_ca, why);
    if (rc == 0 && conf->client_crl)
        rc = tls_ca_revoke(ctx, conf->client_crl, why);
    return rc;
}

/* A ticket is valid only where clients are verified in the same way. */
static int tls_server_set_session_context(SSL_CTX *ctx, const struct tls_profile_conf *conf,
                                          const struct tls_why *why)
{
    unsigned char id[EVP_MAX_MD_SIZE];
    unsigned n;

    if (EVP_Digest(conf->name, strlen(conf->name), id, &n, EVP_sha256(), NULL) != 1 ||
        SSL_CTX_set_session_id_context(ctx, id, n) != 1)
        return tls_why_memory(why);
    return 0;
}

static int tls_server_set_certificate(SSL_CTX *ctx, struct tls_server *s,
                                      const struct tls_profile_conf *conf,
                                      const struct tls_why *why)
{
    const struct tls_certificate_files files = {.certificate = conf->certificates.list[0],
                                                .key =
                                                    conf->keys.n > 0 ? conf->keys.list[0] : NULL};
    int rc = tls_certificate_load(&s->certificate, &files, why);

    if (rc == 0 && tls_certificate_use_in(s->certificate, ctx) < 0)
        rc = tls_why_refuse(why, "%s: cannot be used: %s", files.certificate, tls_why_library());
    return rc;
}

static int tls_server_fill(SSL_CTX *ctx, const struct tls_profile_conf *conf,
                           const struct tls_why *why)
{
    struct tls_server *s = tls_server_attach(ctx, conf);
    int rc = s ? tls_server_set_certificate(ctx, s, conf, why) : tls_why_memory(why);

    if (rc == 0)
        rc = tls_server_set_verify(ctx, conf, why);
    if (rc == 0)
        rc = tls_server_set_session_context(ctx, conf, why);
    if (rc == 0 && conf->alpn_bytes > 0)
        SSL_CTX_set_alpn_select_cb(ctx, tls_server_choose_alpn, s);
    return rc;
}

int tls_server_create(SSL_CTX **out, const struct tls_profile_conf *conf, const struct tls_why *why)
{
    SSL_CTX *ctx;
    int rc = tls_context_create(&ctx, TLS_server_method(), conf, why);

    if (rc < 0)
        return rc;
    rc = tls_server_fill(ctx, conf, why);
    if (rc < 0)
        SSL_CTX_free(ctx);
    else
        *out = ctx;
    return rc;
}
