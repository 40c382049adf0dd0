#include "tls/tls_server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "tls/tls_ca.h"
#include "tls/server_name.h"
#include "tls/tls_context.h"
#include "tls/tls_hello.h"
#include "tls/tls_ocsp.h"
#include "tls/tls_stream.h"
#include "tls/tls_tickets.h"

/* Data of the callbacks (note: owner). */
struct tls_server {
    struct tls_certificates *certificates;
    struct tls_tickets *tickets; /* NULL: the keys of the process */
    bool reject_unknown;
    unsigned alpn_bytes;
    unsigned char alpn[];
};

/*
 * note: owner. Index of struct tls_server in the context's ex_data. The context frees the struct
 * after its last SSL.
 */
static int tls_server_index = -1;

static void tls_server_free(void *parent, void *server, CRYPTO_EX_DATA *data, int index,
                            long unused, void *cookie)
{
    struct tls_server *s = server;

    (void)parent, (void)data, (void)index, (void)unused, (void)cookie;
    if (!s)
        return;
    tls_certificates_release(s->certificates);
    tls_tickets_destroy(s->tickets);
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

/*
 * Choose the first of our `alpn` that the client offers. Without a common protocol: an alert (RFC
 * 7301, 3.2).
 */
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
                                 struct tls_load *l)
{
    int mode = SSL_VERIFY_PEER;
    int rc;

    if (!conf->client_ca || conf->verify == TLS_VERIFY_OFF)
        return 0;
    if (conf->verify == TLS_VERIFY_REQUIRED)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ctx, mode, tls_ca_tell_refused);
    l->option = "client_ca";
    rc = tls_ca_ask(ctx, conf->client_ca, l);
    l->option = "client_crl";
    if (rc == 0 && conf->client_crl)
        rc = tls_ca_revoke(ctx, conf->client_crl, l);
    return rc;
}

static bool tls_server_digest_trust(EVP_MD_CTX *digest, const SSL_CTX *ctx)
{
    const STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));

    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        const X509_OBJECT *o = sk_X509_OBJECT_value(all, i);
        X509_CRL *crl = X509_OBJECT_get0_X509_CRL(o);
        unsigned char md[EVP_MAX_MD_SIZE];
        unsigned n;

        if ((crl ? X509_CRL_digest(crl, EVP_sha256(), md, &n)
                 : X509_digest(X509_OBJECT_get0_X509(o), EVP_sha256(), md, &n)) != 1 ||
            EVP_DigestUpdate(digest, md, n) != 1)
            return false;
    }
    return true;
}

/*
 * A ticket is valid only for the same section name, `verify`, CAs and revocation lists, since a
 * client that resumes is not verified again.
 */
static int tls_server_set_session_context(SSL_CTX *ctx, const struct tls_profile_conf *conf,
                                          struct tls_load *l)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    unsigned char id[EVP_MAX_MD_SIZE];
    unsigned n;
    bool done = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(digest, conf->name, strlen(conf->name)) == 1 &&
                EVP_DigestUpdate(digest, &conf->verify, sizeof(conf->verify)) == 1 &&
                tls_server_digest_trust(digest, ctx) && EVP_DigestFinal_ex(digest, id, &n) == 1 &&
                SSL_CTX_set_session_id_context(ctx, id, n) == 1;

    EVP_MD_CTX_free(digest);
    return done ? 0 : tls_load_memory(l);
}

/* ---- ClientHello ---- */

static struct client_hello_bytes tls_server_extension(SSL *ssl, unsigned type)
{
    struct client_hello_bytes found = {NULL, 0};

    if (SSL_client_hello_get0_ext(ssl, type, &found.at, &found.n) != 1)
        found.n = 0;
    return found;
}

static int tls_server_refuse_hello(SSL *ssl, const char *reason, int *alert, int code)
{
    tls_stream_note_reason(ssl, reason);
    *alert = code;
    return SSL_CLIENT_HELLO_ERROR;
}

/*
 * Routes, log and certificate use one name. So refuse a hello that the library takes and
 * tls/client_hello does not, and a second one (after HelloRetryRequest) with other names.
 */
