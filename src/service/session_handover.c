#include "service/session_handover.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "handlers/pipeline_template.h"
#include "service/session_access_log.h"
#include "service/session_facts.h"
#include "service/session_header.h"
#include "service/session_internal.h"
#include "service/session_move.h"
#include "service/session_state.h"
#include "stats/counters.h"

static const char *const session_stay_words[SESSION_STAYS] = {
    "none",    "tls", "connecting", "closing", "busy",   "fault", "mirror",
    "leaving", "log", "name",       "changed", "scarce", "record"};

const char *session_stay_word(enum session_stay stay)
{
    return session_stay_words[stay];
}

bool session_stay_is_lasting(enum session_stay stay)
{
    return stay != SESSION_STAYS_CONNECTING && stay != SESSION_STAYS_CLOSING &&
           stay != SESSION_STAYS_BUSY && stay != SESSION_STAYS_SCARCE;
}

/* ---- leaving ---- */

/* Do its access logs need what only this process knows? */
static bool session_has_told(const struct session *s)
{
    const struct proxy_header_tls *tls = session_header_tls(s);

    return s->service->n_access_logs > 0 &&
           (s->hello || session_header_proxy(s) || (tls && tls->authority.n > 0));
}

/* Why the handlers of ${s} keep it. */
static enum session_stay session_stays_by_handlers(const struct session *s)
{
    struct handler_state states[PIPELINE_CONF_HANDLERS];
    const struct channel *server = s->legs[1];
    int n = pipeline_save(&s->legs[0]->pipeline, states, ARRAY_LEN(states));

    if (pipeline_template_injects_faults(s->pipeline))
        return SESSION_STAYS_FAULT;
    if (n == -ENOTSUP)
        return SESSION_STAYS_MIRROR;
    if (n < 0 || (server && server->pipeline.head != server->pipeline.tail))
        return SESSION_STAYS_BUSY;
    return pipeline_may_move(&s->legs[0]->pipeline) ? SESSION_STAYS_NOT : SESSION_STAYS_BUSY;
}

/* What keeps a session on its loop also keeps it in its process. */
static const enum session_stay session_stays_by_obstacle[SESSION_OBSTACLES] = {
    [SESSION_OBSTACLE_NONE] = SESSION_STAYS_NOT,
    [SESSION_OBSTACLE_PREFACE] = SESSION_STAYS_CONNECTING,
    [SESSION_OBSTACLE_CONNECTING] = SESSION_STAYS_CONNECTING,
    [SESSION_OBSTACLE_BUSY] = SESSION_STAYS_CLOSING, /* handlers aside, a channel ends */
    [SESSION_OBSTACLE_CLOSING] = SESSION_STAYS_CLOSING};

enum session_stay session_stays(const struct session *s)
{
    enum session_obstacle obstacle = session_obstacle(s);
    enum session_stay stay;

    if (s->tls || (s->service->ops->has_tls && s->service->ops->has_tls(s)))
        return SESSION_STAYS_TLS;
    if (s->phase != SESSION_PHASE_OPEN)
        return session_stays_by_obstacle[obstacle];
    if (s->leaving)
        return SESSION_STAYS_LEAVING;
    if (session_has_told(s))
        return SESSION_STAYS_LOG;
    stay = session_stays_by_handlers(s);
    return stay != SESSION_STAYS_NOT ? stay : session_stays_by_obstacle[obstacle];
}

int session_leave_process(struct session *s)
{
    int rc;

    MUST(session_stays(s) == SESSION_STAYS_NOT);
    session_count_bytes(s);
    rc = session_leave_loop(s);
    if (rc < 0)
        return rc;
    session_for_each_leg (leg, s)
        channel_forget(leg, s->owner->net);
    return 0;
}

