/* service/session_closing: an end in good order, and how long it may take. See session.h. */
#include "base/clock.h"
#include "service/session_internal.h"

/* How often what has no event of its own is looked at. */
#define SESSION_CLOSING_CHECK_NS (1 * NS_PER_S)
#define SESSION_CLOSING_RESET_NS (20 * NS_PER_MS)

/* All that peers have acknowledged: it grows as long as one of them takes something. */
static uint64_t session_closing_acknowledged(const struct session *s)
{
    uint64_t bytes = 0;

    session_for_each_leg(leg, s) bytes +=
        leg->bytes_out + channel_pending_bytes(leg) - channel_unsent_bytes(leg);
    return bytes;
}

void session_closing_begin(struct session *s)
{
    if (s->closing)
        return;
    s->closing = true;
    s->checked_at_ns = s->progress_at_ns = clock_now_ns();
    s->acknowledged_bytes = session_closing_acknowledged(s);
    session_timer_arm(s);
}

int64_t session_closing_check_ns(const struct session *s)
{
    session_for_each_leg(leg, s) if (channel_resetting(leg)) return SESSION_CLOSING_RESET_NS;
    return SESSION_CLOSING_CHECK_NS;
}

void session_closing_check(struct session *s)
{
    uint64_t acknowledged_bytes = session_closing_acknowledged(s);
    bool over;

    if (acknowledged_bytes != s->acknowledged_bytes)
        s->progress_at_ns = s->checked_at_ns;
    s->acknowledged_bytes = acknowledged_bytes;
    over = s->checked_at_ns - s->progress_at_ns >= SESSION_LINGER_NS;
    session_for_each_leg(leg, s) if (over || (channel_resetting(leg) &&
                                              channel_unsent_bytes(leg) == 0)) channel_finish(leg);
}

void session_close(struct session *s, enum session_reason reason)
{
    session_for_each_leg(leg, s) if (channel_kept(leg))
    {
        session_abort(s, reason); /* what a handler still has would be lost without a sign of it */
        return;
    }
    session_set_reason(s, reason);
    s->service->ops->cancel(s);
    session_for_each_leg(leg, s) channel_close(leg);
    session_closing_begin(s);
}

void session_reset(struct session *s, enum session_reason reason)
{
    session_set_reason(s, reason);
    s->service->ops->cancel(s);
    session_for_each_leg(leg, s) channel_reset(leg);
    session_closing_begin(s);
}

/* ---- for who ends the idlest ---- */

int64_t session_active_at_ns(const struct session *s)
{
    int64_t at_ns = s->began_at_ns;

    session_for_each_leg(leg, s) if (leg->last_io_at_ns > at_ns) at_ns = leg->last_io_at_ns;
    return at_ns;
}

size_t session_relieve(struct session *s)
{
    size_t bytes = 0;

    session_for_each_leg(leg, s) bytes += pipeline_relieve(&leg->pipeline);
    return bytes;
}

size_t session_held_bytes(const struct session *s)
{
    size_t bytes = 0;

    session_for_each_leg(leg, s) bytes += channel_held_bytes(leg);
    return bytes;
}

int64_t session_moved_at_ns(const struct session *s)
{
    int64_t at_ns = CLOCK_NEVER;

    session_for_each_leg(leg, s) if (channel_held_bytes(leg) > 0 && leg->last_io_at_ns < at_ns)
        at_ns = leg->last_io_at_ns;
    return at_ns;
}