static int tls_server_check_hello(SSL *ssl, int *alert, void *cookie)
{
    const struct tls_hello *hello;

    (void)cookie;
    if (!tls_stream_get_hello(ssl, &hello))
        return SSL_CLIENT_HELLO_SUCCESS;
    if (!hello)
        return tls_server_refuse_hello(ssl, "the ClientHello is malformed", alert,
                                       SSL_AD_DECODE_ERROR);
    if (!tls_hello_agrees(
            hello, tls_server_extension(ssl, TLSEXT_TYPE_server_name),
            tls_server_extension(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation)))
        return tls_server_refuse_hello(
            ssl, "the second ClientHello has another server name or other protocols", alert,
            SSL_AD_ILLEGAL_PARAMETER);
    return SSL_CLIENT_HELLO_SUCCESS;
}

/* The name in the ClientHello; NULL: none. The library returns that of a resumed session. */
static const char *tls_server_name(SSL *ssl)
{
    const struct tls_hello *hello;

    if (!tls_stream_get_hello(ssl, &hello))
        return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    return hello && *hello->sni != '\0' ? hello->sni : NULL;
}

/* ---- tickets ---- */

/* Is ${session} of the name in the ClientHello? The library has not read that name yet. */
static bool tls_server_has_name(SSL *ssl, const SSL_SESSION *session)
{
    const char *session_name = SSL_SESSION_get0_hostname(session);
    const struct tls_hello *hello;
    char read[SERVER_NAME_BYTES] = "";

    if (!tls_stream_get_hello(ssl, &hello))
        return true;
    if (session_name && server_name_read(read, session_name, strlen(session_name)) < 0)
        read[0] = '\0';
    return hello && strcmp(read, hello->sni) == 0;
}

/*
 * A session of TLS 1.2 is resumed for its own server name only: with another one the handshake is a
 * full one (RFC 6066, 3), whose name is checked. TLS 1.3 checks the name in any case.
 */
static SSL_TICKET_RETURN tls_server_use_session(SSL *ssl, SSL_SESSION *session,
                                                const unsigned char *key_name, size_t key_name_len,
                                                SSL_TICKET_STATUS status, void *cookie)
{
    (void)key_name;
    (void)key_name_len;
    (void)cookie;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    if (SSL_version(ssl) <= TLS1_2_VERSION && !tls_server_has_name(ssl, session))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

static int tls_server_use_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv,
                                     EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypts)
{
    const struct tls_server *s = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), tls_server_index);
    const struct tls_tickets_use use = {name, iv, cipher, mac, encrypts != 0};
    int rc = tls_tickets_use(s->tickets, &use);

    if (rc < 0)
        tls_stream_note_reason(ssl, "no key for session tickets could be made");
    /* 2: send a new ticket. A client of TLS 1.3 uses each only once (RFC 8446, C.4). */
    return rc == 1 && !encrypts && SSL_version(ssl) == TLS1_3_VERSION ? 2 : rc;
}

static int tls_server_set_tickets(SSL_CTX *ctx, struct tls_server *s,
                                  const struct tls_profile_conf *conf, struct tls_load *l)
{
    l->option = "ticket_keys";
    SSL_CTX_set_timeout(ctx, TLS_TICKETS_SECONDS);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, tls_server_use_ticket_key);
    if (SSL_CTX_set_session_ticket_cb(ctx, NULL, tls_server_use_session, NULL) != 1)
        return tls_load_memory(l);
    /* The library would send 2, for browsers with parallel connections; each ticket costs 10 us. */
    SSL_CTX_set_num_tickets(ctx, 1);
    return conf->tickets.n > 0 ? tls_tickets_load(&s->tickets, &conf->tickets, l) : 0;
}

/* ---- certificate ---- */

static const struct tls_certificate_set *tls_server_find(const struct tls_server *s, SSL *ssl)
{
    const char *name = tls_server_name(ssl);

    return name ? tls_certificates_find(s->certificates, name) : NULL;
}

/* Has a certificate the client's name, or is it one of the section's `names`? */
static bool tls_server_knows_name(const struct tls_server *s, SSL *ssl)
{
    const struct tls_hello *hello;

    if (tls_server_find(s, ssl))
        return true;
    return tls_stream_get_hello(ssl, &hello) && hello &&
           tls_certificates_match(s->certificates, hello->sni) != TLS_MATCH_NONE;
}

