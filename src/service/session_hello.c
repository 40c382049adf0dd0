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
#include "upstream/upstream.h"

#define SESSION_HELLO_LOG_INTERVAL_NS (1 * NS_PER_S)

struct session_hello {
    alignas(max_align_t) struct hello_handler reader;
    struct session *session;
    int64_t timeout_ns;
    int64_t silent_ns; /* time after which no byte had been received */
    struct route_choice choice;
    bool is_read;
    char alpn[ACCESS_LOG_RECORD_ALPN_BYTES];
    char ja4[JA4_BYTES]; /* for the access log only */
};

/* Does each route of ${s} need a ClientHello? */
static bool session_hello_needs_tls(const struct session *s)
{
    return !s->service->routes || route_table_needs_tls(s->service->routes->table);
}

static const char *session_hello_no_route(const struct session *s, const char *sni)
{
    if (*sni != '\0')
        return "no route has the server name and protocol";
    return session_hello_needs_tls(s)
               ? "sent no host name as server name, and no route matches without one"
               : "no route matches";
}

static const char *session_hello_problem(const struct session *s, int error, const char *sni)
{
    switch (error) {
    case -ENOMSG: return "sent no TLS ClientHello";
    case -EPROTO: return "sent a broken ClientHello";
    case -EMSGSIZE: return "sent a ClientHello that is too long";
    case -ETIMEDOUT:
        return session_hello_needs_tls(s)
                   ? "sent no complete ClientHello in time (client_hello_timeout)"
                   : "sent too few bytes to choose a route in time (client_hello_timeout)";
    case -ENOENT: return session_hello_no_route(s, sni);
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
                session_hello_problem(s, error, sni), LOG_SUPPRESSED(suppressed));
}

static enum session_reason session_hello_reason(int error)
{
    switch (error) {
    case -ETIMEDOUT: return SESSION_IDLE;
    case -ENOENT: return SESSION_NO_ROUTE;
    default: return SESSION_ERROR;
    }
}

/* As a client that the listener's rules deny. */
static void session_hello_deny(struct session *s)
{
    struct admission *ad = s->service->admission;

    if (ad && admission_deny(ad, &s->peer) == ADMISSION_CLOSE)
        session_close(s, SESSION_LIMIT);
    else
        session_abort(s, SESSION_LIMIT);
}

