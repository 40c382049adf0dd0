#include "service/relay.h"

#include <errno.h>

#include "limits/throttle.h"
#include "service/session_state.h"

static struct relay *relay_of(struct handler *h)
{
    return CONTAINER_OF(h, struct relay, handler);
}

static void relay_active(struct handler *h)
{
    (void)h;
}

static void relay_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct relay *r = relay_of(h);

    if (channel_write(r->to, data, len) < 0)
        return; /* ${data} is lost: relay_ended() follows for `to` */
    if (!channel_writable(r->to))
        channel_stop_reading(h->channel, CHANNEL_STOP_RECEIVER);
}

static void relay_burst(struct handler *h, bool begins)
{
    if (begins)
        channel_cork(relay_of(h)->to);
    else
        channel_uncork(relay_of(h)->to);
}

/* Resume reading from `to`, whose relay writes to this channel. */
static void relay_writable(struct handler *h)
{
    channel_resume_reading(relay_of(h)->to, CHANNEL_STOP_RECEIVER);
}

static size_t relay_allow(struct handler *h, size_t max)
{
    struct throttle *t = relay_of(h)->throttle;

    return t ? throttle_allow(t, max) : max;
}

static void relay_took(struct handler *h, size_t len, bool drained)
{
    struct throttle *t = relay_of(h)->throttle;

    if (t)
        throttle_took(t, len, drained);
}

static void relay_ended(struct handler *h, enum handler_end what, int error)
{
    struct relay *r = relay_of(h);

    if (what == HANDLER_CLOSED) {
        throttle_destroy(r->throttle);
        r->throttle = NULL;
    }
    session_leg_ended(r->session, h->channel, what, error);
}

static void relay_closing(struct handler *h)
{
    session_leg_closing(relay_of(h)->session, h->channel);
}

static void relay_leave_loop(struct handler *h)
{
    throttle_leave_loop(relay_of(h)->throttle);
}

static void relay_join_loop(struct handler *h)
{
    throttle_join_loop(relay_of(h)->throttle);
}

#define RELAY_OPS(how_to_read)                                                                \
    {                                                                                         \
        .name = "relay", .active = relay_active, .read = (how_to_read), .burst = relay_burst, \
        .ended = relay_ended, .writable = relay_writable, .allow = relay_allow,               \
        .took = relay_took, .closing = relay_closing, .leave_loop = relay_leave_loop,         \
        .join_loop = relay_join_loop                                                          \
    }

static const struct handler_ops relay_ops = RELAY_OPS(relay_read);

/* THROTTLE_IN limits reads from the client, THROTTLE_OUT reads for the client. An echo has both. */
static int relay_throttle(struct relay *r, struct channel *from)
{
    const struct session *s = r->session;
    unsigned directions = 0;

    if (from == s->legs[0])
        directions |= THROTTLE_IN;
    if (r->to == s->legs[0])
        directions |= THROTTLE_OUT;
    return throttle_create(&r->throttle, s->service->throttle, from, directions);
}

void relay_init(struct relay *r, struct session *session, struct channel *from, struct channel *to)
{
    r->to = to;
    r->session = session;
    r->throttle = NULL;
    if (from->pipeline.tail) {
        MUST(from->pipeline.tail == &r->handler);
        pipeline_set_tail(&from->pipeline, &relay_ops);
    } else {
        pipeline_init(&from->pipeline, from, &r->handler, &relay_ops);
    }
    channel_splice_to(from, to, session->service->conf->splice);
    if (session->service->throttle && relay_throttle(r, from) < 0)
        channel_abort(from, -ENOMEM);
}

/* Without memory for a throttle, a channel that had none stays unlimited. */
void relay_carry_over(struct relay *r)
{
    const struct throttle_plan *plan = r->session->service->throttle;
    struct channel *from = r->handler.channel;

    if (r->throttle)
        throttle_set(r->throttle, plan);
    else if (plan && !channel_ended(from) && relay_throttle(r, from) < 0)
        r->throttle = NULL;
}

void relay_undo(struct relay *r, struct channel *from)
{
    throttle_destroy(r->throttle);
    r->throttle = NULL;
    channel_resume_reading(from, CHANNEL_STOP_METER | CHANNEL_STOP_RECEIVER);
}

static void relay_read_first(struct handler *h, const uint8_t *data, size_t len)
{
    struct relay *r = relay_of(h);

    h->ops = &relay_ops;
    channel_splice_to(h->channel, r->to, r->session->service->conf->splice);
    r->session->service->ops->first_byte(r->session, h->channel);
    relay_read(h, data, len);
}

static const struct handler_ops relay_first_ops = RELAY_OPS(relay_read_first);

void relay_tell_first(struct relay *r)
{
    struct handler *h = &r->handler;

    MUST(h->ops == &relay_ops);
    h->ops = &relay_first_ops;
    channel_splice_to(h->channel, r->to, SPLICE_OFF);
}

bool relay_tells_first(const struct relay *r)
{
    return r->handler.ops == &relay_first_ops;
}

void relay_save_limits(const struct relay *r, struct session_state_leg *leg)
{
    throttle_save(r->throttle, leg->bucket_full_at_ns);
}

int relay_limit(struct relay *r, const struct session_state_leg *leg)
{
    int rc = relay_throttle(r, r->handler.channel);

    if (rc == 0)
        throttle_restore(r->throttle, leg->bucket_full_at_ns);
    return rc;
}
