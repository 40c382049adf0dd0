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
    return p->at && proxy_measures_time(p) ? &p->at->endpoint.times : NULL;
}

void proxy_time_dialed(struct proxy *p)
{
    struct response_time *t = proxy_time_of(p);

    if (t)
        response_time_began(&t->connect, p->tried_at_ns);
}

void proxy_time_connected(struct proxy *p, int64_t took_ns)
{
    struct response_time *t = proxy_time_of(p);

    if (t)
        response_time_ended(&t->connect, took_ns, p->tried_at_ns + took_ns);
}

void proxy_time_failed(struct proxy *p)
{
    struct response_time *t = proxy_time_of(p);

    if (t)
        response_time_failed(&t->connect, p->tried_at_ns, clock_now_ns());
}

void proxy_time_asked(struct proxy *p, int64_t now_ns)
{
    struct response_time *t = proxy_time_of(p);

    if (t && p->times.first_byte_us == UINT32_MAX)
        response_time_began(&t->first_byte, now_ns);
}

void proxy_time_answered(struct proxy *p, int64_t now_ns)
{
    struct response_time *t = proxy_time_of(p);
    int64_t asked_at_ns = p->session.opened_at_ns;

    if (asked_at_ns < p->client.last_io_at_ns)
        asked_at_ns = p->client.last_io_at_ns;
    if (t)
        response_time_ended(&t->first_byte, now_ns - asked_at_ns, now_ns);
}

void proxy_time_ended(struct proxy *p)
{
    struct response_time *t = proxy_time_of(p);

    if (t && p->session.legs[1] && p->times.first_byte_us == UINT32_MAX)
        response_time_failed(&t->first_byte, p->session.opened_at_ns, clock_now_ns());
}
