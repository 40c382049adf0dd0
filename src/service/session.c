/* service/session: see session.h. */
#include "service/session.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/sock.h"
#include "service/session_access_log.h"
#include "service/session_internal.h"
#include "stats/counters.h"

void session_set_reason(struct session *s, enum session_reason reason)
{
    if (s->reason == SESSION_OPEN)
        s->reason = reason;
}

void session_count_at(struct session *s, enum session_counted where, struct counters *c)
{
    MUST(!s->counted[where]);
    s->counted[where] = c;
    counters_began(c);
}

void session_count_off(struct session *s, enum session_counted where, enum session_reason reason)
{
    if (s->counted[where])
        counters_ended(s->counted[where], reason, 0, 0);
    s->counted[where] = NULL;
}

static void session_count_end(struct session *s)
{
    const struct channel *client = s->legs[0];

    for (unsigned i = 0; i < SESSION_COUNTED; i++)
        if (s->counted[i])
            counters_ended(s->counted[i], s->reason, client ? client->bytes_in : 0,
                           client ? client->bytes_out : 0);
}

static void session_log_end(const struct session *s)
{
    const struct channel *client = s->legs[0];
    bool may_have_peer =
        s->owner && s->service->ops->peer_name; /* before adoption it is not set up */
    const char *to = may_have_peer ? s->service->ops->peer_name(s) : NULL;
    int64_t lasted_ns = s->owner ? clock_now_ns() - s->began_at_ns : 0;
    char peer[ADDRESS_TEXT_BYTES];

    log_debug("listen %s: %s%s%s ended: %s, %" PRIu64 " bytes in, %" PRIu64 " bytes out, %" PRId64
              " ms",
              s->service->listener, address_format(peer, sizeof(peer), &s->peer), to ? " -> " : "",
              to ? to : "", session_reason_text(s->reason), client ? client->bytes_in : 0,
              client ? client->bytes_out : 0, lasted_ns / NS_PER_MS);
}

static void session_run_free(struct task *t)
{
    struct session *s = CONTAINER_OF(t, struct session, task);

    session_log_end(s);
    session_access_log_end(s);
    session_count_end(s);
    admission_leave(&s->ticket);
    s->owner->ended(s->owner, s);
    s->service->ops->free(s);
}

static const struct task_type session_free_type = {
    .name = "session free", .run = session_run_free, .drop = session_run_free};

/* No leg is left: free the session at the end of the turn. */
static void session_end(struct session *s)
{
    if (s->ending)
        return;
    s->ending = true;
    session_timer_stop(s);
    s->task.type = &session_free_type;
    loop_reap(s->owner->net->loop, &s->task);
}

void session_init(struct session *s, const struct service *service)
{
    *s = (struct session){.service = service, .client_fd = -1};
    list_init(&s->link);
    session_timer_init(s);
    session_access_log_begin(s);
    if (service->counters)
        session_count_at(s, SESSION_AT_LISTENER, service->counters);
}

void session_adopt(struct session *s, struct session_owner *owner)
{
    MUST(loop_is_current(owner->net->loop) && !s->owner);
    s->owner = owner;
    s->began_at_ns = loop_now_ns(owner->net->loop);
    session_timer_start(s);
    s->service->ops->open(s);
    if (s->preface)
        channel_start(s->legs[0]); /* reads the PROXY header only: see service/session_preface.h */
    else
        s->service->ops->start(s);
    session_timer_arm(s);
}

void session_refuse(struct session *s)
{
    MUST(!s->owner);
    if (s->client_fd >= 0)
        sock_close_reset(s->client_fd);
    session_set_reason(s, SESSION_ERROR);
    session_log_end(s);
    session_access_log_end(s);
    session_count_end(s);
    admission_leave(&s->ticket);
    s->service->ops->free(s);
}

