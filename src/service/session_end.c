/*
 * service/session_end: ends a session: sets its reason and closes its legs. See session.h and the
 * table of ends in DESIGN.md.
 *
 *   a leg ends:       session_leg_ended()
 *   we end it:        session_close(), session_time_out(), session_reset(), session_abort()
 *   no leg is left:   session_end() -> reap step: session_run_free()
 */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "handlers/pipeline_template.h"
#include "net/sock.h"
#include "service/session_access_log.h"
#include "service/session_facts.h"
#include "service/session_header.h"
#include "service/session_internal.h"
#include "service/session_tls.h"
#include "stats/counters.h"

/*
 * A timeout does not cut a stream that had no bytes for this time, or for half of the timeout if
 * that is shorter.
 */
#define SESSION_CUT_NS (1 * NS_PER_S)

void session_set_reason(struct session *s, enum session_reason reason)
{
    if (s->reason == SESSION_OPEN)
        s->reason = reason;
}

/* Return the client's bytes that are not counted yet, and mark them as counted. */
static void session_take_bytes(struct session *s, uint64_t *in, uint64_t *out)
{
    const struct channel *client = s->legs[0];

    *in = client ? client->bytes_in - s->counted_in : 0;
    *out = client ? client->bytes_out - s->counted_out : 0;
    s->counted_in += *in;
    s->counted_out += *out;
}

/*
 * Bytes of a preface are not counted, and `counted` may be incomplete until the session is
 * connected.
 */
void session_count_bytes(struct session *s)
{
    uint64_t in, out;

    if (s->preface || s->phase == SESSION_PHASE_CONNECTING || s->phase == SESSION_PHASE_ENDING)
        return;
    session_take_bytes(s, &in, &out);
    for (unsigned i = 0; i < SESSION_COUNTED && (in | out) > 0; i++)
        if (s->counted[i])
            counters_moved(s->counted[i], in, out);
}

static void session_count_end(struct session *s)
{
    uint64_t in, out;
    int64_t lasted_ns = s->owner ? clock_now_ns() - s->began_at_ns : 0;

    session_take_bytes(s, &in, &out);
    for (unsigned i = 0; i < SESSION_COUNTED; i++) {
        if (!s->counted[i])
            continue;
        if (s->owner)
            counters_lasted(s->counted[i], lasted_ns);
        counters_ended(s->counted[i], s->reason, in, out);
    }
}

/* Without its legs a session has no outcome for its server. */
static void session_count_gone(struct session *s)
{
    for (unsigned i = 0; i < SESSION_COUNTED; i++)
        if (s->counted[i] && s->gone == SESSION_GONE_TAKEN)
            counters_handed_over(s->counted[i]);
        else if (s->counted[i])
            counters_not_taken(s->counted[i]);
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        s->legs[i] = NULL;
}

static void session_log_end(const struct session *s)
{
    const struct channel *client = s->legs[0];
    bool may_have_peer = s->owner && s->service->ops->peer_name;
    const char *to = may_have_peer ? s->service->ops->peer_name(s) : NULL;
    int64_t lasted_ns = s->owner ? clock_now_ns() - s->began_at_ns : 0;
    char peer[ADDRESS_TEXT_BYTES];

    log_debug("listen %s: %s%s%s ended: %s, %" PRIu64 " bytes in, %" PRIu64 " bytes out, %" PRId64
              " ms",
              s->service->listener, address_format(peer, sizeof(peer), &s->peer), to ? " -> " : "",
              to ? to : "", session_reason_text(s->reason), client ? client->bytes_in : 0,
              client ? client->bytes_out : 0, lasted_ns / NS_PER_MS);
}

static void session_free(struct session *s, const struct service_ops *ops)
{
    pipeline_template_release(s->pipeline);
    session_header_free(s);
    session_tls_free(s);
    session_facts_destroy(session_facts_of(s));
    ops->free(s);
}