/* Check the client's name; called for each ClientHello, even without a name. */
static int tls_server_check_name(SSL *ssl, int *alert, void *cookie)
{
    const struct tls_server *s = cookie;

    if (!s->reject_unknown || tls_server_knows_name(s, ssl))
        return SSL_TLSEXT_ERR_OK;
    tls_stream_note_reason(ssl, tls_server_name(ssl)
                                    ? "no certificate has the server name that the client sent"
                                    : "the client sent no host name as server name");
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/*
 * Put the certificates for the client's name into ${ssl}, in place of the default ones. Returns 1,
 * or 0 for an alert.
 */
static int tls_server_choose_certificate(SSL *ssl, void *cookie)
{
    const struct tls_server *s = cookie;
    const struct tls_certificate_set *set = tls_server_find(s, ssl);

    if (!set || memcmp(set, tls_certificates_default(s->certificates), sizeof(*set)) == 0)
        return 1;
    SSL_certs_clear(ssl);
    for (unsigned i = 0; i < TLS_KEY_KINDS; i++)
        if (set->of[i] && tls_certificate_use(set->of[i], ssl) < 0) {
            tls_stream_note_reason(ssl, "the certificate for the server name cannot be used");
            return 0;
        }
    return 1;
}

static int tls_server_set_certificates(SSL_CTX *ctx, struct tls_server *s, struct tls_load *l)
{
    const struct tls_certificate_set *set = tls_certificates_default(s->certificates);

    l->option = "certificate";
    for (unsigned i = 0; i < TLS_KEY_KINDS; i++)
        if (set->of[i] && tls_certificate_use_in(set->of[i], ctx) < 0)
            return tls_load_refuse(l, "%s: cannot be used: %s", tls_certificate_path(set->of[i]),
                                   tls_load_library());
    SSL_CTX_set_client_hello_cb(ctx, tls_server_check_hello, NULL);
    SSL_CTX_set_tlsext_servername_callback(ctx, tls_server_check_name);
    SSL_CTX_set_tlsext_servername_arg(ctx, s);
    SSL_CTX_set_cert_cb(ctx, tls_server_choose_certificate, s);
    SSL_CTX_set_tlsext_status_cb(ctx, tls_ocsp_staple);
    return 0;
}

/* Let ciphers with DHE work, and refuse a list of which no cipher works with our keys. */
static int tls_server_set_ciphers(SSL_CTX *ctx, const struct tls_certificates *certificates,
                                  const struct tls_profile_conf *conf, struct tls_load *l)
{
    bool has_kind[TLS_KEY_KINDS] = {false};

    for (unsigned i = 0; i < tls_certificates_n(certificates); i++)
        has_kind[tls_certificate_kind(tls_certificates_at(certificates, i))] = true;
    SSL_CTX_set_dh_auto(ctx, 1);
    l->option = "ciphers";
    return conf->min_version == TLS_VERSION_1_3 || tls_context_has_cipher(ctx, has_kind)
               ? 0
               : tls_load_refuse(l,
                                 "no cipher for TLS 1.2 works with the keys of the certificates");
}

static int tls_server_fill(SSL_CTX *ctx, const struct tls_profile_conf *conf,
                           struct tls_certificates *certificates, struct tls_load *l)
{
    struct tls_server *s = tls_server_attach(ctx, conf);
    int rc;

    if (!s)
        return tls_load_memory(l);
    s->certificates = tls_certificates_hold(certificates);
    s->reject_unknown = conf->unknown_name == TLS_UNKNOWN_NAME_REJECT;
    rc = tls_server_set_certificates(ctx, s, l);
    if (rc == 0)
        rc = tls_server_set_ciphers(ctx, s->certificates, conf, l);
    if (rc == 0)
        rc = tls_server_set_verify(ctx, conf, l);
    if (rc == 0)
        rc = tls_server_set_tickets(ctx, s, conf, l);
    if (rc == 0)
        rc = tls_server_set_session_context(ctx, conf, l);
    if (rc == 0 && conf->alpn_bytes > 0)
        SSL_CTX_set_alpn_select_cb(ctx, tls_server_choose_alpn, s);
    return rc;
}

int tls_server_create(SSL_CTX **out, const struct tls_profile_conf *conf,
                      struct tls_certificates *certificates, struct tls_load *l)
{
    SSL_CTX *ctx;
    int rc = tls_context_create(&ctx, TLS_server_method(), conf, l);

    if (rc < 0)
        return rc;
    rc = tls_server_fill(ctx, conf, certificates, l);
    if (rc < 0)
        SSL_CTX_free(ctx);
    else
        *out = ctx;
    return rc;
}
