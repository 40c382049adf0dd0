/*
 * service/session_timer: one timer for all timeouts of a session.
 *
 * The nearest deadline is computed when the timer fires, and after events that may bring it nearer.
 * Bytes never do. What waits is read before any timeout is judged: see note: silence in
 * engine/heard.h.
 */
#include "base/clock.h"
#include "service/session_access_log.h"
#include "service/session_internal.h"
#include "service/session_preface.h"

/* Updates of `last_reads` per timeout; see note: last read. */
#define SESSION_TIMER_LOOKS 4

enum session_due {
    SESSION_DUE_NOTHING,
    SESSION_DUE_PREFACE,
    SESSION_DUE_QUIET,
    SESSION_DUE_LIFETIME,
    SESSION_DUE_IDLE,
    SESSION_DUE_SERVER_CLOSED
};

struct session_deadline {
    int64_t at_ns;
    int64_t limit_ns;
    enum session_due due;
};

/*
 * note: last read. A read stores no time stamp for the timeout of one direction. Instead, each
 * update compares byte counts: if a leg's count has changed, its last I/O is taken for its last
 * read. That I/O may be a write, so a session may end a quarter of its timeout late.
 *
 * A leg whose reading is paused may have unread bytes, so each update restarts its timeout.
 */
static int64_t session_last_read_timeout_ns(const struct session *s, unsigned leg)
{
    if (leg == 0)
        return s->service->conf->client_idle_timeout_ns;
    return s->legs[leg] ? s->service->ops->server_idle_timeout_ns(s) : 0;
}

static bool session_leg_paused(const struct session *s, const struct channel *leg)
{
    return channel_stopped(leg, CHANNEL_STOP_METER | CHANNEL_STOP_DELAY | CHANNEL_STOP_HANDLER) ||
           !channel_writable(session_receiver(s, leg));
}

static void session_update_last_read(struct session *s, int64_t now_ns)
{
    for (unsigned i = 0; i < SESSION_LEGS; i++) {
        const struct channel *leg = s->legs[i];
        struct session_last_read *last = &s->last_reads[i];

        if (!leg || session_last_read_timeout_ns(s, i) == 0)
            continue;
        if (leg->bytes_in != last->bytes_in)
            last->last_read_at_ns = leg->last_io_at_ns;
        if (session_leg_paused(s, leg))
            last->last_read_at_ns = now_ns;
        last->bytes_in = leg->bytes_in;
    }
    s->last_read_updated_at_ns = now_ns;
}

/* A leg paused by a bandwidth limit counts as active now. */
static int64_t session_last_io_at_ns(const struct session *s)
{
    int64_t at_ns = s->began_at_ns;

    session_for_each_leg (leg, s) {
        int64_t leg_at_ns = channel_stopped(leg, CHANNEL_STOP_METER)
                                ? loop_now_ns(s->owner->net->loop)
                                : leg->last_io_at_ns;

        if (leg_at_ns > at_ns)
            at_ns = leg_at_ns;
    }
    return at_ns;
}

static bool session_half_closed(const struct session *s)
{
    session_for_each_leg (leg, s)
        if (channel_read_ended(leg) || channel_write_ended(leg))
            return true;
    return false;
}

/* Has only the server ended its stream? It may have closed its socket. */
static bool session_server_closed(const struct session *s)
{
    const struct channel *client = s->legs[0], *server = s->legs[1];

    return client && server && !channel_ended(client) && !channel_ended(server) &&
           channel_read_ended(server) && !channel_read_ended(client);
}

/* Have both sides acknowledged all bytes? The client's end of file counts as one. */
static bool session_is_delivered(const struct session *s)
{
    return channel_write_ended(s->legs[0]) && channel_unsent_bytes(s->legs[0]) <= 1 &&
           channel_unsent_bytes(s->legs[1]) == 0;
}

/* Lower ${d} to ${from_ns} + ${limit_ns}, if that is sooner. A ${limit_ns} of 0: no limit. */
static void session_sooner(struct session_deadline *d, int64_t from_ns, int64_t limit_ns,
                           enum session_due due)
{
    int64_t at_ns;

    if (limit_ns <= 0)
        return;
    at_ns = loop_due_ns(loop_current(), from_ns, limit_ns);
    if (at_ns < d->at_ns)
        *d = (struct session_deadline){.at_ns = at_ns, .limit_ns = limit_ns, .due = due};
}

/* Read timeouts of leg ${i} of an open session. */
static void session_leg_deadlines(const struct session *s, unsigned i, struct session_deadline *d)
{
    const struct channel *leg = s->legs[i];
    int64_t last_read_at_ns = s->last_reads[i].last_read_at_ns;
    int64_t limit_ns = session_last_read_timeout_ns(s, i);

    if (!leg || channel_ended(leg) || channel_read_ended(leg))
        return;
    if (last_read_at_ns < s->opened_at_ns)
        last_read_at_ns = s->opened_at_ns;
    session_sooner(d, last_read_at_ns, limit_ns, SESSION_DUE_IDLE);
    session_sooner(d, s->last_read_updated_at_ns, limit_ns / SESSION_TIMER_LOOKS,
                   SESSION_DUE_NOTHING);
    if (i == 0 && leg->bytes_in == 0)
        session_sooner(d, s->opened_at_ns, s->service->conf->first_byte_timeout_ns,
                       SESSION_DUE_IDLE);
}