static void session_save_leg(const struct session *s, unsigned i, struct session_state_leg *out)
{
    const struct channel *ch = s->legs[i];

    *out = (struct session_state_leg){.last_read_bytes = s->last_reads[i].bytes_in,
                                      .last_read_at_ns = s->last_reads[i].last_read_at_ns,
                                      .fin_at_ns = session_facts_fin_at_ns(session_facts_of(s), i)};
    if (!ch)
        return;
    out->bytes_in = ch->bytes_in;
    out->bytes_out = ch->bytes_out;
    out->last_io_at_ns = ch->last_io_at_ns;
    out->read_ended = channel_read_ended(ch);
    out->eof_wanted = ch->phase == CHANNEL_EOF_WANTED;
    out->eof_sent = ch->phase == CHANNEL_EOF_SENT;
    out->unwritable = !channel_writable(ch);
    out->piped = ch->pipe ? ch->pipe->bytes : 0;
    out->unsent = buffer_front(&ch->out);
    out->n_unsent = buffer_bytes(&ch->out);
}

void session_save(struct session *s, struct session_state *st)
{
    int n;

    *st = (struct session_state){.listener = s->service->listener,
                                 .upstream = "",
                                 .server = "",
                                 .client = s->peer,
                                 .id = *session_id(s),
                                 .began_at_ns = s->began_at_ns,
                                 .opened_at_ns = s->opened_at_ns,
                                 .expires_at_ns = s->expires_at_ns,
                                 .checked_at_ns = s->checked_at_ns,
                                 .last_read_updated_at_ns = s->last_read_updated_at_ns,
                                 .counted_in = s->counted_in,
                                 .counted_out = s->counted_out,
                                 .access_lines = s->access_lines,
                                 .reason = s->reason,
                                 .has_open_line = s->has_open_line};
    if (s->listen)
        st->listen = *s->listen;
    session_access_log_save(s, st->numbers);
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        session_save_leg(s, i, &st->legs[i]);
    n = pipeline_save(&s->legs[0]->pipeline, st->handlers, ARRAY_LEN(st->handlers));
    MUST(n >= 0); /* see session_stays() */
    st->n_handlers = (uint8_t)n;
    s->service->ops->save(s, st);
}

unsigned session_fds(const struct session *s, int *fds)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i])
            fds[n++] = s->legs[i]->io.fd;
    session_for_each_leg (leg, s) {
        if (!leg->pipe)
            continue;
        fds[n++] = leg->pipe->read_fd;
        fds[n++] = leg->pipe->write_fd;
    }
    return n;
}

void session_vanish(struct session *s, bool is_taken)
{
    MUST(loop_is_current(s->owner->net->loop));
    s->gone = is_taken ? SESSION_GONE_TAKEN : SESSION_GONE_UNDONE;
    session_timer_stop(s);
    if (s->phase < SESSION_PHASE_CLOSING)
        session_enter(s, SESSION_PHASE_CLOSING);
    session_for_each_leg (leg, s)
        channel_vanish(leg);
}

bool session_is_stranded(const struct session *s)
{
    return s->service->ops->is_stranded && s->service->ops->is_stranded(s);
}

/* ---- coming ---- */

int session_restore(struct session **out, const struct session_place *place,
                    const struct session_state *st)
{
    const struct service *service = place->service;
    struct service quiet = *service;
    struct session *s;
    int rc;

    quiet.counters = NULL; /* it is counted, and numbered in the logs, by its first process */
    quiet.n_access_logs = 0;
    rc = service->ops->create(&s, &quiet);
    if (rc < 0)
        return rc;
    s->service = service;
    s->counted[SESSION_AT_LISTENER] = service->counters;
    s->peer = st->client;
    s->id = st->id;
    s->counted_in = st->counted_in;
    s->counted_out = st->counted_out;
    s->access_lines = st->access_lines;
    s->has_open_line = st->has_open_line;
    s->reason = st->reason;
    session_access_log_restore(s, st->numbers);
    if (place->server)
        service->ops->place(s, place, st);
    for (unsigned i = 0; i < SESSION_COUNTED; i++)
        if (s->counted[i])
            counters_taken(s->counted[i]);
    *out = s;
    return 0;
}

