#include "tls/tls_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/ref.h"
#include "tls/tls_certificates.h"
#include "tls/tls_context.h"
#include "tls/tls_names.h"
#include "tls/tls_server.h"
#include "tls/tls_ocsp.h"
#include "tls/tls_load.h"

struct tls_profile {
    struct ref references;
    SSL_CTX *server;                       /* accepts clients; NULL: not for clients */
    SSL_CTX *client;                       /* connects to servers; NULL: not for servers */
    struct tls_certificates *certificates; /* NULL: no certificate */
    enum tls_truncated truncated;
    bool alpn_of_client;
    struct text warnings;
    struct text paths; /* see tls/tls_load.h */
    uint64_t fingerprint;
    unsigned char digest[EVP_MAX_MD_SIZE]; /* of settings and files */
    unsigned digest_bytes;
};

static bool tls_profile_digest_text(EVP_MD_CTX *digest, const char *text)
{
    size_t len = text ? strlen(text) : SIZE_MAX;

    return EVP_DigestUpdate(digest, &len, sizeof(len)) == 1 &&
           (!text || EVP_DigestUpdate(digest, text, len) == 1);
}

/* Add the settings to ${digest}, without paths: tls_load_read() adds the files' contents. */
static bool tls_profile_digest_settings(EVP_MD_CTX *digest, const struct tls_profile_conf *conf)
{
    const unsigned numbers[] = {
        conf->unknown_name,       conf->min_version,       conf->verify,
        conf->alpn_of_client,     conf->names.n,           conf->truncated,
        conf->alpn_bytes,         conf->ca != NULL,        conf->client_ca != NULL,
        conf->client_crl != NULL, conf->server_crl != NULL};

    bool done = EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;

    for (unsigned i = 0; done && i < conf->names.n; i++)
        done = tls_profile_digest_text(digest, conf->names.list[i]);
    return done && EVP_DigestUpdate(digest, numbers, sizeof(numbers)) == 1 &&
           (!conf->alpn || EVP_DigestUpdate(digest, conf->alpn, conf->alpn_bytes) == 1) &&
           tls_profile_digest_text(digest, conf->name) &&
           tls_profile_digest_text(digest, conf->ciphers) &&
           tls_profile_digest_text(digest, conf->groups);
}

/* Present our certificates to servers that ask for one. */
static int tls_profile_set_own(struct tls_profile *p, struct tls_load *l)
{
    const struct tls_certificate_set *own;

    if (!p->certificates)
        return 0;
    l->option = "certificate";
    own = tls_certificates_default(p->certificates);
    for (unsigned i = 0; i < TLS_KEY_KINDS; i++)
        if (own->of[i] && tls_certificate_use_in(own->of[i], p->client) < 0)
            return tls_load_refuse(l, "%s: cannot be used: %s", tls_certificate_path(own->of[i]),
                                   tls_load_library());
    return 0;
}

static int tls_profile_fill(struct tls_profile *p, const struct tls_profile_conf *conf,
                            struct tls_load *l)
{
    int rc = tls_profile_digest_settings(l->digest, conf) ? 0 : tls_load_memory(l);

    l->option = "certificate";
    if (rc == 0 && conf->for_clients && conf->certificates.n == 0)
        rc = tls_load_refuse(l, "is missing: clients need one (absolute paths)");
    l->option = "alpn";
    if (rc == 0 && conf->for_clients && conf->alpn_of_client)
        rc = tls_load_refuse(l, "client is for sections of upstreams only (a list of protocols)");
    l->option = "key";
    if (rc == 0 && conf->keys.n > 0 && conf->keys.n != conf->certificates.n)
        rc = tls_load_refuse(l, "%u keys for %u certificates (as many, or none)", conf->keys.n,
                             conf->certificates.n);
    l->option = "certificate";
    if (rc == 0 && conf->certificates.n > 0)
        rc = tls_certificates_load(&p->certificates, conf,
                                   conf->before ? conf->before->certificates : NULL, l);
    l->option = "ocsp_file";
    for (unsigned i = 0; rc == 0 && p->certificates && i < conf->ocsp.n; i++)
        rc = tls_ocsp_read(p->certificates, conf->ocsp.list[i], l);
    if (rc == 0 && conf->for_clients)
        rc = tls_server_create(&p->server, conf, p->certificates, l);
    if (rc == 0 && conf->for_servers)
        rc = tls_context_create_client(&p->client, conf, l);
    if (rc == 0 && conf->for_servers)
        rc = tls_profile_set_own(p, l);
    if (rc == 0 && EVP_DigestFinal_ex(l->digest, p->digest, &p->digest_bytes) != 1)
        rc = tls_load_memory(l);
    return rc;
}

int tls_profile_load(const struct tls_profile_conf *conf, struct tls_profile **out, char *why,
                     size_t why_size)
{
    struct tls_load l = {.why = why, .why_size = why_size, .option = "certificate"};
    struct tls_profile *p = calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return tls_load_memory(&l);
    ref_init(&p->references);
    p->truncated = conf->truncated;
    p->alpn_of_client = conf->alpn_of_client;
    l.digest = EVP_MD_CTX_new();
    rc = l.digest ? tls_profile_fill(p, conf, &l) : tls_load_memory(&l);
    p->warnings = l.warnings;
    p->paths = l.paths;
    p->fingerprint = l.fingerprint;
    if (rc == 0 && (p->warnings.failed || p->paths.failed))
        rc = tls_load_memory(&l);
    EVP_MD_CTX_free(l.digest);
    if (rc < 0)
        tls_profile_release(p);
    else
        *out = p;
    return rc;
}

