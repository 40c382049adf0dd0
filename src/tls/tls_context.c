#include "tls/tls_context.h"

#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tls/tls_ca.h"
#include "tls/tls_sessions.h"

/*
 * Forward secrecy and AEAD only. AES-128 first, except for clients that prefer ChaCha20: they have
 * no AES in hardware.
 */
#define TLS_CONTEXT_CIPHERS                                      \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define TLS_CONTEXT_SUITES \
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define TLS_CONTEXT_GROUPS "X25519:P-256:P-384"

#define TLS_CONTEXT_LIST_BYTES 1024

static int tls_context_set_groups(SSL_CTX *ctx, const char *groups, struct tls_load *l)
{
    if (groups && SSL_CTX_set1_groups_list(ctx, groups) != 1)
        return tls_load_refuse(l, "the library does not know all of '%s'", groups);
    if (groups || SSL_CTX_set1_groups_list(ctx, "X25519MLKEM768:" TLS_CONTEXT_GROUPS) == 1)
        return 0;
    ERR_clear_error();
    if (SSL_CTX_set1_groups_list(ctx, TLS_CONTEXT_GROUPS) != 1)
        return tls_load_memory(l);
    return 0;
}

static bool tls_context_append(char *list, const char *word, size_t len)
{
    size_t n = strlen(list);

    if (n + 1 + len + 1 > TLS_CONTEXT_LIST_BYTES)
        return false;
    if (n > 0)
        list[n++] = ':';
    memcpy(list + n, word, len);
    list[n + len] = '\0';
    return true;
}

/* Split ${ciphers}: names that begin with TLS_ are suites of TLS 1.3. False: too many. */
static bool tls_context_split(const char *ciphers, char *list, char *suites)
{
    for (const char *word = ciphers; *word != '\0'; word += strspn(word, ":")) {
        size_t len = strcspn(word, ":");

        if (len > 0 &&
            !tls_context_append(strncmp(word, "TLS_", 4) == 0 ? suites : list, word, len))
            return false;
        word += len;
    }
    return true;
}

static int tls_context_set_ciphers(SSL_CTX *ctx, const char *ciphers, struct tls_load *l)
{
    char list[TLS_CONTEXT_LIST_BYTES] = "", suites[TLS_CONTEXT_LIST_BYTES] = "";

    if (ciphers && !tls_context_split(ciphers, list, suites))
        return tls_load_refuse(l, "too many");
    if (SSL_CTX_set_cipher_list(ctx, *list ? list : TLS_CONTEXT_CIPHERS) != 1)
        return tls_load_refuse(l, "'%s': %s", list, tls_load_library());
    if (SSL_CTX_set_ciphersuites(ctx, *suites ? suites : TLS_CONTEXT_SUITES) != 1)
        return tls_load_refuse(l, "'%s': %s", suites, tls_load_library());
    return 0;
}

/* Ciphers of TLS 1.3, for any key, do not count. */
bool tls_context_has_cipher(const SSL_CTX *ctx, const bool has_kind[TLS_KEY_KINDS])
{
    const STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(ctx);

    for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
        const SSL_CIPHER *c = sk_SSL_CIPHER_value(all, i);
        int kx = SSL_CIPHER_get_kx_nid(c), key = SSL_CIPHER_get_auth_nid(c);

        if (kx != NID_kx_ecdhe && kx != NID_kx_dhe && kx != NID_kx_rsa)
            continue; /* such as PSK, for which nothing can be configured */
        if ((key == NID_auth_rsa && has_kind[TLS_KEY_RSA]) ||
            (key == NID_auth_ecdsa && (has_kind[TLS_KEY_EC] || has_kind[TLS_KEY_OTHER])))
            return true;
    }
    return false;
}

static int tls_context_set_common(SSL_CTX *ctx, const struct tls_profile_conf *conf,
                                  struct tls_load *l)
{
    int version = conf->min_version == TLS_VERSION_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    int rc;

    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN |
                              SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    l->option = "min_version";
    if (SSL_CTX_set_min_proto_version(ctx, version) != 1)
        return tls_load_refuse(l, "%s", tls_load_library());
    l->option = "ciphers";
    rc = tls_context_set_ciphers(ctx, conf->ciphers, l);
    if (rc < 0)
        return rc;
    l->option = "groups";
    return tls_context_set_groups(ctx, conf->groups, l);
}

int tls_context_create(SSL_CTX **out, const SSL_METHOD *method, const struct tls_profile_conf *conf,
                       struct tls_load *l)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    int rc = ctx ? tls_context_set_common(ctx, conf, l) : tls_load_memory(l);

    if (rc < 0)
        SSL_CTX_free(ctx);
    else
        *out = ctx;
    return rc;
}

static int tls_context_set_ca(SSL_CTX *ctx, const struct tls_profile_conf *conf, struct tls_load *l)
{
    int rc;

    if (conf->verify == TLS_VERIFY_OFF)
        return 0;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, tls_ca_tell_refused);
    l->option = "ca";
    rc = conf->ca ? tls_ca_trust(ctx, conf->ca, l) : tls_ca_trust_system(ctx, l);
    l->option = "server_crl";
    if (rc == 0 && conf->server_crl)
        rc = tls_ca_revoke(ctx, conf->server_crl, l);
    return rc;
}

static int tls_context_check_client_ciphers(const SSL_CTX *ctx, const struct tls_profile_conf *conf,
                                            struct tls_load *l)
{
    static const bool any[TLS_KEY_KINDS] = {true, true, true};

    l->option = "ciphers";
    return conf->min_version == TLS_VERSION_1_3 || tls_context_has_cipher(ctx, any)
               ? 0
               : tls_load_refuse(l, "no cipher for TLS 1.2 works with a certificate");
}

int tls_context_create_client(SSL_CTX **out, const struct tls_profile_conf *conf,
                              struct tls_load *l)
{
    SSL_CTX *ctx;
    int rc = tls_context_create(&ctx, TLS_client_method(), conf, l);

    if (rc < 0)
        return rc;
    tls_sessions_enable(ctx);
    rc = tls_context_check_client_ciphers(ctx, conf, l);
    if (rc == 0)
        rc = tls_context_set_ca(ctx, conf, l);
    /* Unlike the library's other functions, this one returns 0 for success. */
    if (rc == 0 && conf->alpn && SSL_CTX_set_alpn_protos(ctx, conf->alpn, conf->alpn_bytes) != 0)
        rc = tls_load_memory(l);
    if (rc < 0)
        SSL_CTX_free(ctx);
    else
        *out = ctx;
    return rc;
}
