/* service/session: see session.h. */
#include "service/session.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/sock.h"

const char *session_reason_text(enum session_reason reason)
{
    static const char *const text[] = {
        [SESSION_OPEN] = "open",
        [SESSION_CLIENT_FIN] = "client fin",
        [SESSION_CLIENT_RESET] = "client reset",
        [SESSION_UPSTREAM_FIN] = "upstream fin",
        [SESSION_UPSTREAM_RESET] = "upstream reset",
        [SESSION_NO_SERVER] = "no server",
        [SESSION_IDLE] = "idle",
        [SESSION_HALF_CLOSE] = "half-close timeout",
        [SESSION_LINGER] = "linger timeout",
        [SESSION_DRAIN] = "drain",
        [SESSION_SERVER_DOWN] = "server down",
        [SESSION_STOP] = "stop",
        [SESSION_ERROR] = "error",
    };

    MUST((size_t)reason < ARRAY_LEN(text));
    return text[reason];
}

static void session_set_reason(struct session *s, enum session_reason reason)
{
    if (s->reason == SESSION_OPEN)
        s->reason = reason;
}

/* ---- the end ---- */

static void session_log_end(const struct session *s)
{
    const struct channel *client = s->legs[0];
    const char *to = s->service->ops->peer_name ? s->service->ops->peer_name(s) : NULL;
    char peer[ADDRESS_TEXT_BYTES];

    log_debug("listen %s: %s%s%s ended: %s, %" PRIu64 " bytes in, %" PRIu64 " bytes out, %" PRId64
              " ms",
              s->service->listener, address_format(peer, sizeof(peer), &s->peer), to ? " -> " : "",
              to ? to : "", session_reason_text(s->reason), client ? client->bytes_in : 0,
              client ? client->bytes_out : 0, (clock_now_ns() - s->began_at_ns) / NS_PER_MS);
}

static void session_run_free(struct task *t)
{
    struct session *s = CONTAINER_OF(t, struct session, task);

    session_log_end(s);
    s->owner->ended(s->owner, s);
    s->service->ops->free(s);
}

static const struct task_type session_free_type = {
    .name = "session free", .run = session_run_free, .drop = session_run_free};

/* No leg is open and none will be: free the session when this turn's callbacks are over. */
static void session_end(struct session *s)
{
    if (s->ending)
        return;
    s->ending = true;
    loop_cancel(s->owner->net->loop, &s->timer);
    s->task.type = &session_free_type;
    loop_reap(s->owner->net->loop, &s->task);
}

/* ---- timeouts ---- */

/* How often what has no event of its own is looked at. */
#define SESSION_CHECK_NS       (1 * NS_PER_S)
#define SESSION_RESET_CHECK_NS (20 * NS_PER_MS)

enum session_due {
    SESSION_DUE_NOTHING,
    SESSION_DUE_CLOSING,
    SESSION_DUE_QUIET,
    SESSION_DUE_PROBE,
    SESSION_DUE_HALF_CLOSE,
    SESSION_DUE_IDLE
};

struct session_deadline {
    int64_t at_ns;
    enum session_due due;
};

#define session_for_each_leg(leg, s)                                                          \
    for (struct channel *const *at_ = (s)->legs, *leg; at_ < (s)->legs + SESSION_LEGS; at_++) \
        if ((leg = *at_) && !channel_ended(leg))

static int64_t session_last_io_at_ns(const struct session *s)
{
    int64_t at_ns = s->began_at_ns;

    session_for_each_leg(leg, s) if (leg->last_io_at_ns > at_ns) at_ns = leg->last_io_at_ns;
    return at_ns;
}

static bool session_half_closed(const struct session *s)
{
    session_for_each_leg(leg,
                         s) if (channel_read_ended(leg) || channel_write_ended(leg)) return true;
    return false;
}

static bool session_resetting(const struct session *s)
{
    session_for_each_leg(leg, s) if (channel_resetting(leg)) return true;
    return false;
}

/* ${limit_ns} after ${from_ns} if that comes before ${d}; a limit of 0 is none. */
static void session_sooner(struct session_deadline *d, int64_t from_ns, int64_t limit_ns,
                           enum session_due due)
{
    int64_t at_ns = clock_add_ns(from_ns, limit_ns);

