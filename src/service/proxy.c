/* All runs on the session's loop, except proxy_create(), and proxy_free() in session_refuse(). */
#include "service/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/proxy_internal.h"
#include "service/session_handlers.h"
#include "service/session_key.h"
#include "service/session_spares.h"
#include "stats/access_log_record.h"

static void proxy_leave(struct proxy *p, enum upstream_outcome outcome)
{
    struct upstream_server *at = p->at;

    p->at = NULL;
    if (at)
        upstream_leave(proxy_upstream(p), at, outcome);
}

/*
 * Hold ${server} for the access log: without a reference it may be freed when its last session
 * leaves it.
 */
static void proxy_remember(struct proxy *p, struct upstream_server *server)
{
    if (p->session.service->n_access_logs == 0 || !server)
        return;
    if (p->tried)
        upstream_server_release(p->tried);
    upstream_server_hold(server);
    p->tried = server;
}

/* Has the server sent a byte for the client? With TLS, `bytes_in` also has tickets and alerts. */
static bool proxy_server_has_spoken(const struct proxy *p)
{
    return p->tls ? p->times.first_byte_us != UINT32_MAX : p->server.bytes_in > 0;
}

/* Has the server refused the handshake, or broken TLS, before its first byte? */
static bool proxy_was_refused(const struct proxy *p)
{
    return !proxy_server_has_spoken(p) &&
           (proxy_tls_has_failed(p) ||
            (proxy_tls_is_unconfirmed(p) && p->session.reason == SESSION_UPSTREAM_RESET));
}

static enum upstream_outcome proxy_outcome(const struct proxy *p)
{
    if (!p->session.legs[1])
        return UPSTREAM_UNKNOWN;
    if (proxy_was_refused(p))
        return UPSTREAM_FAILED;
    if (!proxy_upstream(p)->conf->ejection.resets)
        return UPSTREAM_UNKNOWN;
    if (proxy_server_has_spoken(p))
        return UPSTREAM_WORKED;
    if (p->session.reason ==
        SESSION_CLIENT_FIN) /* the client ended first: only the server's reset counts */
        return p->server.error == -ECONNRESET ? UPSTREAM_FAILED : UPSTREAM_UNKNOWN;
    return p->session.reason == SESSION_UPSTREAM_RESET ? UPSTREAM_FAILED : UPSTREAM_UNKNOWN;
}

static void proxy_free(struct session *s)
{
    struct proxy *p = proxy_of(s);

    proxy_release_addresses(p);
    if (p->at && proxy_measures_time(p))
        proxy_time_ended(p);
    proxy_leave(p, proxy_outcome(p));
    proxy_end_pause(p);
    proxy_tls_destroy(p);
    if (p->stale_retry)
        s->owner->spares->ops->destroy(p->stale_retry);
    if (p->tried)
        upstream_server_release(p->tried);
    if (p->upstream)
        upstream_release(p->upstream);
    free(p);
}

