/* service/proxy_dial: connects to a server. See proxy_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/connector.h"
#include "net/sock.h"
#include "service/proxy_internal.h"
#include "service/session_facts.h"
#include "upstream/upstream.h"

/* A connect. Allocated separately: a session needs it briefly, and may last for days. */
struct proxy_dial {
    struct proxy *proxy;
    struct connector connector;
    struct task reaping;
};

static void proxy_dial_free(struct task *t)
{
    free(CONTAINER_OF(t, struct proxy_dial, reaping));
}

static const struct task_type proxy_dial_reaping = {.name = "connected", .run = proxy_dial_free};

void proxy_end_dial(struct proxy *p)
{
    struct proxy_dial *dial = p->dial;

    if (!dial)
        return;
    p->dial = NULL;
    connector_cancel(&dial->connector);
    loop_reap(p->session.owner->net->loop, &dial->reaping);
}

/* Was the server connected from the address of the client? */
static bool proxy_dial_shows_client(const struct proxy *p)
{
    const struct address *client = &p->session.peer;
    bool shows = false;

    if (!proxy_upstream(p)->conf->connect.sock.options.transparent || address_is_unix(client))
        return false;
    for (unsigned i = 0; p->addresses && i < p->addresses->n && !shows; i++)
        shows = p->addresses->list[i].u.sa.sa_family == client->u.sa.sa_family;
    return shows;
}

/*
 * With the client's address as source, only a refusal is surely the server's: the kernel may not
 * take the address, and the server may have no route to it.
 */
static void proxy_dial_failed(struct proxy *p, int error)
{
    bool shows_client = proxy_dial_shows_client(p);
    bool is_no_source = shows_client && (error == -EINVAL || error == -SOCK_NO_SOURCE);
    const struct proxy_failure failure = {
        .error = error,
        .why = is_no_source ? "the client's address cannot be a source" : sock_error_text(error),
        .reason = session_reason_of_connect(error),
        .is_ours = sock_error_is_ours(error) || (shows_client && error != -ECONNREFUSED)};

    proxy_release_addresses(p);
    proxy_failed(p, &failure);
}

static void proxy_tried(struct connector *c, const struct address *a, int error)
{
    const struct proxy *p = CONTAINER_OF(c, struct proxy_dial, connector)->proxy;

    session_facts_tried(session_facts_of(&p->session), a, error);
}

static void proxy_connected(struct connector *c, int fd, int error)
{
    struct proxy *p = CONTAINER_OF(c, struct proxy_dial, connector)->proxy;
    const struct upstream_conf *conf = proxy_upstream(p)->conf; /* a reload may replace it */

    p->connected = c->connected;
    proxy_end_dial(p);
    if (error < 0) {
        proxy_dial_failed(p, error);
    } else if (conf->tls.slot) {
        proxy_tls_start(p, fd, &conf->tls);
    } else {
        proxy_opened(p);
        proxy_attach(p, fd, NULL);
    }
}

void proxy_dial(struct proxy *p)
{
    struct proxy_dial *dial = malloc(sizeof(*dial));

    p->tried_at_ns = clock_now_ns();
    if (!dial) {
        proxy_dial_failed(p, -ENOMEM);
        return;
    }
    dial->proxy = p;
    dial->reaping.type = &proxy_dial_reaping;
    connector_init(&dial->connector, p->session.owner->net, proxy_connected);
    if (p->session.has_facts)
        dial->connector.tried = proxy_tried;
    if (proxy_upstream(p)->conf->connect.sock.options.transparent)
        dial->connector.client = &p->session.peer;
    p->dial = dial;
    if (proxy_measures_time(p))
        proxy_time_dialed(p);
    p->addresses = endpoint_hold_addresses(&p->at->endpoint);
    MUST(p->addresses);
    connector_start(&dial->connector, p->addresses->list, p->addresses->n,
                    proxy_time_left_ns(p, p->tried_at_ns), &proxy_upstream(p)->conf->connect);
}