bool session_admit(struct session *s, const struct address *client)
{
    enum session_reason reason;

    MUST(loop_is_current(s->owner->net->loop));
    if (!s->service->admission)
        return true;
    switch (admission_enter(s->service->admission, &s->ticket, client, &reason)) {
    case ADMISSION_ADMIT: return true;
    case ADMISSION_CLOSE: session_close(s, reason); return false;
    case ADMISSION_RESET: break;
    }
    session_abort(s, reason);
    return false;
}

const struct session_id *session_id(struct session *s)
{
    if (s->id.high == 0)
        session_id_make(&s->id);
    return &s->id;
}

uint64_t session_key(struct session *s)
{
    size_t len;
    const void *name = address_host(&s->peer, &len);

    if (!name)
        name = address_path(&s->peer, &len);
    return name ? hash_stable(name, len) : session_id(s)->low;
}

void session_leg_open(struct session *s, unsigned leg, struct channel *ch)
{
    s->legs[leg] = ch;
    s->open_legs++;
    s->opened_at_ns = loop_now_ns(s->owner->net->loop);
    ch->linger_conf = &s->service->conf->linger;
    if (leg > 0)
        session_timer_arm(s); /* the timeouts of both sides begin */
}

void session_leg_lost(struct session *s, unsigned leg)
{
    MUST(s->legs[leg] && s->open_legs > 0);
    s->legs[leg] = NULL;
    s->open_legs--;
    s->connecting = true;
    session_timer_arm(s);
}

void session_leg_half_closed(struct session *s, struct channel *ch)
{
    session_set_reason(s, ch == s->legs[0] ? SESSION_CLIENT_FIN : SESSION_UPSTREAM_FIN);
    session_timer_arm(s);
}

/* The other open leg, or NULL. */
static struct channel *session_other_leg(const struct session *s, const struct channel *ch)
{
    session_for_each_leg (leg, s)
        if (leg != ch)
            return leg;
    return NULL;
}

static enum session_reason session_reason_of(const struct session *s, const struct channel *ch,
                                             int error)
{
    switch (error) {
    case -ECONNRESET:
    case -EPIPE:
    /* the peer's host is unreachable */
    case -ETIMEDOUT:
    case -EHOSTUNREACH:
    case -ENETUNREACH: return ch == s->legs[0] ? SESSION_CLIENT_RESET : SESSION_UPSTREAM_RESET;
    default: return SESSION_ERROR;
    }
}

/*
 * Has the peer acknowledged all bytes, and is our end of file sent? Then a reset loses none. Its
 * acknowledgement may be on the way: the kernel counts it as a byte.
 */
static bool session_has_all(const struct channel *ch)
{
    return channel_write_ended(ch) && channel_unsent_bytes(ch) <= 1;
}

void session_leg_broken(struct session *s, struct channel *ch, int error)
{
    struct channel *other = session_other_leg(s, ch);

    session_set_reason(s, session_reason_of(s, ch, error));
    if (!other) {
        channel_abort(ch, error); /* an echo: its bytes would go back to itself */
        return;
    }
    if ((channel_read_ended(ch) && !channel_input_pending(ch)) || channel_discards(ch))
        channel_end(other, session_has_all(other) ? CHANNEL_END_RESET : CHANNEL_END_FLUSH);
    else
        channel_end(other, CHANNEL_END_INPUT);
    channel_resume_reading(ch, CHANNEL_STOP_RECEIVER);
    session_timer_arm(s);
}

/*
 * ${ch} was reset or failed: reset the other leg too, behind the bytes read for it, unless both are
 * closing already.
 */
static void session_pass_reset(struct session *s, struct channel *ch)
{
    struct channel *other = session_other_leg(s, ch);

    if (other && !s->closing)
        channel_end(other, CHANNEL_END_RESET);
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
    session_timer_arm(s);
}

void session_abort(struct session *s, enum session_reason reason)
{
    session_set_reason(s, reason);
    s->service->ops->cancel(s);
    session_for_each_leg (leg, s)
        channel_abort(leg, 0);
    if (s->open_legs == 0)
        session_end(s);
}
