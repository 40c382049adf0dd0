/* service/proxy_wait: a client without a server: in the upstream's queue. See proxy_internal.h. */
#include "base/clock.h"
#include "net/sock.h"
#include "service/proxy_internal.h"
#include "upstream/upstream.h"

uint32_t proxy_us(int64_t ns)
{
    int64_t us = ns / NS_PER_US;

    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* Add ${us} to ${sum_us}: a session may queue again after a server failed. */
static void proxy_add_us(uint32_t *sum_us, uint32_t us)
{
    if (*sum_us == UINT32_MAX)
        *sum_us = us;
    else
        *sum_us = us < UINT32_MAX - *sum_us ? *sum_us + us : UINT32_MAX;
}

static void proxy_waited(void *cookie, struct endpoint *e, int error)
{
    struct proxy *p = cookie;
    int64_t waited_ns = clock_now_ns() - p->waits_since_ns;

    p->ticket = NULL;
    proxy_add_us(&p->times.queue_us, proxy_us(waited_ns));
    /* Time in the queue has its own limit: it does not count as connecting. */
    p->give_up_at_ns = clock_add_ns(p->give_up_at_ns, waited_ns);
    p->retry_until_ns = clock_add_ns(p->retry_until_ns, waited_ns);
    if (e)
        proxy_connect_to(p, upstream_server_of(e));
    else
        proxy_no_server(p, error);
}

int proxy_wait(struct proxy *p)
{
    int rc;

    p->waits_since_ns = clock_now_ns();
    rc = wait_queue_join(&proxy_upstream(p)->waiting, &p->ticket, &p->pick, proxy_waited, p);
    if (rc == 0)
        channel_notice_end(&p->client);
    return rc;
}

void proxy_end_wait(struct proxy *p)
{
    if (!p->ticket)
        return;
    wait_queue_leave(p->ticket);
    p->ticket = NULL;
    proxy_add_us(&p->times.queue_us, proxy_us(clock_now_ns() - p->waits_since_ns));
}

/* Bytes that were read before, such as a ClientHello for a route, count too. */
static bool proxy_client_has_sent(const struct proxy *p)
{
    return p->client.bytes_in > 0 || sock_has_unread(p->client.io.fd);
}

/*
 * The client has ended its stream in the queue: it may have closed its socket, and its place could
 * be another's. With bytes it may also wait for the answer to its last request.
 */
static void proxy_client_end_noticed(struct handler *h)
{
    struct proxy *p = CONTAINER_OF(h, struct proxy, to_server.handler);

    if (!p->ticket)
        return;
    if (!proxy_client_has_sent(p))
        session_close(&p->session, SESSION_CLIENT_FIN);
    else if (proxy_upstream(p)->conf->queue_abandoned == UPSTREAM_ABANDONED_DROP)
        session_abort(&p->session, SESSION_CLIENT_FIN);
}

/* Tail of the client's pipeline until a server is connected; no bytes reach it. */
static void proxy_client_ended(struct handler *h, enum handler_end what, int error)
{
    struct proxy *p = CONTAINER_OF(h, struct proxy, to_server.handler);

    session_leg_ended(&p->session, h->channel, what, error);
}

static void proxy_client_closing(struct handler *h)
{
    session_leg_closing(&CONTAINER_OF(h, struct proxy, to_server.handler)->session, h->channel);
}

/* The preface passes on events while no server is connected. */
static void proxy_client_on_event(struct handler *h)
{
    (void)h;
}

const struct handler_ops proxy_waiting_ops = {.name = "waiting",
                                              .active = proxy_client_on_event,
                                              .ended = proxy_client_ended,
                                              .end_noticed = proxy_client_end_noticed,
                                              .closing = proxy_client_closing,
                                              .writable = proxy_client_on_event};
