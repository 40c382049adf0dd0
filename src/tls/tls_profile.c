#include "tls/tls_profile.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls/tls_certificate.h"
#include "tls/tls_context.h"
#include "tls/tls_server.h"
#include "tls/tls_why.h"

struct tls_profile {
    atomic_uint refs;
    SSL_CTX *server; /* NULL: not for clients */
    SSL_CTX *client; /* NULL: not for servers */
};

/* Our certificate for servers. */
static int tls_profile_set_own(struct tls_profile *p, const struct tls_profile_conf *conf,
                               const struct tls_why *why)
{
    struct tls_certificate_files files = {.key = conf->keys.n > 0 ? conf->keys.list[0] : NULL};
    struct tls_certificate *c;
    int rc;

    if (conf->certificates.n == 0)
        return 0;
    files.certificate = conf->certificates.list[0];
    rc = tls_certificate_load(&c, &files, why);
    if (rc < 0)
        return rc;
    if (tls_certificate_use_in(c, p->client) < 0)
        rc = tls_why_refuse(why, "%s: cannot be used: %s", files.certificate, tls_why_library());
    tls_certificate_destroy(c);
    return rc;
}

static int tls_profile_fill(struct tls_profile *p, const struct tls_profile_conf *conf,
                            const struct tls_why *why)
{
    int rc = 0;

    if (conf->for_clients)
        rc = tls_server_create(&p->server, conf, why);
    if (rc == 0 && conf->for_servers)
        rc = tls_context_create_client(&p->client, conf, why);
    if (rc == 0 && conf->for_servers)
        rc = tls_profile_set_own(p, conf, why);
    return rc;
}

int tls_profile_load(const struct tls_profile_conf *conf, struct tls_profile **out, char *why,
                     size_t why_size)
{
    const struct tls_why w = {why, why_size};
    struct tls_profile *p = calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return tls_why_memory(&w);
    atomic_init(&p->refs, 1);
    rc = tls_profile_fill(p, conf, &w);
    if (rc < 0)
        tls_profile_release(p);
    else
        *out = p;
    return rc;
}

struct tls_profile *tls_profile_hold(struct tls_profile *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void tls_profile_release(struct tls_profile *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(p->server);
    SSL_CTX_free(p->client);
    free(p);
}

struct ssl_st *tls_profile_new_server(struct tls_profile *p)
{
    SSL *ssl;

    MUST(p->server);
    ssl = SSL_new(p->server);
    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
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

struct ssl_st *tls_profile_new_client(struct tls_profile *p, const char *tls_name)
{
    SSL *ssl;

    MUST(p->client);
    MUST(tls_name || SSL_CTX_get_verify_mode(p->client) == SSL_VERIFY_NONE);
    ssl = SSL_new(p->client);
    if (!ssl || (tls_name && !tls_profile_expect(ssl, tls_name))) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}