static void session_run_free(struct task *t)
{
    struct session *s = CONTAINER_OF(t, struct session, task);
    const struct service_ops *ops = s->service->ops;

    if (s->gone == SESSION_GONE_NOT) {
        session_log_end(s);
        session_access_log_end(s);
        session_count_end(s);
    } else {
        session_count_gone(s);
    }
    admission_leave(&s->ticket);
    s->owner->ended(s->owner, s); /* the service may be freed in this call */
    session_free(s, ops);
}

static const struct task_type session_free_type = {
    .name = "session free", .run = session_run_free, .drop = session_run_free};

static void session_end(struct session *s)
{
    session_enter(s, SESSION_PHASE_ENDING);
    if (s->preface & 1 << SESSION_PREFACE_TLS)
        s->legs[0]->bytes_in = s->legs[0]->bytes_out = 0; /* bytes before TLS data do not count */
    session_timer_stop(s);
    session_tls_end(s);
    s->task.type = &session_free_type;
    loop_reap(s->owner->net->loop, &s->task);
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
    session_free(s, s->service->ops);
}

static void session_closing_begin(struct session *s, enum session_reason reason)
{
    session_set_reason(s, reason);
    if (s->phase < SESSION_PHASE_CLOSING)
        session_enter(s, SESSION_PHASE_CLOSING);
}

/* End ${leg}; within linger_max if we end the session. */
static void session_end_leg(const struct session *s, struct channel *leg, unsigned how)
{
    channel_end(leg, s->phase == SESSION_PHASE_CLOSING ? how | CHANNEL_END_BOUNDED : how);
}

void session_abort(struct session *s, enum session_reason reason)
{
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        channel_abort(leg, 0);
}

static bool session_input_pending(const struct session *s)
{
    session_for_each_leg (leg, s)
        if (channel_input_pending(leg))
            return true;
    return false;
}

void session_close(struct session *s, enum session_reason reason)
{
    if (session_input_pending(s)) {
        session_abort(s, reason); /* bytes in a handler would be lost silently */
        return;
    }
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        session_end_leg(s, leg, CHANNEL_END_FLUSH);
}

/* Is the stream to ${leg} cut? Its source is the other leg, or in an echo ${leg} itself. */
static bool session_stream_cut(const struct session *s, unsigned leg)
{
    const struct channel *from = s->legs[s->service->ops->peer_name ? !leg : leg];

    return from && channel_input_cut(from);
}

void session_time_out(struct session *s, enum session_reason reason, int64_t limit_ns)
{
    int64_t quiet_ns = limit_ns / 2 < SESSION_CUT_NS ? limit_ns / 2 : SESSION_CUT_NS;
    unsigned how[SESSION_LEGS];

    if (session_input_pending(s)) {
        session_abort(s, reason);
        return;
    }
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        channel_discard(leg, quiet_ns);
    /* Decide for both legs first: a reset of one leg would cut the other stream too. */
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        how[i] = session_stream_cut(s, i) ? CHANNEL_END_RESET : CHANNEL_END_FLUSH;
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i])
            session_end_leg(s, s->legs[i], how[i]);
}

void session_reset(struct session *s, enum session_reason reason)
{
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        session_end_leg(s, leg, CHANNEL_END_RESET);
}

static enum session_reason session_reason_of(const struct session *s, const struct channel *ch,
                                             enum handler_end what, int error)
{
    bool is_client = ch == s->legs[0];

    if (what == HANDLER_EOF)
        return is_client ? SESSION_CLIENT_FIN : SESSION_UPSTREAM_FIN;
    if (what == HANDLER_REJECTED)
        return error == -EMSGSIZE     ? SESSION_LIMIT
               : error == -EBADMSG    ? is_client ? SESSION_CLIENT_TLS : SESSION_UPSTREAM_TLS
               : error != -ECONNRESET ? SESSION_ERROR
               : is_client            ? SESSION_CLIENT_RESET
                                      : SESSION_UPSTREAM_RESET;
    switch (error) {
    case -ECONNRESET:
    case -EPIPE:
    case -ETIMEDOUT:
    case -EHOSTUNREACH:
    case -ENETUNREACH: return is_client ? SESSION_CLIENT_RESET : SESSION_UPSTREAM_RESET;
    case -EBADMSG: return is_client ? SESSION_CLIENT_TLS : SESSION_UPSTREAM_TLS;
    default: return SESSION_ERROR;
    }
}

