#include "service/session_tls.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/session_hello.h"
#include "service/session_internal.h"
#include "stats/access_log_record.h"
#include "tls/tls_counters.h"
#include "tls/tls_facts.h"
#include "tls/tls_failure.h"
#include "tls/tls_hello.h"
#include "tls/tls_profile.h"
#include "tls/tls_sections.h"
#include "tls/tls_stream.h"
#include "upstream/route.h"

/* With over_limit = wait: pause between attempts to get a thread. */
#define SESSION_TLS_RETRY_NS (20 * NS_PER_MS)

struct session_tls {
    alignas(max_align_t) struct tls_handler handler;
    struct session *session;
    struct timer retry;
    struct tls_sections *sections; /* a reference */
    const char *section;           /* name of the one chosen; NULL: not yet */
    enum quota_over over_limit;
    int64_t timeout_ns;
    int64_t stage_at_ns; /* when the stage began */
    int64_t handshake_ns;
    const char *alert;       /* of a failed handshake or connection; NULL: none */
    struct tls_facts *facts; /* NULL: the handshake is not done */
};

static struct session_tls *session_tls_of(struct tls_handler *t)
{
    return CONTAINER_OF(t, struct session_tls, handler);
}

/* ---- failures ---- */

/* Has the client sent no byte, and does first_byte_timeout, not handshake_timeout, end it? */
static bool session_tls_awaits_first_byte(const struct session_tls *o)
{
    return o->handler.handshake_bytes == 0 && o->session->service->conf->first_byte_timeout_ns > 0;
}

static const char *session_tls_why(const struct session_tls *o, int error, char *text, size_t size)
{
    switch (error) {
    case -EPROTO: return tls_failure_text(tls_stream_failure(o->handler.stream), text, size);
    case -ETIMEDOUT:
        return session_tls_awaits_first_byte(o)  ? "no byte within first_byte_timeout"
               : o->handler.handshake_bytes == 0 ? "no byte within handshake_timeout"
                                                 : "not done within handshake_timeout";
    case -EBUSY: return "too many handshakes wait for a thread (max_pending)";
    case -ECONNRESET: return "the client closed the connection";
    case -EMSGSIZE: return "the client's messages are too long";
    default: return strerror(-error);
    }
}

static void session_tls_log(const struct session_tls *o, const char *what, const char *why)
{
    static struct log_limit limit;
    const struct session *s = o->session;
    const char *sni = o->handler.hello ? o->handler.hello->sni : "";
    char peer[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&limit, NS_PER_S, &suppressed))
        log_warning("listen %s: client %s%s%s: %s failed: %s%s", s->service->listener,
                    address_format(peer, sizeof(peer), &s->peer), *sni ? " for " : "", sni, what,
                    why, LOG_SUPPRESSED(suppressed));
}

/* An alert of the client may complain about our certificate, and a timeout be our own fault. */
static bool session_tls_is_offence(const struct session_tls *o, int error)
{
    return error == -EMSGSIZE ||
           (error == -EPROTO && !tls_stream_failure(o->handler.stream)->alert_received);
}

/* A client that sends nothing, such as a port check, is no error. */
static void session_tls_failed(struct session_tls *o, int error)
{
    struct session *s = o->session;
    char text[TLS_FAILURE_TEXT_BYTES];

    if (error == -ENODATA) {
        session_close(s, SESSION_CLIENT_FIN);
        return;
    }
    if (error == -EBUSY)
        tls_count(&o->handler.conf.counters->refused);
    session_tls_log(o, "TLS handshake", session_tls_why(o, error, text, sizeof(text)));
    if (session_tls_is_offence(o, error))
        session_offend(s, BAN_OFFENCE_TLS);
    if (error == -EPROTO || (error == -EBUSY && o->over_limit == QUOTA_OVER_CLOSE))
        session_close(s, SESSION_TLS_HANDSHAKE); /* after the alert, if any */
    else if (error == -ETIMEDOUT && session_tls_awaits_first_byte(o))
        session_abort(s, SESSION_IDLE);
    else
        session_abort(s, SESSION_TLS_HANDSHAKE);
}

/* After the handshake. The end of the session follows. */
static void session_tls_broken(struct tls_handler *t)
{
    struct session_tls *o = session_tls_of(t);
    char text[TLS_FAILURE_TEXT_BYTES];

    o->alert = tls_failure_alert(tls_stream_failure(t->stream));
    session_tls_log(o, "TLS", session_tls_why(o, -EPROTO, text, sizeof(text)));
}

/* ---- over_limit = wait ---- */

static void session_tls_run_retry(struct task *t)
{
    struct session_tls *o = TIMER_OWNER(t, struct session_tls, retry);

    tls_handler_retry(&o->handler);
}