    if (limit_ns > 0 && at_ns < d->at_ns)
        *d = (struct session_deadline){.at_ns = at_ns, .due = due};
}

/* What the timer has to do next if nothing moves until then, and when. */
static struct session_deadline session_deadline(const struct session *s)
{
    struct session_deadline d = {.at_ns = CLOCK_NEVER, .due = SESSION_DUE_NOTHING};
    int64_t last_ns = session_last_io_at_ns(s);
    int64_t seen_ns = s->checked_at_ns > last_ns ? s->checked_at_ns : last_ns;
    bool half_closed = session_half_closed(s);

    if (s->closing) {
        session_sooner(&d, s->checked_at_ns,
                       session_resetting(s) ? SESSION_RESET_CHECK_NS : SESSION_CHECK_NS,
                       SESSION_DUE_CLOSING);
        return d;
    }
    session_sooner(&d, last_ns, s->service->idle_timeout_ns, SESSION_DUE_IDLE);
    if (half_closed)
        session_sooner(&d, last_ns, s->service->half_close_timeout_ns, SESSION_DUE_HALF_CLOSE);
    if (half_closed || s->connecting)
        session_sooner(&d, seen_ns, SESSION_CHECK_NS, SESSION_DUE_PROBE);
    if (s->draining && s->service->ops->finished)
        session_sooner(&d, seen_ns, SESSION_QUIET_NS, SESSION_DUE_QUIET);
    return d;
}

/* The timer is moved only when it would come too late: activity makes it come too early, which is cheap. */
static void session_arm(struct session *s)
{
    struct loop *loop = s->owner->net->loop;
    int64_t at_ns;

    if (s->ending)
        return;
    at_ns = session_deadline(s).at_ns;
    if (s->timer.state != TIMED_IDLE && s->timer.at_ns <= at_ns)
        return;
    loop_cancel(loop, &s->timer);
    if (at_ns != CLOCK_NEVER)
        loop_schedule(loop, &s->timer, at_ns - clock_now_ns());
}

/* All that peers have acknowledged: it grows as long as one of them takes something. */
static uint64_t session_acknowledged_bytes(const struct session *s)
{
    uint64_t bytes = 0;

    session_for_each_leg(leg, s) bytes +=
        leg->bytes_out + channel_pending_bytes(leg) - channel_unsent_bytes(leg);
    return bytes;
}

/* From now on the session goes on only as long as its peers take what is on the way to them. */
static void session_begin_closing(struct session *s)
{
    if (s->closing)
        return;
    s->closing = true;
    s->checked_at_ns = s->progress_at_ns = clock_now_ns();
    s->acknowledged_bytes = session_acknowledged_bytes(s);
    session_arm(s);
}

static void session_close(struct session *s, enum session_reason reason)
{
    session_set_reason(s, reason);
    s->service->ops->cancel(s);
    session_for_each_leg(leg, s) channel_close(leg);
    session_begin_closing(s);
}

static void session_check_closing(struct session *s)
{
    uint64_t acknowledged_bytes = session_acknowledged_bytes(s);
    bool over;

    if (acknowledged_bytes != s->acknowledged_bytes)
        s->progress_at_ns = s->checked_at_ns;
    s->acknowledged_bytes = acknowledged_bytes;
    over = s->checked_at_ns - s->progress_at_ns >= SESSION_LINGER_NS;
    if (over)
        session_set_reason(s, SESSION_LINGER);
    session_for_each_leg(leg, s) if (over || (channel_resetting(leg) &&
                                              channel_unsent_bytes(leg) == 0)) channel_finish(leg);
}

static void session_probe(struct session *s)
{
    session_for_each_leg(leg, s) channel_probe(leg);
}

