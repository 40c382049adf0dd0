/* service/proxy_handover: a proxied session for, or from, another process. See proxy_internal.h. */
#include "base/clock.h"
#include "net/sock.h"
#include "service/proxy_internal.h"
#include "service/session_handover.h"
#include "service/session_state.h"
#include "upstream/upstream.h"

bool proxy_has_tls(const struct session *s)
{
    return proxy_of(s)->tls;
}

void proxy_save(const struct session *s, struct session_state *st)
{
    const struct proxy *p = proxy_of(s);

    st->upstream = proxy_upstream(p)->name;
    st->server = p->at->name;
    st->queue_us = p->times.queue_us;
    st->connect_us = p->times.connect_us;
    st->first_byte_us = p->times.first_byte_us;
    st->tries = p->tries;
    st->awaits_client = relay_tells_first(&p->to_server);
    st->awaits_server = relay_tells_first(&p->to_client);
    relay_save_limits(&p->to_server, &st->legs[0]);
    relay_save_limits(&p->to_client, &st->legs[1]);
}

void proxy_place(struct session *s, const struct session_place *place,
                 const struct session_state *st)
{
    struct proxy *p = proxy_of(s);

    s->service->ops->route(s, place->upstream);
    p->at = place->server;
    s->counted[SESSION_AT_UPSTREAM] = &place->upstream->counters;
    s->counted[SESSION_AT_SERVER] = &place->server->counters;
    p->times = (struct proxy_times){st->connect_us, st->queue_us, st->first_byte_us};
    p->tries = st->tries;
    p->tried_at_ns = st->opened_at_ns;
    balancer_begin(&p->pick, 0);
}

/* Find the server's address for the access log. */
static void proxy_find_address(struct proxy *p)
{
    struct address peer;

    if (p->session.service->n_access_logs == 0 || sock_peer(&peer, p->server.io.fd) < 0)
        return;
    p->addresses = endpoint_hold_addresses(&p->at->endpoint);
    for (unsigned i = 0; p->addresses && i < p->addresses->n; i++)
        if (address_equal(&p->addresses->list[i], &peer)) {
            p->connected = i;
            return;
        }
    proxy_release_addresses(p);
}

void proxy_restore(struct session *s, const struct session_state *st, int fd)
{
    struct proxy *p = proxy_of(s);

    channel_init(&p->server, s->owner->net, fd);
    channel_nodelay(&p->server, &proxy_upstream(p)->conf->connect.sock.options);
    proxy_find_address(p);
    proxy_join(p);
    if (st->awaits_server)
        relay_tell_first(&p->to_client);
    if (st->awaits_client && proxy_measures_time(p))
        relay_tell_first(&p->to_server);
}

int proxy_limit(struct session *s, const struct session_state *st)
{
    struct proxy *p = proxy_of(s);
    int rc = relay_limit(&p->to_server, &st->legs[0]);

    return rc == 0 ? relay_limit(&p->to_client, &st->legs[1]) : rc;
}

bool proxy_is_stranded(const struct session *s)
{
    const struct proxy *p = proxy_of(s);

    return endpoint_load(&p->at->endpoint) & ENDPOINT_ANY_DOWN &&
           proxy_upstream(p)->conf->checks.on_down == UPSTREAM_DOWN_CLOSE;
}
