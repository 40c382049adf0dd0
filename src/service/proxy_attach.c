/* service/proxy_attach: links both sides. See proxy_internal.h. */
#include "base/clock.h"
#include "net/channel.h"
#include "net/proxy_header.h"
#include "net/sock.h"
#include "service/proxy_internal.h"
#include "service/session_access_log.h"
#include "service/session_facts.h"
#include "service/session_header.h"
#include "service/session_spares.h"
#include "service/session_tls.h"
#include "upstream/upstream.h"

void proxy_release_addresses(struct proxy *p)
{
    endpoint_release_addresses(p->addresses);
    p->addresses = NULL;
}

int64_t proxy_deadline_ns(const struct proxy *p)
{
    int64_t timeout_ns = proxy_upstream(p)->conf->retry_timeout_ns;

    return timeout_ns > 0 ? clock_add_ns(clock_now_ns(), timeout_ns) : CLOCK_NEVER;
}

int64_t proxy_time_left_ns(const struct proxy *p, int64_t now_ns)
{
    const struct upstream_conf *conf = proxy_upstream(p)->conf;
    int64_t began_at_ns = p->session.began_at_ns;
    int64_t left_ns =
        loop_due_ns(p->session.owner->net->loop, began_at_ns, p->give_up_at_ns - began_at_ns) -
        now_ns;

    return left_ns < conf->connect_timeout_ns ? left_ns : conf->connect_timeout_ns;
}

/* Destination for the PROXY header; NULL: unknown. */
static const struct address *proxy_attach_header_destination(const struct session *s,
                                                             struct address *local)
{
    const struct address *told = session_header_destination(s);

    if (told)
        return told;
    if (address_is_unix(&s->peer) || sock_local(local, s->legs[0]->io.fd) < 0)
        return NULL;
    return local;
}

/*
 * Tell the server about the client's TLS with us, or else about its TLS with a proxy in front of
 * us.
 */
static void proxy_attach_tell_tls(const struct session *s, const struct proxy_header_conf *conf,
                                  struct session_tls_told *told)
{
    const struct proxy_header_tls *received = session_header_tls(s);

    told->tls = (struct proxy_header_tls){.ssl = {NULL, 0}};
    if (!session_tls_tell(s, conf->certificate, told) && received)
        told->tls = *received;
}

void proxy_send_header(struct proxy *p)
{
    const struct proxy_header_conf conf = upstream_send_proxy(proxy_upstream(p)->conf, p->at->conf);
    struct session *s = &p->session;
    uint8_t header[PROXY_HEADER_MAX_BYTES];
    char id[SESSION_ID_TEXT_BYTES];
    struct proxy_header_client client = {.source = NULL};
    struct session_tls_told told;
    struct address local;
    int rc;

    if (conf.version == PROXY_HEADER_NONE)
        return;
    client.destination = proxy_attach_header_destination(s, &local);
    client.source = client.destination ? &s->peer : NULL;
    if (conf.unique_id)
        client.unique_id = session_id_format(id, session_id(s));
    proxy_attach_tell_tls(s, &conf, &told);
    client.tls = told.tls;
    rc = channel_write(&p->server, header, proxy_header_encode(header, &conf, &client));
    (void)rc; /* the pipeline's tail handles a failure */
}

void proxy_join(struct proxy *p)
{
    struct session *s = &p->session;

    session_leg_open(s, 1, &p->server);
    session_facts_linked(session_facts_of(s), p->server.io.fd);
    relay_init(&p->to_server, s, &p->client, &p->server);
    relay_init(&p->to_client, s, &p->server, &p->client);
}

void proxy_link(struct proxy *p)
{
    struct session *s = &p->session;

    if (s->service->n_access_logs == 0)
        proxy_release_addresses(p);
    proxy_join(p);
    relay_tell_first(&p->to_client);
    if (proxy_measures_time(p))
        relay_tell_first(&p->to_server);
    session_access_log_opened(s);
}

static const struct session_spares_ops *proxy_spares_ops(const struct proxy *p)
{
    return p->session.owner->spares->ops;
}

static bool proxy_has_lost_spare(const struct proxy *p)
{
    return p->stale_retry && proxy_spares_ops(p)->lost(p->stale_retry);
}

void proxy_begin(struct proxy *p)
{
    if (proxy_has_lost_spare(p))
        proxy_spares_ops(p)->replay(p->stale_retry);
    else
        session_preface_read(&p->session);
}

/* Begin the stale retry before the first bytes are sent, so that it sees a failed send. */
void proxy_attach(struct proxy *p, int fd, const struct server_tls_taken *tls)
{
    bool is_spare = p->stale_retry && !proxy_has_lost_spare(p);

    channel_init(&p->server, p->session.owner->net, fd);
    channel_nodelay(&p->server, &proxy_upstream(p)->conf->connect.sock.options);
    proxy_link(p);
    if (tls && tls->stream)
        proxy_tls_adopt(p, tls);
    if (is_spare)
        proxy_spares_ops(p)->begin(p->stale_retry);
    if (!tls || !tls->stream)
        proxy_send_header(p);
    channel_start(&p->server);
    if (is_spare)
        session_preface_read(&p->session); /* even if the header has found the spare lost */
    else
        proxy_begin(p);
}

/* The server closed an unused spare connection: that is no failure of the server. */
static void proxy_replace(struct session *s)
{
    struct proxy *p = proxy_of(s);

    relay_undo(&p->to_server, &p->client);
    relay_undo(&p->to_client, &p->server);
    pipeline_set_tail(&p->client.pipeline, &proxy_waiting_ops);
    p->give_up_at_ns = proxy_deadline_ns(p);
    p->retry_until_ns = proxy_retry_until_ns(p);
    proxy_release_addresses(p);
    proxy_dial(p);
}

/* At most one spare connection per session: after a stale one, connect. */
bool proxy_take_spare(struct proxy *p)
{
    const struct session_spares_conf conf = {.session = &p->session,
                                             .at = p->at,
                                             .client = &p->client,
                                             .server = &p->server,
                                             .replace = proxy_replace};
    struct session_spares *spares = p->session.owner->spares;
    struct session_spare taken;

    if (!p->at->spare || p->stale_retry || !spares)
        return false;
    p->stale_retry = spares->ops->take(spares, &conf, &taken);
    if (!p->stale_retry)
        return false;
    p->addresses = taken.addresses;
    p->connected = taken.which;
    session_facts_spare(session_facts_of(&p->session), &p->addresses->list[p->connected]);
    p->tried_at_ns = clock_now_ns();
    proxy_attach(p, taken.fd, &taken.tls);
    return true;
}
