#include "service/session_tls.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/session_internal.h"
#include "tls/tls_counters.h"
#include "tls/tls_failure.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"
#include "tls/tls_stream.h"

/* With over_limit = wait: pause between attempts to get a thread. */
#define SESSION_TLS_RETRY_NS (20 * NS_PER_MS)

struct session_tls {
    alignas(max_align_t) struct tls_handler handler;
    struct session *session;
    struct timer retry;
    enum quota_over over_limit;
    int64_t timeout_ns;
};

static struct session_tls *session_tls_of(struct tls_handler *t)
{
    return CONTAINER_OF(t, struct session_tls, handler);
}

/* ---- failures ---- */

static const char *session_tls_why(const struct session_tls *o, int error, char *text, size_t size)
{
    switch (error) {
    case -EPROTO: return tls_failure_text(tls_stream_failure(o->handler.stream), text, size);
    case -ETIMEDOUT: return "not done within handshake_timeout";
    case -EBUSY: return "too many handshakes wait for a thread (max_pending)";
    case -ECONNRESET: return "the client closed the connection";
    case -EMSGSIZE: return "its messages are too long";
    default: return strerror(-error);
    }
}

static void session_tls_log(const struct session_tls *o, int error)
{
    static struct log_limit limit;
    const struct session *s = o->session;
    char peer[ADDRESS_TEXT_BYTES], text[TLS_FAILURE_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&limit, NS_PER_S, &suppressed))
        log_warning("listen %s: client %s: TLS handshake failed: %s%s", s->service->listener,
                    address_format(peer, sizeof(peer), &s->peer),
                    session_tls_why(o, error, text, sizeof(text)), LOG_SUPPRESSED(suppressed));
}

/* A client that closes without sending a byte, as port checks do, is no error. */
static void session_tls_failed(struct session_tls *o, int error)
{
    struct session *s = o->session;

    s->legs[0]->bytes_in = 0; /* a handshake does not count */
    if (error == -ENODATA) {
        session_close(s, SESSION_CLIENT_FIN);
        return;
    }
    if (error == -EBUSY)
        tls_count(&o->handler.conf.counters->refused);
    session_tls_log(o, error);
    if (error == -EPROTO || (error == -EBUSY && o->over_limit == QUOTA_OVER_CLOSE))
        session_close(s, SESSION_TLS_HANDSHAKE); /* after the alert */
    else
        session_abort(s, SESSION_TLS_HANDSHAKE);
}

/* ---- over_limit = wait ---- */

static void session_tls_run_retry(struct task *t)
{
    struct session_tls *o =
        CONTAINER_OF(CONTAINER_OF(t, struct timer, task), struct session_tls, retry);

    tls_handler_retry(&o->handler);
}

static void session_tls_drop_retry(struct task *t)
{
    (void)t;
}

static const struct task_type session_tls_retry_type = {
    .name = "TLS handshake waits", .run = session_tls_run_retry, .drop = session_tls_drop_retry};

/* ---- the stage ---- */

static void session_tls_done(struct tls_handler *t, int error)
{
    struct session_tls *o = session_tls_of(t);

    if (error == 0)
        session_preface_done(o->session);
    else if (error == -EBUSY && o->over_limit == QUOTA_OVER_WAIT)
        loop_schedule(o->session->owner->net->loop, &o->retry, SESSION_TLS_RETRY_NS);
    else
        session_tls_failed(o, error);
}

static size_t session_tls_bytes(const struct service *service)
{
    return service->tls ? sizeof(struct session_tls) : 0;
}

static void session_tls_begin(struct session *s, struct channel *ch, void *room)
{
    struct session_tls *o = room;
    const struct session_tls_conf *conf = s->service->tls;
    struct tls_handler_conf handler;
    struct tls_profile *profile;
    struct ssl_st *ssl;

    if (!conf) { /* a reload has ended TLS on this listener */
        session_abort(s, SESSION_DRAIN);
        return;
    }
    profile = tls_slot_current(conf->slot);
    ssl = tls_profile_new_server(profile);
    handler = conf->handler;
    handler.truncated_is_reset = tls_profile_truncated(profile) == TLS_TRUNCATED_RESET;
    tls_profile_release(profile);
    *o = (struct session_tls){
        .session = s, .over_limit = conf->over_limit, .timeout_ns = conf->timeout_ns};
    o->handler.accepts = true;
    o->handler.done = session_tls_done;
    o->handler.deadline_ns =
        conf->timeout_ns > 0 ? clock_add_ns(clock_now_ns(), conf->timeout_ns) : CLOCK_NEVER;
    timer_init(&o->retry, &session_tls_retry_type);
    if (!ssl || tls_handler_add(&o->handler, ch, ssl, &handler) < 0) {
        session_abort(s, SESSION_ERROR);
        return;
    }
    s->tls = o;
}

static size_t session_tls_rest_bytes(const void *room)
{
    return tls_handler_rest_bytes(&((const struct session_tls *)room)->handler);
}

static void session_tls_release(void *room)
{
    tls_handler_release(&((struct session_tls *)room)->handler);
}

static int64_t session_tls_timeout_ns(const struct session *s, const void *room)
{
    (void)s;
    return ((const struct session_tls *)room)->timeout_ns;
}

static void session_tls_give_up(void *room)
{
    tls_handler_give_up(&((struct session_tls *)room)->handler);
}

const struct session_preface_stage session_tls_stage = {
    .bytes = session_tls_bytes,
    .begin = session_tls_begin,
    .rest_bytes = session_tls_rest_bytes,
    .release = session_tls_release,
    .timeout_ns = session_tls_timeout_ns,
    .give_up = session_tls_give_up,
};

void session_tls_end(struct session *s)
{
    if (s->tls)
        loop_cancel(s->owner->net->loop, &s->tls->retry);
}

const struct tls_handler *session_tls_handler(const struct session *s)
{
    return s->tls ? &s->tls->handler : NULL;
}
