#include "service/session_hello.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/clock.h"
#include "handlers/hello_handler.h"
#include "service/session_internal.h"
#include "stats/access_log_record.h"
#include "tls/ja4.h"
#include "upstream/route.h"

#define SESSION_HELLO_LOG_INTERVAL_NS (1 * NS_PER_S)

struct session_hello {
    alignas(max_align_t) struct hello_handler reader;
    struct session *session;
    int64_t timeout_ns;
    bool is_read;
    char alpn[ACCESS_LOG_RECORD_ALPN_BYTES];
    char ja4[JA4_BYTES]; /* for the access log only */
};

static const char *session_hello_problem(int error, const char *sni)
{
    switch (error) {
    case -ENOMSG: return "sent no TLS ClientHello";
    case -EPROTO: return "sent a broken ClientHello";
    case -EMSGSIZE: return "sent a ClientHello that is too long";
    case -ETIMEDOUT: return "sent no complete ClientHello in time (client_hello_timeout)";
    case -ENOENT:
        return *sni != '\0' ? "no route has the server name and protocol"
                            : "sent no host name as server name, and no route matches without one";
    case -ENOMEM: return "out of memory";
    default: return strerror(-error);
    }
}

static void session_hello_log(const struct session *s, const char *sni, int error)
{
    char text[ADDRESS_TEXT_BYTES];
    unsigned suppressed = 0;

    if (s->service->routes &&
        !log_allowed(&s->service->routes->log_limit, SESSION_HELLO_LOG_INTERVAL_NS, &suppressed))
        return;
    log_warning("listen %s: client %s%s%s: %s; the client is reset%s", s->service->listener,
                address_format(text, sizeof(text), &s->peer), *sni != '\0' ? " for " : "", sni,
                session_hello_problem(error, sni), LOG_SUPPRESSED(suppressed));
}

static enum session_reason session_hello_reason(int error)
{
    switch (error) {
    case -ETIMEDOUT: return SESSION_IDLE;
    case -ENOENT: return SESSION_NO_ROUTE;
    default: return SESSION_ERROR;
    }
}

void session_hello_refuse(struct session *s, const char *sni, int error)
{
    session_hello_log(s, sni, error);
    session_abort(s, session_hello_reason(error));
}

/* A client that sends nothing, such as a port check, is no error. */
static void session_hello_failed(struct session_hello *o, int error)
{
    struct session *s = o->session;

    s->legs[0]->bytes_in = preface_handler_rest_bytes(&o->reader.preface);
    if (error == -ENODATA) {
        session_close(s, SESSION_CLIENT_FIN);
        return;
    }
    session_hello_refuse(s, o->reader.hello.sni, error);
}

/* Keep the first protocol names that fit, separated by commas. */
static void session_hello_keep_alpn(struct session_hello *o)
{
    struct client_hello_bytes list = o->reader.hello.alpn, name;
    size_t n = 0;

    while (client_hello_alpn_next(&list, &name) && n + 1 + name.n < sizeof(o->alpn)) {
        if (n > 0)
            o->alpn[n++] = ',';
        memcpy(o->alpn + n, name.at, name.n);
        n += name.n;
    }
    o->alpn[n] = '\0';
}

int session_hello_route(struct session *s, const char *sni, struct client_hello_bytes alpn)
{
    const struct service *service = s->service;
    struct upstream *up =
        service->routes ? route_table_find(service->routes->table, sni, alpn) : NULL;

    if (!up)
        up = service->upstream;
    if (!up)
        return -ENOENT;
    service->ops->route(s, up);
    return 0;
}

static void session_hello_done(struct hello_handler *hh, int error)
{
    struct session_hello *o = CONTAINER_OF(hh, struct session_hello, reader);
    struct session *s = o->session;

    if (error == 0) {
        o->is_read = true;
        session_hello_keep_alpn(o);
        if (s->service->n_access_logs > 0)
            ja4_write(o->ja4, &hh->hello);
        error = session_hello_route(s, hh->hello.sni, hh->hello.alpn);
    }
    if (error < 0)
        session_hello_failed(o, error);
    else
        session_preface_done(s);
}

static size_t session_hello_bytes(const struct service *service)
{
    return service->routes && !service->tls ? sizeof(struct session_hello) : 0;
}

static void session_hello_carry_over(const struct session *s, void *memory)
{
    struct session_hello *o = memory;

    if (s->service->routes)
        o->timeout_ns = s->service->routes->timeout_ns;
}

static void session_hello_begin(struct session *s, struct channel *ch, void *memory)
{
    struct session_hello *o = memory;

    o->session = s;
    o->is_read = false;
    o->alpn[0] = o->ja4[0] = '\0';
    hello_handler_add(&o->reader, ch, session_hello_done);
    s->hello = o;
}

static size_t session_hello_rest_bytes(const void *memory)
{
    return preface_handler_rest_bytes(&((const struct session_hello *)memory)->reader.preface);
}

static void session_hello_release(void *memory)
{
    preface_handler_release(&((struct session_hello *)memory)->reader.preface);
}

static int64_t session_hello_timeout_ns(const struct session *s, const void *memory)
{
    (void)s;
    return ((const struct session_hello *)memory)->timeout_ns;
}

static void session_hello_give_up(void *memory)
{
    preface_handler_give_up(&((struct session_hello *)memory)->reader.preface);
}

const struct session_preface_stage session_hello_stage = {
    .bytes = session_hello_bytes,
    .begin = session_hello_begin,
    .rest_bytes = session_hello_rest_bytes,
    .release = session_hello_release,
    .timeout_ns = session_hello_timeout_ns,
    .give_up = session_hello_give_up,
    .carry_over = session_hello_carry_over,
};

static const char *session_hello_text(const char *text)
{
    return *text != '\0' ? text : NULL;
}

void session_hello_describe(const struct session *s, struct access_log_record *r)
{
    const struct session_hello *o = s->hello;

    if (!o || !o->is_read)
        return;
    r->sni = session_hello_text(o->reader.hello.sni);
    r->alpn = session_hello_text(o->alpn);
    r->ja4 = session_hello_text(o->ja4);
}