void session_hello_refuse(struct session *s, const char *sni, int error)
{
    if (error == -EACCES) {
        session_hello_deny(s);
        return;
    }
    session_hello_log(s, sni, error);
    if (error == -ENOMSG || error == -EPROTO || error == -EMSGSIZE)
        session_offend(s, BAN_OFFENCE_HELLO);
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

static void session_hello_log_denied(const struct session *s, const char *route)
{
    char text[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_wanted(LOG_LEVEL_INFO) &&
        log_allowed(&s->service->routes->denied_limit, SESSION_HELLO_LOG_INTERVAL_NS, &suppressed))
        log_info("listen %s: client %s: denied by route.%s%s", s->service->listener,
                 address_format(text, sizeof(text), &s->peer), route, LOG_SUPPRESSED(suppressed));
}

/* Follow ${choice}, which is empty without routes. */
static int session_hello_take(struct session *s, const struct route_choice *choice)
{
    const struct service *service = s->service;
    struct upstream *up = choice->id ? choice->upstream : service->upstream;

    if (choice->id && !up) {
        session_hello_log_denied(s, choice->id);
        return -EACCES;
    }
    if (!up)
        return -ENOENT;
    service->ops->route(s, up);
    return 0;
}

static int session_hello_find(struct session *s, struct route_client *client,
                              struct route_choice *out)
{
    const struct route_table *table = s->service->routes->table;

    if (route_table_has_shares(table))
        client->key = session_key(s);
    return route_table_find(table, client, out);
}

int session_hello_route(struct session *s, struct route_client *client)
{
    struct route_choice choice = {NULL, NULL};

    if (s->service->routes)
        MUST(session_hello_find(s, client, &choice) == 0);
    return session_hello_take(s, &choice);
}

/* A hello that no route asks for may be broken. */
static int session_hello_known(const struct hello_handler *hh,
                               const struct hello_handler_bytes *bytes,
                               const struct route_table *table, struct route_client *out)
{
    bool is_part = bytes->n > 1;

    switch (hh->scanned) {
    case 0:
        out->hello = ROUTE_HELLO_READ;
        out->sni = hh->hello.sni;
        out->alpn = hh->hello.alpn;
        out->tls = route_tls_of(&hh->hello);
        return 0;
    case -ENOMSG: out->hello = ROUTE_HELLO_NONE; return route_table_needs_tls(table) ? -ENOMSG : 0;
    case -EAGAIN:
        out->hello = is_part              ? ROUTE_HELLO_PART
                     : bytes->is_complete ? ROUTE_HELLO_NONE
                                          : ROUTE_HELLO_UNKNOWN;
        return bytes->is_complete && route_table_needs_hello(table) ? -EPROTO : 0;
    default: out->hello = ROUTE_HELLO_PART; return route_table_needs_hello(table) ? hh->scanned : 0;
    }
}

/* Does the upstream of ${choice} choose the server by the server name? */
static bool session_hello_is_hashed(const struct session *s, const struct route_choice *choice)
{
    const struct upstream *up = choice->id ? choice->upstream : s->service->upstream;

    return up && atomic_load(&up->conf)->hash_key.by == UPSTREAM_HASH_SNI;
}

/* No byte can come any more: each `after:` holds in its order, as if its time were over. */
static bool session_hello_ends_silent(const struct route_table *table, struct route_client *client)
{
    do {
        if (route_table_takes_silence(table, client))
            return true;
        client->silent_ns = route_table_next_after_ns(table, client->silent_ns);
    } while (client->silent_ns > 0);
    return false;
}

/* No byte was received. ${ended}: and none follows. */
static int session_hello_judge_silence(struct session_hello *o, bool ended)
{
    struct session *s = o->session;
    struct route_client client = {.address = &s->peer,
                                  .hello = ROUTE_HELLO_UNKNOWN,
                                  .silent_ns = o->silent_ns,
                                  .is_complete = ended};
    struct session_routes *routes = s->service->routes;
    int rc;

    if (s->service->conf->connect_on == SESSION_CONNECT_ON_FIRST_BYTE)
        return ended ? -ENODATA : -EAGAIN;
    if (ended && (!routes || !session_hello_ends_silent(routes->table, &client)))
        return -ENODATA;
    if (!routes)
        return 0;
    rc = session_hello_find(s, &client, &o->choice);
    if (rc == 0 && !ended && !route_table_takes_silence(routes->table, &client))
        rc = session_hello_is_hashed(s, &o->choice) ? -EAGAIN : 0;
    return rc;
}

static int session_hello_judge(struct hello_handler *hh, const struct hello_handler_bytes *bytes)
{
    struct session_hello *o = CONTAINER_OF(hh, struct session_hello, reader);
    struct session *s = o->session;
    struct route_client client = {.address = &s->peer,
                                  .first = {bytes->at, bytes->n},
                                  .is_complete = bytes->is_complete || hh->scanned == 0};
    struct session_routes *routes = s->service->routes;
    int rc;

    o->choice = (struct route_choice){NULL, NULL};
    if (bytes->n == 0)
        return session_hello_judge_silence(o, bytes->is_complete);
    if (!routes) /* a reload has ended them */
        return 0;
    rc = session_hello_known(hh, bytes, routes->table, &client);
    if (rc == 0)
        rc = session_hello_find(s, &client, &o->choice);
    if (rc == 0 && hh->scanned == -EAGAIN && !bytes->is_complete)
        rc = session_hello_is_hashed(s, &o->choice) ? -EAGAIN : 0;
    return rc;
}

static void session_hello_keep(struct session_hello *o)
{
    o->is_read = true;
    session_hello_keep_alpn(o);
    if (o->session->service->n_access_logs > 0)
        ja4_write(o->ja4, &o->reader.hello);
}

static void session_hello_done(struct hello_handler *hh, int error)
{
    struct session_hello *o = CONTAINER_OF(hh, struct session_hello, reader);
    struct session *s = o->session;

    if (error == 0) {
        if (hh->scanned == 0)
            session_hello_keep(o);
        error = session_hello_take(s, &o->choice);
    }
    if (error < 0)
        session_hello_failed(o, error);
    else
        session_preface_done(s);
}

static const struct hello_handler_ops session_hello_ops = {.judge = session_hello_judge,
                                                           .done = session_hello_done};

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
    o->silent_ns = 0;
    o->alpn[0] = o->ja4[0] = '\0';
    hello_handler_add(&o->reader, ch, &session_hello_ops);
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

static void session_hello_settle(void *memory)
{
    preface_handler_settle(&((struct session_hello *)memory)->reader.preface);
}

/* The next `after:` that a silent client may reach, always before the timeout; 0: none. */
static int64_t session_hello_next_after_ns(const struct session *s, const struct session_hello *o)
{
    return s->service->routes && session_hello_rest_bytes(o) == 0
               ? route_table_next_after_ns(s->service->routes->table, o->silent_ns)
               : 0;
}

static int64_t session_hello_timeout_ns(const struct session *s, const void *memory)
{
    const struct session_hello *o = memory;
    int64_t after_ns = session_hello_next_after_ns(s, o);

    return after_ns > 0 ? after_ns : o->timeout_ns;
}

static void session_hello_give_up(void *memory)
{
    struct session_hello *o = memory;
    int64_t after_ns = session_hello_next_after_ns(o->session, o);

    if (after_ns > 0) {
        o->silent_ns = after_ns;
        session_hello_settle(o);
    } else {
        preface_handler_give_up(&o->reader.preface);
    }
}

const struct session_preface_stage session_hello_stage = {
    .bytes = session_hello_bytes,
    .begin = session_hello_begin,
    .rest_bytes = session_hello_rest_bytes,
    .release = session_hello_release,
    .settle = session_hello_settle,
    .timeout_ns = session_hello_timeout_ns,
    .give_up = session_hello_give_up,
    .carry_over = session_hello_carry_over,
};

static const char *session_hello_text(const char *text)
{
    return *text != '\0' ? text : NULL;
}

const char *session_hello_name(const struct session *s)
{
    return s->hello && s->hello->is_read ? session_hello_text(s->hello->reader.hello.sni) : NULL;
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