void session_unrestore(struct session *s)
{
    for (unsigned i = 0; i < SESSION_COUNTED; i++)
        if (s->counted[i])
            counters_not_taken(s->counted[i]);
    pipeline_template_release(s->pipeline);
    session_facts_destroy(session_facts_of(s));
    s->service->ops->free(s);
}

static int session_restore_leg(struct session *s, unsigned i, const struct session_state_leg *st)
{
    const struct channel_state channel = {.bytes_in = st->bytes_in,
                                          .bytes_out = st->bytes_out,
                                          .last_io_at_ns = st->last_io_at_ns,
                                          .read_ended = st->read_ended,
                                          .eof_wanted = st->eof_wanted,
                                          .eof_sent = st->eof_sent,
                                          .unwritable = st->unwritable,
                                          .unsent = st->unsent,
                                          .n_unsent = st->n_unsent};

    s->last_reads[i] = (struct session_last_read){.bytes_in = st->last_read_bytes,
                                                  .last_read_at_ns = st->last_read_at_ns};
    session_facts_set_fin(session_facts_of(s), i, st->fin_at_ns);
    return s->legs[i] ? channel_restore(s->legs[i], &channel) : 0;
}

/* ${rc}: of what came before; then the pipes are closed. */
static int session_restore_pipes(struct session *s, const struct session_state *st, const int *fds,
                                 int rc)
{
    for (unsigned i = 0; i < SESSION_LEGS; i++) {
        if (st->legs[i].piped == 0)
            continue;
        if (rc == 0 && s->legs[i]) {
            rc = channel_restore_pipe(s->legs[i], fds, (size_t)st->legs[i].piped);
        } else {
            close(fds[0]);
            close(fds[1]);
        }
        fds += 2;
    }
    return rc;
}

static void session_restore_instants(struct session *s, const struct session_state *st)
{
    s->began_at_ns = st->began_at_ns;
    s->opened_at_ns = st->opened_at_ns;
    s->expires_at_ns = st->expires_at_ns;
    s->checked_at_ns = st->checked_at_ns;
    s->last_read_updated_at_ns = st->last_read_updated_at_ns;
}

/*
 * While the channels are built, the session has no bandwidth limits: without memory for them a
 * relay would reset the client.
 */
int session_restore_open(struct session *s, struct session_owner *owner,
                         const struct session_state *st, const int *fds)
{
    const struct service *service = s->service;
    struct service quiet = *service;
    int rc;

    MUST(loop_is_current(owner->net->loop) && !s->owner);
    quiet.throttle = NULL;
    quiet.mirror = NULL;
    s->service = &quiet;
    s->owner = owner;
    s->client_fd = fds[0];
    session_restore_instants(s, st);
    service->ops->open(s);
    session_enter(s, SESSION_PHASE_CONNECTING);
    if (session_state_has_server(st))
        service->ops->restore(s, st, fds[1]);
    else
        session_enter(s, SESSION_PHASE_OPEN);
    s->service = service;
    rc = service->throttle ? service->ops->limit(s, st) : 0;
    for (unsigned i = 0; rc == 0 && i < SESSION_LEGS; i++)
        rc = session_restore_leg(s, i, &st->legs[i]);
    rc = session_restore_pipes(s, st, fds + (session_state_has_server(st) ? 2 : 1), rc);
    if (rc == 0 && s->legs[0])
        rc = pipeline_restore(&s->legs[0]->pipeline, st->handlers, st->n_handlers);
    session_restore_instants(s, st); /* opening has set some */
    return rc;
}

void session_restore_begin(struct session *s)
{
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i] && !channel_writable(session_receiver(s, s->legs[i])))
            channel_stop_reading(s->legs[i], CHANNEL_STOP_RECEIVER);
    session_for_each_leg (leg, s)
        channel_rejoin(leg);
    session_timer_arm(s);
}