static const struct task_type session_tls_retry_type = {.name = "TLS handshake waits",
                                                        .run = session_tls_run_retry};

/* ---- the stage ---- */

static unsigned session_tls_version(const struct tls_facts *facts)
{
    if (!facts->version)
        return 0;
    if (strcmp(facts->version, "TLSv1.3") == 0)
        return ROUTE_TLS_1_3;
    return strcmp(facts->version, "TLSv1.2") == 0 ? ROUTE_TLS_1_2 : 0;
}

/* Route by the negotiated protocol; if none was negotiated, by those that the client offered. */
static int session_tls_route(struct session_tls *o)
{
    const struct tls_hello *hello = o->handler.hello;
    const struct service *service = o->session->service;
    struct route_client client = {.address = &o->session->peer,
                                  .hello = ROUTE_HELLO_READ,
                                  .sni = hello ? hello->sni : "",
                                  .tls = session_tls_version(o->facts),
                                  .is_complete = true};
    uint8_t negotiated[1 + UINT8_MAX];

    if (!service->routes && !service->upstream)
        return 0; /* an echo */
    if (o->facts->alpn) {
        size_t len = strlen(o->facts->alpn);

        negotiated[0] = (uint8_t)len;
        memcpy(negotiated + 1, o->facts->alpn, len);
        client.alpn = (struct client_hello_bytes){negotiated, 1 + len};
    } else if (hello) {
        client.alpn = hello->alpn;
    }
    return session_hello_route(o->session, &client);
}

static void session_tls_opened(struct session_tls *o)
{
    int rc = tls_facts_create(&o->facts, o->handler.stream);

    if (rc < 0) {
        session_tls_failed(o, rc);
        return;
    }
    rc = session_tls_route(o);
    if (rc < 0)
        session_hello_refuse(o->session, o->handler.hello ? o->handler.hello->sni : "", rc);
    else
        session_preface_done(o->session);
}

/* The client's first byte: handshake_timeout begins. */
static void session_tls_began(struct tls_handler *t)
{
    struct session_tls *o = session_tls_of(t);

    t->deadline_ns = o->timeout_ns > 0 ? clock_add_ns(t->began_at_ns, o->timeout_ns) : CLOCK_NEVER;
    session_timer_arm(o->session); /* first_byte_timeout may be longer */
}

static struct ssl_st *session_tls_choose(struct tls_handler *t)
{
    struct session_tls *o = session_tls_of(t);
    struct tls_profile *profile =
        tls_sections_choose(o->sections, t->hello ? t->hello->sni : "", &o->section);
    struct ssl_st *ssl = tls_profile_new_server(profile);

    t->conf.truncated_is_reset = tls_profile_truncated(profile) == TLS_TRUNCATED_RESET;
    tls_profile_release(profile);
    return ssl;
}

static void session_tls_done(struct tls_handler *t, int error)
{
    struct session_tls *o = session_tls_of(t);

    if (error == -EBUSY && (o->over_limit == QUOTA_OVER_WAIT || o->over_limit == QUOTA_OVER_LOG)) {
        loop_schedule(o->session->owner->net->loop, &o->retry, SESSION_TLS_RETRY_NS);
        return;
    }
    o->handshake_ns = clock_now_ns() - t->began_at_ns;
    if (error == 0) {
        session_tls_opened(o);
        return;
    }
    if (error == -EPROTO)
        o->alert = tls_failure_alert(tls_stream_failure(t->stream));
    session_tls_failed(o, error);
}

static size_t session_tls_bytes(const struct service *service)
{
    return service->tls ? sizeof(struct session_tls) : 0;
}

static void session_tls_begin(struct session *s, struct channel *ch, void *memory)
{
    struct session_tls *o = memory;
    const struct session_tls_conf *conf = s->service->tls;

    *o = (struct session_tls){.session = s, .handshake_ns = ACCESS_LOG_RECORD_NONE_NS};
    if (!conf) { /* a reload has ended TLS on this listener */
        session_abort(s, SESSION_DRAIN);
        return;
    }
    o->over_limit = conf->over_limit;
    o->timeout_ns = conf->timeout_ns;
    o->handler.accepts = true;
    o->handler.choose = session_tls_choose;
    o->handler.done = session_tls_done;
    o->handler.failed = session_tls_broken;
    o->handler.began = session_tls_began;
    o->stage_at_ns = loop_now_ns(s->owner->net->loop);
    timer_init(&o->retry, &session_tls_retry_type);
    if (tls_handler_add(&o->handler, ch, NULL, &conf->handler) < 0) {
        session_abort(s, SESSION_ERROR);
        return;
    }
    o->sections = tls_sections_hold(conf->sections);
    s->tls = o;
}