static void session_act(struct session *s, enum session_due due)
{
    s->checked_at_ns = clock_now_ns();
    switch (due) {
    case SESSION_DUE_NOTHING: break;
    case SESSION_DUE_CLOSING: session_check_closing(s); break;
    case SESSION_DUE_PROBE: session_probe(s); break;
    case SESSION_DUE_IDLE: session_close(s, SESSION_IDLE); break;
    case SESSION_DUE_HALF_CLOSE: session_close(s, SESSION_HALF_CLOSE); break;
    case SESSION_DUE_QUIET:
        if (s->service->ops->finished(s))
            session_close(s, SESSION_DRAIN);
        break;
    }
}

static void session_run_timer(struct task *t)
{
    struct session *s = CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct session, timer);
    struct session_deadline d = session_deadline(s);

    if (d.at_ns <= clock_now_ns())
        session_act(s, d.due);
    session_arm(s);
}

static void session_drop_timer(struct task *t)
{
    (void)t; /* the loop ends: the worker aborts its sessions */
}

static const struct task_type session_timer_type = {
    .name = "session timer", .run = session_run_timer, .drop = session_drop_timer};

/* ---- life ---- */

void session_init(struct session *s, const struct service *service)
{
    *s = (struct session){.service = service, .client_fd = -1};
    list_init(&s->link);
    timed_init(&s->timer, &session_timer_type);
}

void session_adopt(struct session *s, struct session_owner *owner)
{
    MUST(loop_is_current(owner->net->loop) && !s->owner);
    s->owner = owner;
    s->began_at_ns = loop_now_ns(owner->net->loop);
    s->service->ops->start(s);
    session_arm(s);
}

void session_refuse(struct session *s)
{
    MUST(!s->owner);
    if (s->client_fd >= 0)
        sock_close_reset(s->client_fd);
    s->service->ops->free(s);
}

void session_leg_open(struct session *s, unsigned leg, struct channel *ch)
{
    s->legs[leg] = ch;
    s->open_legs++;
}

void session_leg_half_closed(struct session *s, struct channel *ch)
{
    session_set_reason(s, ch == s->legs[0] ? SESSION_CLIENT_FIN : SESSION_UPSTREAM_FIN);
    session_arm(s);
}

/* The leg that is not ${ch} and still open, or NULL. */
static struct channel *session_other_leg(const struct session *s, const struct channel *ch)
{
    session_for_each_leg(leg, s) if (leg != ch) return leg;
    return NULL;
}

static enum session_reason session_reason_of(const struct session *s, const struct channel *ch,
                                             int error)
{
    if (error != -ECONNRESET && error != -EPIPE)
        return SESSION_ERROR;
    return ch == s->legs[0] ? SESSION_CLIENT_RESET : SESSION_UPSTREAM_RESET;
}

void session_leg_broken(struct session *s, struct channel *ch, int error)
{
    struct channel *other = session_other_leg(s, ch);

    session_set_reason(s, session_reason_of(s, ch, error));
    if (!other) {
        channel_abort(ch, error); /* what it still sends would only be sent back to it */
        return;
    }
    if (channel_read_ended(ch))
        channel_close(other);
    else
        channel_discard(other);
    channel_resume(ch);
    session_begin_closing(s);
}

/* ${ch} was reset or failed: so is the other leg. */
static void session_pass_reset(struct session *s, struct channel *ch)
{
    struct channel *other = session_other_leg(s, ch);

    if (!other)
        return;
    if (other != s->legs[0]) {
        channel_abort(other,
                      0); /* the client has given up: there is nothing the server could still do */
        return;
    }
    channel_reset(other);
    if (!channel_ended(other))
        session_begin_closing(s);
}

void session_leg_closed(struct session *s, struct channel *ch, int error)
{
    if (error < 0) {
        session_set_reason(s, session_reason_of(s, ch, error));
        s->service->ops->cancel(s);
        session_pass_reset(s, ch);
    }
    MUST(s->open_legs > 0);
    if (--s->open_legs == 0)
        session_end(s);
}

void session_drain(struct session *s)
{
    s->draining = true;
    session_arm(s);
}

void session_abort(struct session *s, enum session_reason reason)
{
    session_set_reason(s, reason);
    s->service->ops->cancel(s);
    session_for_each_leg(leg, s) channel_abort(leg, 0);
    if (s->open_legs == 0)
        session_end(s);
}