static void session_preface_deadline(const struct session *s, struct session_deadline *d)
{
    int64_t at_ns = session_preface_until_ns(s);

    if (at_ns < d->at_ns)
        *d = (struct session_deadline){.at_ns = at_ns, .due = SESSION_DUE_PREFACE};
}

static struct session_deadline session_deadline(const struct session *s)
{
    struct session_deadline d = {.at_ns = CLOCK_NEVER, .due = SESSION_DUE_NOTHING};
    int64_t last_ns = session_last_io_at_ns(s);
    int64_t seen_ns = s->checked_at_ns > last_ns ? s->checked_at_ns : last_ns;

    if (s->phase >= SESSION_PHASE_CLOSING)
        return d;
    d.at_ns = session_access_log_due_ns(s);
    if (s->phase == SESSION_PHASE_PREFACE)
        session_preface_deadline(s, &d);
    if (s->expires_at_ns < d.at_ns)
        d = (struct session_deadline){.at_ns = s->expires_at_ns,
                                      .limit_ns = s->expires_at_ns - s->began_at_ns,
                                      .due = SESSION_DUE_LIFETIME};
    session_sooner(&d, last_ns, s->service->conf->idle_timeout_ns, SESSION_DUE_IDLE);
    for (unsigned i = 0; i < SESSION_LEGS && s->phase == SESSION_PHASE_OPEN; i++)
        session_leg_deadlines(s, i, &d);
    if (session_half_closed(s)) /* the reason is set already */
        session_sooner(&d, last_ns, s->service->conf->half_close_timeout_ns, SESSION_DUE_IDLE);
    if (session_server_closed(s)) /* if bytes were under way, from the last check on */
        session_sooner(&d, seen_ns, s->service->ops->server_closed_timeout_ns(s),
                       SESSION_DUE_SERVER_CLOSED);
    if (s->draining && s->service->ops->finished)
        session_sooner(&d, seen_ns, SESSION_QUIET_NS, SESSION_DUE_QUIET);
    return d;
}

/* Move the timer only if it would fire late: firing early is cheap. */
void session_timer_arm(struct session *s)
{
    struct loop *loop = s->owner->net->loop;
    int64_t at_ns = session_deadline(s).at_ns;

    if (s->timer.state != TIMER_IDLE && s->timer.at_ns <= at_ns)
        return;
    loop_cancel(loop, &s->timer);
    if (at_ns != CLOCK_NEVER)
        loop_schedule(loop, &s->timer, at_ns - clock_now_ns());
}

static void session_act(struct session *s, const struct session_deadline *d)
{
    if (d->due != SESSION_DUE_NOTHING)
        s->checked_at_ns = clock_now_ns();
    switch (d->due) {
    case SESSION_DUE_NOTHING: break;
    case SESSION_DUE_PREFACE: session_preface_give_up(s); break;
    case SESSION_DUE_LIFETIME:
        session_time_out(s, s->leaving ? SESSION_DRAIN : SESSION_LIFETIME, d->limit_ns);
        break;
    case SESSION_DUE_IDLE: session_time_out(s, SESSION_IDLE, d->limit_ns); break;
    case SESSION_DUE_SERVER_CLOSED:
        if (session_is_delivered(s))
            session_time_out(s, SESSION_IDLE, d->limit_ns);
        break;
    case SESSION_DUE_QUIET:
        if (s->service->ops->finished(s))
            session_time_out(s, SESSION_DRAIN, d->limit_ns);
        break;
    }
}

static void session_run_timer(struct task *t)
{
    struct session *s = TIMER_OWNER(t, struct session, timer);
    int64_t now_ns = loop_heard_ns(s->owner->net->loop);
    struct session_deadline d;

    session_update_last_read(s, now_ns);
    session_access_log_look(s, now_ns);
    d = session_deadline(s);
    if (d.at_ns <= now_ns)
        session_act(s, &d);
    session_timer_arm(s);
}

static const struct task_type session_timer_type = {.name = "session timer",
                                                    .run = session_run_timer};

/*
 * max_lifetime_ns less a random part, so that sessions do not end together. Fibonacci hashing
 * (Knuth, TAOCP 3, 6.4) spreads consecutive addresses evenly.
 */
static int64_t session_draw_lifetime_ns(const struct session *s)
{
    int64_t max_ns = s->service->conf->max_lifetime_ns;
    double spread_ns = (double)max_ns / 100 * s->service->conf->lifetime_jitter;
    uint64_t hash = ((uint64_t)(uintptr_t)s / CACHE_LINE_BYTES + (uint64_t)s->began_at_ns) *
                    UINT64_C(0x9e3779b97f4a7c15);

    return max_ns - (int64_t)(spread_ns * (double)(hash >> 11) * 0x1p-53);
}

void session_timer_init(struct session *s)
{
    timer_init_silence(&s->timer, &session_timer_type);
    s->expires_at_ns = CLOCK_NEVER;
}

void session_timer_start(struct session *s)
{
    int64_t at_ns = s->service->conf->max_lifetime_ns > 0
                        ? clock_add_ns(s->began_at_ns, session_draw_lifetime_ns(s))
                        : CLOCK_NEVER;

    if (!s->leaving || at_ns < s->expires_at_ns)
        s->expires_at_ns = at_ns;
}

void session_timer_stop(struct session *s)
{
    loop_cancel(s->owner->net->loop, &s->timer);
}