static size_t session_tls_rest_bytes(const void *memory)
{
    return tls_handler_rest_bytes(&((const struct session_tls *)memory)->handler);
}

static void session_tls_release(void *memory)
{
    tls_handler_release(&((struct session_tls *)memory)->handler);
}

/* Before the client's first byte: first_byte_timeout, or the time that the handshake has. */
static int64_t session_tls_timeout_ns(const struct session *s, const void *memory)
{
    const struct session_tls *o = memory;

    if (o->handler.handshake_bytes > 0)
        return o->timeout_ns > 0 ? o->handler.deadline_ns - o->stage_at_ns : 0;
    return s->service->conf->first_byte_timeout_ns > 0 ? s->service->conf->first_byte_timeout_ns
                                                       : o->timeout_ns;
}

static bool session_tls_is_busy(const void *memory)
{
    return ((const struct session_tls *)memory)->handler.in_step;
}

static void session_tls_give_up(void *memory)
{
    tls_handler_give_up(&((struct session_tls *)memory)->handler);
}

const struct session_preface_stage session_tls_stage = {
    .bytes = session_tls_bytes,
    .begin = session_tls_begin,
    .rest_bytes = session_tls_rest_bytes,
    .release = session_tls_release,
    .timeout_ns = session_tls_timeout_ns,
    .is_busy = session_tls_is_busy,
    .give_up = session_tls_give_up,
};

void session_tls_end(struct session *s)
{
    if (s->tls)
        loop_cancel(s->owner->net->loop, &s->tls->retry);
}

void session_tls_free(struct session *s)
{
    if (!s->tls)
        return;
    tls_hello_release(s->tls->handler.hello);
    free(s->tls->facts);
    tls_sections_release(s->tls->sections);
}

void session_tls_describe(const struct session *s, struct access_log_record *r)
{
    const struct session_tls *o = s->tls;

    if (!o)
        return;
    r->tls_handshake_ns = o->handshake_ns;
    r->tls_alert = o->alert;
    r->tls_section = o->section;
    r->sni = session_tls_name(s);
    if (o->handler.hello)
        r->ja4 = o->handler.hello->ja4;
    if (!o->facts)
        return;
    r->tls_version = o->facts->version;
    r->tls_cipher = o->facts->cipher;
    r->tls_group = o->facts->group;
    r->tls_resumed = o->facts->resumed ? "yes" : "no";
    r->tls_client_name = o->facts->name;
    r->tls_client_fingerprint = o->facts->fingerprint;
    r->alpn = o->facts->alpn;
}

const char *session_tls_name(const struct session *s)
{
    const struct tls_hello *hello = s->tls ? s->tls->handler.hello : NULL;

    return hello && *hello->sni != '\0' ? hello->sni : NULL;
}

const char *session_tls_protocol(const struct session *s)
{
    return s->tls && s->tls->facts ? s->tls->facts->alpn : NULL;
}

static struct proxy_header_value session_tls_value(const char *text)
{
    size_t len = text ? strlen(text) : 0;

    return (struct proxy_header_value){len > 0 ? (const uint8_t *)text : NULL, len};
}

static uint8_t session_tls_client_flags(const struct tls_facts *facts)
{
    uint8_t flags = PROXY_HEADER_SSL_USED;

    if (facts->has_certificate)
        flags |= PROXY_HEADER_SSL_SESSION;
    if (facts->has_certificate && !facts->resumed)
        flags |= PROXY_HEADER_SSL_CERTIFICATE;
    return flags;
}

bool session_tls_tell(const struct session *s, bool certificate, struct session_tls_told *told)
{
    const struct session_tls *o = s->tls;
    struct proxy_header_ssl ssl;

    if (!o || !o->facts)
        return false;
    ssl = (struct proxy_header_ssl){.client = session_tls_client_flags(o->facts),
                                    .verify = o->facts->verify,
                                    .version = o->facts->version,
                                    .cipher = o->facts->cipher,
                                    .group = o->facts->group,
                                    .name = o->facts->name};
    if (certificate) {
        ssl.certificate.at = told->certificate;
        ssl.certificate.n =
            tls_facts_certificate(o->handler.stream, told->certificate, sizeof(told->certificate));
        if (ssl.certificate.n == 0)
            ssl.certificate.at = NULL;
    }
    told->tls = (struct proxy_header_tls){
        .alpn = session_tls_value(o->facts->alpn),
        .authority = session_tls_value(session_tls_name(s)),
        .ssl = {told->ssl, proxy_header_ssl_encode(told->ssl, sizeof(told->ssl), &ssl)}};
    return true;
}
