/*
 * service/proxy_tls: TLS handshake with a server. See proxy_internal.h.
 *
 * A handshake is part of connecting: until it is done, the server's channel is not a leg of the
 * session, and the client is not read.
 *
 *   proxy_tls_start --> HANDSHAKE --done--> IDLE, attached
 *                           |-- failed --> FAILED --closed--> proxy_failed()
 *                           |-- evicted -> LEFT --closed--> proxy_reconnect()
 *                           \-- cancelled --> IDLE
 *
 * The server's channel does not outlive the proxy: the reap step closes the channel before the
 * session is freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balance/server_tls.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "service/proxy_internal.h"
#include "service/session_facts.h"
#include "service/session_header.h"
#include "service/session_tls.h"
#include "tls/tls_stream.h"
#include "upstream/upstream.h"

enum proxy_tls_state { PROXY_TLS_IDLE, PROXY_TLS_HANDSHAKE, PROXY_TLS_FAILED, PROXY_TLS_LEFT };

struct proxy_tls {
    struct server_tls tls;
    struct proxy *proxy;
    enum proxy_tls_state state;
    bool is_linked;    /* the server's leg uses it */
    bool has_failed;   /* after the handshake */
    const char *alert; /* of the last failure; NULL: none */
    int error;         /* in state FAILED */
    char why[SERVER_TLS_WHY_BYTES];
};

static void proxy_tls_give_up(struct proxy *p, int error, const char *why)
{
    const struct proxy_failure failure = {.error = error,
                                          .why = why,
                                          .reason = error == -ETIMEDOUT ? SESSION_CONNECT_TIMEOUT
                                                                        : SESSION_UPSTREAM_TLS,
                                          .is_ours = server_tls_error_is_ours(error)};

    session_facts_undone(session_facts_of(&p->session), error);
    proxy_release_addresses(p);
    proxy_failed(p, &failure);
}

static void proxy_tls_closed(struct proxy *p)
{
    struct proxy_tls *t = p->tls;
    enum proxy_tls_state state = t->state;

    t->state = PROXY_TLS_IDLE;
    if (state == PROXY_TLS_LEFT)
        proxy_reconnect(p);
    else if (state == PROXY_TLS_FAILED)
        proxy_tls_give_up(p, t->error, t->why);
}

/* ---- tail of the server's pipeline during the handshake; no bytes reach it ---- */

static void proxy_tls_on_event(struct handler *h)
{
    (void)h;
}

static void proxy_tls_on_read(struct handler *h, const uint8_t *data, size_t len)
{
    (void)h;
    (void)data;
    (void)len;
}

static void proxy_tls_fail(struct proxy_tls *t, int error)
{
    t->state = PROXY_TLS_FAILED;
    t->error = error;
    t->alert = error == -EPROTO ? server_tls_alert(&t->tls) : NULL;
    server_tls_why(&t->tls, error, t->why, sizeof(t->why));
}

/* Ignore failed writes: the end of the channel follows, or the deadline. */
static void proxy_tls_on_end(struct handler *h, enum handler_end what, int error)
{
    struct proxy *p = CONTAINER_OF(h, struct proxy, to_client.handler);

    if (what != HANDLER_CLOSED)
        return;
    server_tls_cancel(&p->tls->tls);
    if (p->tls->state == PROXY_TLS_HANDSHAKE)
        proxy_tls_fail(p->tls, error < 0 ? error : -ECONNRESET);
    proxy_tls_closed(p);
}

static const struct handler_ops proxy_tls_ops = {.name = "TLS handshake",
                                                 .active = proxy_tls_on_event,
                                                 .read = proxy_tls_on_read,
                                                 .ended = proxy_tls_on_end,
                                                 .writable = proxy_tls_on_event};

/* ---- after the handshake ---- */

static void proxy_tls_confirmed(struct server_tls *tls)
{
    struct proxy *p = CONTAINER_OF(tls, struct proxy_tls, tls)->proxy;

    upstream_connected(proxy_upstream(p), p->at);
}

static void proxy_tls_broken(struct server_tls *tls)
{
    struct proxy_tls *t = CONTAINER_OF(tls, struct proxy_tls, tls);
    const struct proxy *p = t->proxy;
    char why[SERVER_TLS_WHY_BYTES];
    unsigned suppressed;

    t->has_failed = true;
    t->alert = server_tls_alert(tls);
    if (log_allowed(&p->at->log_limit, PROXY_LOG_INTERVAL_NS, &suppressed))
        log_warning(
            "upstream %s: server %s (%s): %s; the %s%s", proxy_upstream(p)->name, p->at->name,
            p->at->conf->address_text, server_tls_failure(tls, why, sizeof(why)),
            p->stale_retry ? "connection ends" : "client is reset", LOG_SUPPRESSED(suppressed));
}

