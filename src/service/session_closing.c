/* service/session_closing: graceful close and its time bounds. See session.h. */
#include "base/clock.h"
#include "service/session_internal.h"

/* A timeout does not cut a stream silent for this time, or half of the timeout. */
#define SESSION_CUT_NS (1 * NS_PER_S)

/* From now on only the channels' linger bounds apply. */
static void session_closing_begin(struct session *s, enum session_reason reason)
{
    session_set_reason(s, reason);
    s->service->ops->cancel(s);
    s->closing = true;
    session_timer_arm(s);
}

static bool session_keeps(const struct session *s)
{
    session_for_each_leg (leg, s)
        if (channel_input_pending(leg))
            return true;
    return false;
}

void session_close(struct session *s, enum session_reason reason)
{
    if (session_keeps(s)) {
        session_abort(s, reason); /* bytes in a handler would be lost silently */
        return;
    }
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        channel_end(leg, CHANNEL_END_FLUSH | CHANNEL_END_BOUNDED);
}

/* Was the stream to this leg cut? Its source is the other leg; in an echo the same. */
static bool session_stream_cut(const struct session *s, unsigned leg)
{
    const struct channel *from = s->legs[s->service->ops->peer_name ? !leg : leg];

    return from && channel_input_cut(from);
}

void session_time_out(struct session *s, enum session_reason reason, int64_t limit_ns)
{
    int64_t quiet_ns = limit_ns / 2 < SESSION_CUT_NS ? limit_ns / 2 : SESSION_CUT_NS;
    unsigned how[SESSION_LEGS];

    if (session_keeps(s)) {
        session_abort(s, reason);
        return;
    }
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        channel_discard(leg, quiet_ns);
    /* Both before either ends: our own reset counts as a cut too. */
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        how[i] = session_stream_cut(s, i) ? CHANNEL_END_RESET : CHANNEL_END_FLUSH;
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i])
            channel_end(s->legs[i], how[i] | CHANNEL_END_BOUNDED);
}

void session_reset(struct session *s, enum session_reason reason)
{
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        channel_end(leg, CHANNEL_END_RESET | CHANNEL_END_BOUNDED);
}

int64_t session_active_at_ns(const struct session *s)
{
    int64_t at_ns = s->began_at_ns;

    session_for_each_leg (leg, s)
        if (leg->last_io_at_ns > at_ns)
            at_ns = leg->last_io_at_ns;
    return at_ns;
}

size_t session_reclaim(struct session *s)
{
    size_t bytes = 0;

    session_for_each_leg (leg, s)
        bytes += pipeline_reclaim(&leg->pipeline);
    return bytes;
}

size_t session_held_bytes(const struct session *s)
{
    size_t bytes = 0;

    session_for_each_leg (leg, s)
        bytes += channel_held_bytes(leg);
    return bytes;
}

int64_t session_stalled_since_ns(const struct session *s)
{
    int64_t at_ns = CLOCK_NEVER;

    session_for_each_leg (leg, s)
        if (channel_held_bytes(leg) > 0 && leg->last_io_at_ns < at_ns)
            at_ns = leg->last_io_at_ns;
    return at_ns;
}
