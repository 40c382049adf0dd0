/* service/session: see session.h. */
#include "service/session.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

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
        [SESSION_DRAIN] = "drain",
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

static int64_t session_last_io_at_ns(const struct session *s)
{
    int64_t at_ns = s->began_at_ns;

    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i] && s->legs[i]->last_io_at_ns > at_ns)
            at_ns = s->legs[i]->last_io_at_ns;
    return at_ns;
}

static bool session_half_closed(const struct session *s)
{
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i] && (channel_read_ended(s->legs[i]) || channel_write_ended(s->legs[i])))
            return true;
    return false;
}

static bool session_waits_for_quiet(const struct session *s)
{
    return s->draining && s->service->ops->finished;
}

/* When the timer has to look at the session again if nothing moves until then. */
static int64_t session_deadline_ns(const struct session *s)
{
    const struct service *service = s->service;
    int64_t limit_ns = service->idle_timeout_ns > 0 ? service->idle_timeout_ns : CLOCK_NEVER;

    if (s->closing)
        return clock_add_ns(s->closing_at_ns, SESSION_LINGER_NS);
    if (service->half_close_timeout_ns > 0 && service->half_close_timeout_ns < limit_ns &&
        session_half_closed(s))
        limit_ns = service->half_close_timeout_ns;
    if (session_waits_for_quiet(s) && SESSION_QUIET_NS < limit_ns)
        limit_ns = SESSION_QUIET_NS;
    return clock_add_ns(session_last_io_at_ns(s), limit_ns);
}

/* The timer is moved only when it would come too late: activity makes it come too early, which is cheap. */
static void session_arm(struct session *s)
{
    struct loop *loop = s->owner->net->loop;
    int64_t at_ns = session_deadline_ns(s);

    if (s->ending)
        return;
    if (s->timer.state != TIMED_IDLE && s->timer.at_ns <= at_ns)
        return;
    loop_cancel(loop, &s->timer);
    if (at_ns != CLOCK_NEVER)
        loop_schedule(loop, &s->timer, at_ns - clock_now_ns());
}

static void session_close(struct session *s, enum session_reason reason)
{
    session_set_reason(s, reason);
    s->closing = true;
    s->closing_at_ns = clock_now_ns();
    s->service->ops->cancel(s);
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i])
            channel_close(s->legs[i]);
    session_arm(s);
}

/* Nothing moved for as long as is allowed now. */
static void session_expire(struct session *s)
{
    if (s->closing) {
        session_abort(s, SESSION_ERROR);
    } else if (session_waits_for_quiet(s)) {
        if (s->service->ops->finished(s))
            session_close(s, SESSION_DRAIN);
        else
            loop_schedule(s->owner->net->loop, &s->timer, SESSION_QUIET_NS);
    } else {
        session_close(s, session_half_closed(s) ? SESSION_HALF_CLOSE : SESSION_IDLE);
    }
}

static void session_run_timer(struct task *t)
{
    struct session *s = CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct session, timer);

    if (session_deadline_ns(s) > clock_now_ns())
        session_arm(s);
    else
        session_expire(s);
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
    struct linger reset = {.l_onoff = 1, .l_linger = 0};

    MUST(!s->owner);
    if (s->client_fd >= 0) {
        (void)setsockopt(s->client_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(s->client_fd);
    }
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

static enum session_reason session_reason_of(const struct session *s, const struct channel *ch,
                                             int error)
{
    if (error != -ECONNRESET && error != -EPIPE)
        return SESSION_ERROR;
    return ch == s->legs[0] ? SESSION_CLIENT_RESET : SESSION_UPSTREAM_RESET;
}

void session_leg_closed(struct session *s, struct channel *ch, int error)
{
    if (error < 0) {
        session_set_reason(s, session_reason_of(s, ch, error));
        for (unsigned i = 0; i < SESSION_LEGS; i++)
            if (s->legs[i])
                channel_abort(s->legs[i], 0);
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
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i])
            channel_abort(s->legs[i], 0);
    if (s->open_legs == 0)
        session_end(s);
}
