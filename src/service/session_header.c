#include "service/session_header.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/log.h"
#include "handlers/proxy_protocol.h"
#include "service/session_internal.h"
#include "stats/access_log_record.h"
#include "tls/tls_common_name.h"

/* SNI, ALPN, version; cipher, group; name: longest texts in the access log, with NULs. */
#define SESSION_HEADER_TEXT_BYTES (254 + 64 + 32 + 2 * 65 + TLS_COMMON_NAME_BYTES)

struct session_header {
    alignas(max_align_t) struct proxy_protocol reader;
    struct session *session;
    struct address proxy;                  /* sender of the header, if the header names a client */
    char texts[SESSION_HEADER_TEXT_BYTES]; /* for the access log */
};

/* A client that sends nothing, such as a port check, is no error. */
static void session_header_failed(struct session_header *o, int error)
{
    struct session *s = o->session;

    if (error == -ENODATA) {
        session_close(s, SESSION_CLIENT_FIN);
        return;
    }
    proxy_protocol_log_refusal(s->service->proxies, &s->peer, error);
    session_abort(s, error == -ETIMEDOUT ? SESSION_IDLE : SESSION_ERROR);
}

static void session_header_rename(struct session_header *o)
{
    struct session *s = o->session;
    const struct address *client = &o->reader.header.source;
    char proxy[ADDRESS_TEXT_BYTES], text[ADDRESS_TEXT_BYTES];

    if (log_wanted(LOG_LEVEL_DEBUG))
        log_debug("listen %s: %s is the client of the proxy %s", s->service->listener,
                  address_format(text, sizeof(text), client),
                  address_format(proxy, sizeof(proxy), &s->peer));
    o->proxy = s->peer;
    s->peer = *client;
}

static void session_header_done(struct proxy_protocol *pp, int error)
{
    struct session_header *o = CONTAINER_OF(pp, struct session_header, reader);
    struct session *s = o->session;

    /* the header's bytes do not count */
    s->legs[0]->bytes_in = preface_handler_rest_bytes(&pp->preface);
    if (error < 0) {
        session_header_failed(o, error);
        return;
    }
    if (!pp->header.local)
        session_header_rename(o);
    if (session_admit(s, &s->peer))
        session_preface_done(s);
}

static size_t session_header_bytes(const struct service *service)
{
    const struct proxy_protocol_gate *gate = service->proxies;

    return gate && gate->conf->mode != PROXY_PROTOCOL_OFF ? sizeof(struct session_header) : 0;
}

static void session_header_begin(struct session *s, struct channel *ch, void *memory)
{
    struct session_header *o = memory;

    o->session = s;
    proxy_protocol_add(&o->reader, ch, s->service->proxies, session_header_done);
    s->header = o;
}

static size_t session_header_rest_bytes(const void *memory)
{
    return preface_handler_rest_bytes(&((const struct session_header *)memory)->reader.preface);
}

static void session_header_release(void *memory)
{
    preface_handler_release(&((struct session_header *)memory)->reader.preface);
}

static int64_t session_header_timeout_ns(const struct session *s, const void *memory)
{
    (void)memory;
    return s->service->proxies->conf->timeout_ns;
}

static void session_header_give_up(void *memory)
{
    preface_handler_give_up(&((struct session_header *)memory)->reader.preface);
}

static void session_header_carry_over(const struct session *s, void *memory)
{
    proxy_protocol_set_gate(&((struct session_header *)memory)->reader, s->service->proxies);
}

const struct session_preface_stage session_header_stage = {
    .bytes = session_header_bytes,
    .begin = session_header_begin,
    .rest_bytes = session_header_rest_bytes,
    .release = session_header_release,
    .timeout_ns = session_header_timeout_ns,
    .give_up = session_header_give_up,
    .carry_over = session_header_carry_over,
};

static bool session_header_names_client(const struct session *s)
{
    return s->header && !s->header->reader.header.local;
}

const struct address *session_header_proxy(const struct session *s)
{
    return session_header_names_client(s) ? &s->header->proxy : NULL;
}

const struct address *session_header_destination(const struct session *s)
{
    return session_header_names_client(s) ? &s->header->reader.header.destination : NULL;
}

const struct proxy_header_tls *session_header_tls(const struct session *s)
{
    return session_header_names_client(s) ? &s->header->reader.header.tls : NULL;
}

struct proxy_header_value session_header_tlv(const struct session *s, uint8_t type)
{
    return session_header_names_client(s)
               ? proxy_header_tlv_find(s->header->reader.header.tlvs, type)
               : (struct proxy_header_value){NULL, 0};
}

/*
 * Copy ${value} and a NUL to *${at}, and advance *${at}. NULL if it is empty, longer than ${max} or
 * has a NUL: a name that were cut would be another name.
 */
static const char *session_header_text(char **at, struct proxy_header_value value, size_t max)
{
    char *text = *at;

    if (value.n == 0 || value.n > max || memchr(value.at, '\0', value.n))
        return NULL;
    memcpy(text, value.at, value.n);
    text[value.n] = '\0';
    *at += value.n + 1;
    return text;
}

void session_header_describe(struct session *s, struct access_log_record *r)
{
    const struct proxy_header_tls *tls = session_header_tls(s);
    char *at;

    if (!tls)
        return;
    at = s->header->texts;
    r->sni = session_header_text(&at, tls->authority, 253);
    r->alpn = session_header_text(&at, tls->alpn, 63);
    r->tls_version =
        session_header_text(&at, proxy_header_ssl_find(tls->ssl, PROXY_HEADER_SSL_VERSION), 31);
    r->tls_cipher =
        session_header_text(&at, proxy_header_ssl_find(tls->ssl, PROXY_HEADER_SSL_CIPHER), 64);
    r->tls_group =
        session_header_text(&at, proxy_header_ssl_find(tls->ssl, PROXY_HEADER_SSL_GROUP), 64);
    r->tls_client_name = session_header_text(
        &at, proxy_header_ssl_find(tls->ssl, PROXY_HEADER_SSL_NAME), TLS_COMMON_NAME_BYTES - 1);
}

void session_header_trim(struct session *s)
{
    if (s->header)
        proxy_protocol_trim(&s->header->reader);
}

void session_header_free(struct session *s)
{
    if (s->header)
        proxy_protocol_free(&s->header->reader);
}