bool proxy_tls_is_unconfirmed(const struct proxy *p)
{
    return p->tls && p->tls->is_linked && !p->tls->tls.handler.is_confirmed;
}

bool proxy_tls_has_failed(const struct proxy *p)
{
    return p->tls && p->tls->has_failed;
}

const char *proxy_tls_alert(const struct proxy *p)
{
    return p->tls ? p->tls->alert : NULL;
}

static void proxy_tls_done(struct server_tls *tls, int error)
{
    struct proxy_tls *t = CONTAINER_OF(tls, struct proxy_tls, tls);
    struct proxy *p = t->proxy;

    if (error < 0) {
        proxy_tls_fail(t, error);
        channel_end(&p->server, CHANNEL_END_NOW); /* after an alert */
        return;
    }
    t->state = PROXY_TLS_IDLE;
    t->is_linked = true;
    p->server.bytes_in = p->server.bytes_out = 0; /* handshake bytes do not count */
    proxy_opened(p);
    proxy_link(p);
    tls_handler_release(&tls->handler);
    proxy_begin(p);
}

/* For alpn = client: agreed with us, or if a proxy in front has the client's TLS, with that. */
static struct client_hello_bytes proxy_tls_protocol(const struct session *s)
{
    const char *agreed = session_tls_protocol(s);
    const struct proxy_header_tls *received = s->tls ? NULL : session_header_tls(s);

    if (agreed)
        return (struct client_hello_bytes){(const uint8_t *)agreed, strlen(agreed)};
    return received ? (struct client_hello_bytes){received->alpn.at, received->alpn.n}
                    : CLIENT_HELLO_NONE;
}

void proxy_tls_start(struct proxy *p, int fd, const struct upstream_tls_conf *conf)
{
    const struct server_tls_wish wish = {
        .deadline_ns = loop_due_ns(p->session.owner->net->loop, p->tried_at_ns,
                                   proxy_time_left_ns(p, p->tried_at_ns)),
        .handshakes = proxy_upstream(p)->handshakes,
        .protocol = proxy_tls_protocol(&p->session),
        .resumes = true,
        .counters = &p->at->tls,
        .done = proxy_tls_done,
        .confirmed = proxy_tls_confirmed,
        .failed = proxy_tls_broken};

    if (!p->tls && !(p->tls = calloc(1, sizeof(*p->tls)))) {
        close(fd);
        proxy_tls_give_up(p, -ENOMEM, strerror(ENOMEM));
        return;
    }
    p->tls->proxy = p;
    p->tls->is_linked = p->tls->has_failed = false; /* it may be after a stale spare connection */
    p->tls->alert = NULL;
    channel_init(&p->server, p->session.owner->net, fd);
    channel_nodelay(&p->server, &proxy_upstream(p)->conf->connect.sock.options);
    pipeline_init(&p->server.pipeline, &p->server, &p->to_client.handler, &proxy_tls_ops);
    proxy_send_header(p);
    p->tls->state = PROXY_TLS_HANDSHAKE;
    if (server_tls_begin(&p->tls->tls, &p->server, conf, p->at, &wish) == 0)
        channel_start(&p->server);
    else
        channel_abort(&p->server, -ENOMEM);
}

void proxy_tls_adopt(struct proxy *p, const struct server_tls_taken *taken)
{
    if (!p->tls)
        p->tls = calloc(1, sizeof(*p->tls));
    if (p->tls) {
        p->tls->proxy = p;
        p->tls->is_linked = true;
        server_tls_adopt(&p->tls->tls, &p->server, taken);
        p->tls->tls.confirmed = proxy_tls_confirmed;
        p->tls->tls.failed = proxy_tls_broken;
        return;
    }
    tls_stream_free(taken->stream);
    channel_abort(&p->server, -ENOMEM);
}

bool proxy_tls_cancel(struct proxy *p, bool reconnects)
{
    struct proxy_tls *t = p->tls;

    if (!t || t->state == PROXY_TLS_IDLE)
        return false;
    t->state = reconnects ? PROXY_TLS_LEFT : PROXY_TLS_IDLE;
    server_tls_cancel(&t->tls);
    channel_abort(&p->server, 0);
    return true;
}

void proxy_tls_destroy(struct proxy *p)
{
    free(p->tls);
}