static struct channel *session_other_leg(const struct session *s, const struct channel *ch)
{
    session_for_each_leg (leg, s)
        if (leg != ch)
            return leg;
    return NULL;
}

/*
 * Has the peer acknowledged all bytes? Then a reset loses none. Our end of file counts as one byte
 * while it is not acknowledged.
 */
static bool session_has_all(const struct channel *ch)
{
    return channel_write_ended(ch) && channel_unsent_bytes(ch) <= 1;
}

static void session_leg_broken(struct session *s, struct channel *ch, int error)
{
    struct channel *other = session_other_leg(s, ch);

    if (!other) {
        channel_abort(ch, error); /* no other leg can take the input of ${ch} */
        return;
    }
    if ((channel_read_ended(ch) && !channel_input_pending(ch)) || channel_discards(ch))
        session_end_leg(s, other, session_has_all(other) ? CHANNEL_END_RESET : CHANNEL_END_FLUSH);
    else
        session_end_leg(s, other, CHANNEL_END_INPUT_ONLY);
    channel_resume_reading(ch, CHANNEL_STOP_RECEIVER);
}

static void session_leg_closed(struct session *s, struct channel *ch, int error)
{
    struct channel *other = session_other_leg(s, ch);

    if (error < 0 && other && s->phase == SESSION_PHASE_OPEN)
        session_end_leg(s, other, CHANNEL_END_RESET);
    MUST(s->open_legs > 0);
    if (--s->open_legs == 0)
        session_end(s);
}

/*
 * TLS of ${ch} has failed. The alert, ours or the peer's, says why: so ${ch} ends after it with end
 * of file, since a reset could overtake it, and a reset that came before it is not the reason.
 */
static void session_leg_rejected_tls(struct session *s, struct channel *ch,
                                     enum session_reason reason)
{
    bool is_client = ch == s->legs[0];

    if (s->reason == (is_client ? SESSION_CLIENT_RESET : SESSION_UPSTREAM_RESET))
        s->reason = reason;
    session_closing_begin(s, reason);
    session_for_each_leg (leg, s)
        session_end_leg(s, leg, leg == ch ? CHANNEL_END_FLUSH : CHANNEL_END_RESET);
}

static void session_leg_rejected(struct session *s, struct channel *ch, int error)
{
    if (error == -EBADMSG)
        session_leg_rejected_tls(s, ch, session_reason_of(s, ch, HANDLER_REJECTED, error));
    else
        session_reset(s, s->reason);
}

void session_leg_closing(struct session *s, struct channel *ch)
{
    session_facts_measure(session_facts_of(s), ch != s->legs[0], ch->io.fd);
}

void session_leg_ended(struct session *s, struct channel *ch, enum handler_end what, int error)
{
    if (what != HANDLER_CLOSED || error < 0)
        session_set_reason(s, session_reason_of(s, ch, what, error));
    switch (what) {
    case HANDLER_EOF:
        session_facts_fin(session_facts_of(s), ch != s->legs[0]);
        channel_shutdown_write(session_receiver(s, ch));
        break;
    case HANDLER_REJECTED: session_leg_rejected(s, ch, error); break;
    case HANDLER_BROKEN: session_leg_broken(s, ch, error); break;
    case HANDLER_CLOSED: session_leg_closed(s, ch, error); return;
    }
    if (channel_read_ended(ch) != channel_write_ended(ch))
        session_timer_arm(s); /* half_close_timeout begins */
}
