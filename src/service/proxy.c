/* service/proxy: see proxy.h. Everything but proxy_create() runs on the loop of the session. */
#include "service/proxy.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/connector.h"
#include "service/log_handler.h"
#include "service/relay.h"

/* One line a second about each server that cannot be reached. */
#define PROXY_LOG_INTERVAL_NS (1 * NS_PER_S)

struct proxy {
    alignas(CACHE_LINE_BYTES) struct channel client; /* see note: layout in net/channel.h */
    struct relay to_server;
    alignas(CACHE_LINE_BYTES) struct channel server;
    struct relay to_client;
    struct session session;
    struct connector connector;
    struct balancer_walk walk;
    unsigned server_index;
    struct log_handler log;
};

static struct proxy *proxy_of(const struct session *s)
{
    return CONTAINER_OF(s, struct proxy, session);
}

static struct upstream_server *proxy_server(const struct proxy *p)
{
    return &p->session.service->upstream->servers[p->server_index];
}

static void proxy_free(struct session *s)
{
    free(proxy_of(s));
}

static int proxy_create(struct session **out, const struct service *service)
{
    struct proxy *p = aligned_alloc(alignof(struct proxy), sizeof(*p));

    if (!p)
        return -ENOMEM;
    session_init(&p->session, service);
    *out = &p->session;
    return 0;
}

/*
 * The tail of the client's pipeline until there is a server. The client is not read before, so nothing but its end can
 * happen to it.
 */
static void proxy_client_closed(struct handler *h, int error)
{
    struct proxy *p = CONTAINER_OF(h, struct proxy, to_server.handler);

    session_leg_closed(&p->session, h->channel, error);
}

static const struct handler_ops proxy_waiting_ops = {.name = "waiting",
                                                     .closed = proxy_client_closed};

static void proxy_log_failure(const struct proxy *p, const char *why, const char *then)
{
    struct upstream_server *server = proxy_server(p);
    unsigned suppressed;

    if (!log_allowed(&server->log_limit, PROXY_LOG_INTERVAL_NS, &suppressed))
        return;
    log_warning(
        "upstream %s: server %s (%s): cannot connect: %s; %s (%u more such lines held back)",
        p->session.service->upstream->conf->name, server->conf->id, server->conf->address_text, why,
        then, suppressed);
}

/* The server at hand failed: pick the next one. False: there is none, and the session ends. */
static bool proxy_pick_next(struct proxy *p, const char *why)
{
    struct upstream *up = p->session.service->upstream;
    unsigned next;

    if (p->walk.tried > up->conf->retries || balancer_next(&up->balancer, &p->walk, &next) < 0) {
        proxy_log_failure(p, why, "no server left to try, the client is reset");
        session_abort(&p->session, SESSION_NO_SERVER);
        return false;
    }
    proxy_log_failure(p, why, "trying the next server");
    p->server_index = next;
    return true;
}

static void proxy_connect(struct proxy *p)
{
    const struct upstream_conf *conf = p->session.service->upstream->conf;
    const struct upstream_addresses *at;

    while (!(at = upstream_addresses(proxy_server(p))))
        if (!proxy_pick_next(p, "the name is not known yet"))
            return;
    connector_start(&p->connector, at->list, at->n, conf->connect_timeout_ns, &conf->connect);
}

/* We ran out of something: no other server would fare better. */
static bool proxy_error_is_local(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

static void proxy_failed(struct proxy *p, int error)
{
    if (proxy_error_is_local(error)) {
        proxy_log_failure(p, strerror(-error), "the client is reset");
        session_abort(&p->session, SESSION_ERROR);
    } else if (proxy_pick_next(p, strerror(-error))) {
        proxy_connect(p);
    }
}

static void proxy_connected(struct connector *c, int fd, int error)
{
    struct proxy *p = CONTAINER_OF(c, struct proxy, connector);
    struct session *s = &p->session;

    if (error < 0) {
        proxy_failed(p, error);
        return;
    }
    s->connecting = false;
    channel_init(&p->server, s->owner->net, fd);
    session_leg_open(s, 1, &p->server);
    relay_init(&p->to_server, s, &p->client, &p->server);
    relay_init(&p->to_client, s, &p->server, &p->client);
    if (s->service->log_handler)
        log_handler_add(&p->log, &p->client, s);
    channel_start(&p->server);
    channel_start(&p->client);
}

static void proxy_start(struct session *s)
{
    struct proxy *p = proxy_of(s);

    channel_init(&p->client, s->owner->net, s->client_fd);
    s->client_fd = -1;
    session_leg_open(s, 0, &p->client);
    pipeline_init(&p->client.pipeline, &p->client, &p->to_server.handler, &proxy_waiting_ops);
    s->connecting = true;
    connector_init(&p->connector, s->owner->net, proxy_connected);
    p->server_index = balancer_first(&s->service->upstream->balancer, &p->walk);
    proxy_connect(p);
}

static void proxy_cancel(struct session *s)
{
    s->connecting = false;
    connector_cancel(&proxy_of(s)->connector);
}

static const char *proxy_peer_name(const struct session *s)
{
    return proxy_server(proxy_of(s))->conf->id;
}

const struct service_ops proxy_ops = {.name = "proxy",
                                      .descriptors = 2,
                                      .create = proxy_create,
                                      .start = proxy_start,
                                      .cancel = proxy_cancel,
                                      .peer_name = proxy_peer_name,
                                      .free = proxy_free};