enum tls_truncated tls_profile_truncated(const struct tls_profile *p)
{
    return p->truncated;
}

struct tls_profile *tls_profile_hold(struct tls_profile *p)
{
    ref_hold(&p->references);
    return p;
}

void tls_profile_release(struct tls_profile *p)
{
    if (!p || !ref_release(&p->references))
        return;
    SSL_CTX_free(p->server);
    SSL_CTX_free(p->client);
    tls_certificates_release(p->certificates);
    text_free(&p->warnings);
    text_free(&p->paths);
    free(p);
}

const char *tls_profile_warnings(const struct tls_profile *p)
{
    return p->warnings.bytes ? p->warnings.bytes : "";
}

bool tls_profile_same_files(const struct tls_profile *a, const struct tls_profile *b)
{
    return memcmp(a->digest, b->digest, a->digest_bytes) == 0;
}

bool tls_profile_same(const struct tls_profile *a, const struct tls_profile *b)
{
    return tls_profile_same_files(a, b) && !a->server == !b->server && !a->client == !b->client;
}

bool tls_profile_has_changed_files(const struct tls_profile *p, uint64_t *fingerprint)
{
    *fingerprint = 0;
    for (size_t at = 0; at < p->paths.n; at += strlen(p->paths.bytes + at) + 1)
        *fingerprint = tls_load_stat(*fingerprint, p->paths.bytes + at);
    return *fingerprint != p->fingerprint;
}

unsigned tls_profile_certificates(const struct tls_profile *p)
{
    return p->certificates ? tls_certificates_n(p->certificates) : 0;
}

void tls_profile_certificate(const struct tls_profile *p, unsigned i,
                             struct tls_profile_certificate *out)
{
    const struct tls_certificate *c = tls_certificates_at(p->certificates, i);

    out->path = tls_certificate_path(c);
    out->expires_at = tls_certificate_expires_at(c);
}

enum tls_match tls_profile_match(const struct tls_profile *p, const char *name)
{
    return p->certificates ? tls_certificates_match(p->certificates, name) : TLS_MATCH_NONE;
}

static bool tls_profile_is_shared(const char *name, struct tls_profile *const *with, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (with[i]->certificates &&
            tls_names_get(tls_certificates_names(with[i]->certificates), name))
            return true;
    return n == 0;
}

unsigned tls_profile_shared_names(const struct tls_profile *p, struct tls_profile *const *with,
                                  unsigned n, const char **first)
{
    const struct tls_names *own = p->certificates ? tls_certificates_names(p->certificates) : NULL;
    unsigned shared = 0;

    for (unsigned i = 0; own && i < own->capacity; i++) {
        const char *name = tls_names_at(own, i);

        if (!name || !tls_profile_is_shared(name, with, n))
            continue;
        if (shared == 0 || strcmp(name, *first) < 0)
            *first = name;
        shared++;
    }
    return shared;
}

/*
 * A connection of ${ctx} in the state that ${set_state} sets. Without memory both steps of OpenSSL
 * 3.5 may leave it without a record layer, and setting a BIO crashes: only the errors tell.
 */
static SSL *tls_profile_new(SSL_CTX *ctx, void (*set_state)(SSL *))
{
    SSL *ssl;

    ERR_clear_error();
    ssl = SSL_new(ctx);
    if (!ssl)
        return NULL;
    set_state(ssl);
    if (ERR_peek_error() == 0)
        return ssl;
    SSL_free(ssl);
    return NULL;
}

struct ssl_st *tls_profile_new_server(struct tls_profile *p)
{
    return p->server ? tls_profile_new(p->server, SSL_set_accept_state) : NULL;
}

static bool tls_profile_expect(SSL *ssl, const char *tls_name)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, tls_name) == 1)
        return true;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, tls_name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, tls_name) == 1;
}

static bool tls_profile_offer(SSL *ssl, struct client_hello_bytes protocol)
{
    unsigned char list[1 + UINT8_MAX];

    if (protocol.n == 0 || protocol.n > UINT8_MAX)
        return true;
    list[0] = (unsigned char)protocol.n;
    memcpy(list + 1, protocol.at, protocol.n);
    /* Unlike the library's other functions, this one returns 0 for success. */
    return SSL_set_alpn_protos(ssl, list, 1 + (unsigned)protocol.n) == 0;
}

struct ssl_st *tls_profile_new_client(struct tls_profile *p, const char *tls_name,
                                      struct client_hello_bytes agreed)
{
    bool is_for_it =
        p->client && (tls_name || SSL_CTX_get_verify_mode(p->client) == SSL_VERIFY_NONE);
    SSL *ssl = is_for_it ? tls_profile_new(p->client, SSL_set_connect_state) : NULL;

    if (!ssl || (tls_name && !tls_profile_expect(ssl, tls_name)) ||
        (p->alpn_of_client && !tls_profile_offer(ssl, agreed))) {
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}