static int proxy_create(struct session **out, const struct service *service)
{
    struct proxy *p = session_handlers_alloc(service, sizeof(*p));

    if (!p)
        return -ENOMEM;
    session_init(&p->session, service);
    p->upstream = service->upstream && !service->routes ? upstream_hold(service->upstream) : NULL;
    p->ticket = NULL;
    p->at = NULL;
    p->dial = NULL;
    p->addresses = NULL;
    p->stale_retry = NULL;
    p->tls = NULL;
    p->pause = NULL;
    p->tries = 0;
    p->has_failed = false;
    p->reason = SESSION_OPEN;
    p->pick.n_tried = 0;
    p->tried = NULL;
    p->times = (struct proxy_times){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    *out = &p->session;
    return 0;
}

static const char *proxy_none_text(const struct proxy *p, int error)
{
    switch (error) {
    case -EBUSY: return "all servers are at max_connections";
    case -ENOBUFS: return "the queue is full (queue_length, or max_held of a pause)";
    case -ETIMEDOUT:
        return "no server had a free connection in time (queue_timeout, or a minute after a pause)";
    case -ENOMEM: return "out of memory";
    default:
        return p->pick.n_tried > 0 || p->has_failed ? "no server is left to try"
                                                    : "no server is available";
    }
}

static enum session_reason proxy_none_reason(const struct proxy *p, int error)
{
    switch (error) {
    case -EBUSY:
    case -ENOBUFS: return SESSION_LIMIT;
    case -ETIMEDOUT: return SESSION_QUEUE_TIMEOUT;
    case -ENOMEM: return SESSION_ERROR;
    default: return p->reason != SESSION_OPEN ? p->reason : SESSION_NO_SERVER;
    }
}

void proxy_no_server(struct proxy *p, int error)
{
    struct upstream *up = proxy_upstream(p);
    unsigned suppressed;

    if (error == -ENOENT && proxy_pause(p))
        return;
    if (log_allowed(&up->log_limit, PROXY_LOG_INTERVAL_NS, &suppressed))
        log_event_again(LOG_UPSTREAM, LOG_LEVEL_WARNING, "upstream %s: %s; the client is reset%s",
                        up->name, proxy_none_text(p, error), LOG_SUPPRESSED(suppressed));
    session_abort(&p->session, proxy_none_reason(p, error));
}

void proxy_connect_to(struct proxy *p, struct upstream_server *server)
{
    p->at = server;
    p->tries++;
    session_count_at(&p->session, SESSION_AT_SERVER, &server->counters);
    if (!proxy_take_spare(p))
        proxy_dial(p);
}

/* Without retry_timeout, pauses must end within connect_timeout from now. */
int64_t proxy_retry_until_ns(const struct proxy *p)
{
    const struct upstream_conf *conf = proxy_upstream(p)->conf;

    return conf->retry_timeout_ns > 0 ? p->give_up_at_ns
                                      : clock_add_ns(clock_now_ns(), conf->connect_timeout_ns);
}

void proxy_connect(struct proxy *p)
{
    struct upstream *up = proxy_upstream(p);
    struct upstream_server *server;
    bool is_held = hold_is_closed(&up->waiting.hold);
    int rc = upstream_pick(up, &p->pick, &server);

    if (rc == 0) {
        proxy_connect_to(p, server);
        return;
    }
    is_held |= hold_is_closed(&up->waiting.hold);
    if (rc == -EBUSY && (up->conf->queue_length > 0 || is_held))
        rc = proxy_wait(p);
    if (rc == -ENOBUFS && is_held && !hold_is_closed(&up->waiting.hold))
        proxy_connect(p); /* the upstream's pause has just ended */
    else if (rc < 0)
        proxy_no_server(p, rc);
}

void proxy_try_again(struct proxy *p)
{
    balancer_begin(&p->pick, p->pick.key);
    proxy_connect(p);
}

void proxy_give_up_server(struct proxy *p, enum upstream_outcome outcome,
                          enum session_reason reason)
{
    session_count_off(&p->session, SESSION_AT_SERVER, reason);
    proxy_remember(p, p->at);
    proxy_leave(p, outcome);
    p->reason = reason;
}

void proxy_opened(struct proxy *p)
{
    int64_t took_ns = clock_now_ns() - p->tried_at_ns;

    p->times.connect_us = proxy_us(took_ns);
    if (!proxy_tls_is_unconfirmed(p))
        upstream_connected(proxy_upstream(p), p->at);
    counters_connected(&p->at->connects, took_ns);
    if (proxy_measures_time(p))
        proxy_time_connected(p, took_ns);
}

static void proxy_open(struct session *s)
{
    struct proxy *p = proxy_of(s);

    channel_init(&p->client, s->owner->net, s->client_fd);
    s->client_fd = -1;
    session_leg_open(s, 0, &p->client);
    pipeline_init(&p->client.pipeline, &p->client, &p->to_server.handler, &proxy_waiting_ops);
    session_handlers_add(s, &p->client, p + 1);
}

static uint64_t proxy_key(struct proxy *p)
{
    const struct upstream_hash_key *key = &proxy_upstream(p)->conf->hash_key;

    if (key->by == UPSTREAM_HASH_CLIENT)
        return session_key(&p->session);
    return session_key_by(&p->session, key);
}

static void proxy_start(struct session *s)
{
    struct proxy *p = proxy_of(s);

    channel_notice_reset(&p->client);
    session_count_at(s, SESSION_AT_UPSTREAM, &proxy_upstream(p)->counters);
    p->give_up_at_ns = proxy_deadline_ns(p);
    p->retry_until_ns = proxy_retry_until_ns(p);
    retry_budget_add(&proxy_upstream(p)->retry_budget);
    balancer_begin(&p->pick, proxy_key(p));
    proxy_connect(p);
}

static void proxy_route(struct session *s, struct upstream *up)
{
    struct proxy *p = proxy_of(s);

    (void)upstream_hold(up);
    if (p->upstream)
        upstream_release(p->upstream);
    p->upstream = up;
}

static int64_t proxy_server_idle_timeout_ns(const struct session *s)
{
    return proxy_upstream(proxy_of(s))->conf->idle_timeout_ns;
}

static int64_t proxy_server_closed_timeout_ns(const struct session *s)
{
    return proxy_upstream(proxy_of(s))->conf->server_closed_timeout_ns;
}

static void proxy_cancel(struct session *s)
{
    struct proxy *p = proxy_of(s);

    proxy_end_wait(p);
    proxy_end_pause(p);
    proxy_end_dial(p);
    (void)proxy_tls_cancel(p, false);
    proxy_release_addresses(p);
    /* Free the server's connection slot now: the client may take long to close. */
    session_count_off(s, SESSION_AT_SERVER, s->reason);
    proxy_remember(p, p->at);
    proxy_leave(p, UPSTREAM_UNKNOWN);
}

static const char *proxy_peer_name(const struct session *s)
{
    const struct proxy *p = proxy_of(s);

    return p->at ? p->at->name : NULL;
}

static void proxy_first_byte(struct session *s, const struct channel *from)
{
    struct proxy *p = proxy_of(s);
    int64_t now_ns = clock_now_ns();

    if (proxy_measures_time(p))
        proxy_time_first_byte(p, from, now_ns);
    if (from == &p->client)
        return;
    p->times.first_byte_us = proxy_us(now_ns - s->began_at_ns);
    counters_first_byte(&p->at->connects, now_ns - s->opened_at_ns);
}

static int64_t proxy_ns_of(uint32_t us)
{
    return us == UINT32_MAX ? ACCESS_LOG_RECORD_NONE_NS : us * NS_PER_US;
}

static void proxy_describe(const struct session *s, struct access_log_record *r)
{
    const struct proxy *p = proxy_of(s);

    r->upstream = p->upstream ? p->upstream->name : NULL;
    r->server = p->at ? p->at->name : p->tried ? p->tried->conf->id : NULL;
    if (p->addresses && s->legs[1])
        r->server_address = &p->addresses->list[p->connected];
    r->server_tls_alert = proxy_tls_alert(p);
    r->queue_ns = proxy_ns_of(p->times.queue_us);
    r->connect_ns = proxy_ns_of(p->times.connect_us);
    r->first_byte_ns = proxy_ns_of(p->times.first_byte_us);
    r->tries = p->tries;
}

static void proxy_carry_over(struct session *s)
{
    struct proxy *p = proxy_of(s);

    if (!s->legs[1])
        return;
    relay_carry_over(&p->to_server);
    relay_carry_over(&p->to_client);
}

void proxy_reconnect(struct proxy *p)
{
    proxy_release_addresses(p);
    proxy_give_up_server(p, UPSTREAM_UNKNOWN, SESSION_SERVER_DOWN);
    proxy_connect(p);
}

/* A session that still connects loses no bytes: connect it to another server. */
static bool proxy_evict(struct session *s, const struct upstream_server *server, int64_t before_ns,
                        enum session_reason reason)
{
    struct proxy *p = proxy_of(s);

    if (p->at != server || p->tried_at_ns > before_ns)
        return false;
    if (s->phase != SESSION_PHASE_CONNECTING) {
        session_abort(s, reason);
    } else if (!proxy_tls_cancel(p, true)) {
        proxy_end_dial(p);
        proxy_reconnect(p);
    }
    return true;
}

const struct service_ops proxy_ops = {.name = "proxy",
                                      .descriptors = 2,
                                      .create = proxy_create,
                                      .open = proxy_open,
                                      .start = proxy_start,
                                      .route = proxy_route,
                                      .server_idle_timeout_ns = proxy_server_idle_timeout_ns,
                                      .server_closed_timeout_ns = proxy_server_closed_timeout_ns,
                                      .cancel = proxy_cancel,
                                      .peer_name = proxy_peer_name,
                                      .describe = proxy_describe,
                                      .first_byte = proxy_first_byte,
                                      .evict = proxy_evict,
                                      .carry_over = proxy_carry_over,
                                      .has_tls = proxy_has_tls,
                                      .save = proxy_save,
                                      .place = proxy_place,
                                      .restore = proxy_restore,
                                      .limit = proxy_limit,
                                      .is_stranded = proxy_is_stranded,
                                      .free = proxy_free};
