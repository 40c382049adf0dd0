/*
 * service/proxy_time: measures the server for balance = least_time. See proxy_internal.h.
 *
 * An answer is measured from the client's last bytes before it, or else from the connection on: a
 * client that sends slowly, or thinks, makes no server slow.
 */
#include "base/clock.h"
#include "service/proxy_internal.h"
#include "upstream/upstream.h"

static struct response_time *proxy_time_of(const struct proxy *p)
{
    return &p->at->endpoint.times;
}

void proxy_time_dialed(struct proxy *p)
{
    response_time_began(&proxy_time_of(p)->connect, p->tried_at_ns);
}

void proxy_time_connected(struct proxy *p, int64_t took_ns)
{
    response_time_ended(&proxy_time_of(p)->connect, took_ns, p->tried_at_ns + took_ns);
}

void proxy_time_failed(struct proxy *p)
{
    response_time_failed(&proxy_time_of(p)->connect, p->tried_at_ns, clock_now_ns());
}

static void proxy_time_answered(struct proxy *p, struct response_time *t, int64_t now_ns)
{
    int64_t asked_at_ns = p->session.opened_at_ns;

    if (asked_at_ns < p->client.last_io_at_ns)
        asked_at_ns = p->client.last_io_at_ns;
    response_time_ended(&t->first_byte, now_ns - asked_at_ns, now_ns);
}

void proxy_time_first_byte(struct proxy *p, const struct channel *from, int64_t now_ns)
{
    struct response_time *t = proxy_time_of(p);

    if (from == &p->server)
        proxy_time_answered(p, t, now_ns);
    else if (p->times.first_byte_us == UINT32_MAX)
        response_time_began(&t->first_byte, now_ns);
}

void proxy_time_ended(struct proxy *p)
{
    struct response_time *t = proxy_time_of(p);

    if (p->session.legs[1] && p->times.first_byte_us == UINT32_MAX)
        response_time_failed(&t->first_byte, p->session.opened_at_ns, clock_now_ns());
}
