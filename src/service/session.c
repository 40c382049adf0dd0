#include "service/session.h"

#include "base/clock.h"
#include "base/hash.h"
#include "handlers/pipeline_template.h"
#include "service/session_access_log.h"
#include "service/session_header.h"
#include "service/session_internal.h"
#include "service/session_preface.h"
#include "stats/counters.h"

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

void session_enter(struct session *s, enum session_phase phase)
{
    static const unsigned may_follow[] = {
        [SESSION_PHASE_CONNECTING] = 1 << SESSION_PHASE_PREFACE | 1 << SESSION_PHASE_OPEN,
        [SESSION_PHASE_OPEN] = 1 << SESSION_PHASE_CONNECTING,
        [SESSION_PHASE_CLOSING] = (1 << SESSION_PHASE_CLOSING) - 1,
        [SESSION_PHASE_ENDING] = (1 << SESSION_PHASE_ENDING) - 1};
    bool gives_up = s->phase == SESSION_PHASE_CONNECTING && phase >= SESSION_PHASE_CLOSING;

    MUST(may_follow[phase] & 1 << s->phase);
    s->phase = phase;
    if (gives_up)
        s->service->ops->cancel(s);
}

void session_init(struct session *s, const struct service *service)
{
    *s = (struct session){
        .service = service, .client_fd = -1, .pipeline = pipeline_template_hold(service->pipeline)};
    list_init(&s->link);
    session_timer_init(s);
    session_access_log_begin(s);
    if (service->counters)
        session_count_at(s, SESSION_AT_LISTENER, service->counters);
}

void session_start(struct session *s)
{
    const struct service_ops *ops = s->service->ops;

    MUST(s->phase == SESSION_PHASE_PREFACE);
    session_enter(s, SESSION_PHASE_CONNECTING);
    if (!ops->cancel) { /* an echo has no server */
        session_enter(s, SESSION_PHASE_OPEN);
        session_access_log_opened(s);
    }
    ops->start(s);
    session_header_trim(s); /* the hash_key is known */
}

void session_adopt(struct session *s, struct session_owner *owner)
{
    MUST(loop_is_current(owner->net->loop) && !s->owner);
    s->owner = owner;
    s->began_at_ns = loop_now_ns(owner->net->loop);
    s->last_read_updated_at_ns = s->began_at_ns;
    session_timer_start(s);
    s->service->ops->open(s);
    if (s->preface) {
        session_preface_settle(s);
        if (s->phase != SESSION_PHASE_PREFACE)
            return;
        channel_start(s->legs[0]); /* reads the preface only */
    } else {
        session_start(s);
    }
    session_timer_arm(s);
}

static void session_carry_client_over(struct session *s)
{
    const struct service *service = s->service;

    if (s->preface)
        session_preface_carry_over(s);
    if (service->admission && !(s->preface & 1 << SESSION_PREFACE_HEADER)) /* else not admitted */
        admission_carry_over(service->admission, &s->ticket, &s->peer);
}

void session_carry_over(struct session *s, const struct service *service)
{
    const struct session_conf *before = s->service->conf, *conf = service->conf;
    const struct service *old = s->service;

    MUST(loop_is_current(s->owner->net->loop) && service->ops == s->service->ops);
    s->service = service;
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i])
            s->legs[i]->linger_conf = &conf->linger;
    session_carry_client_over(s);
    session_access_log_carry_over(s, old);
    if (conf->max_lifetime_ns != before->max_lifetime_ns ||
        conf->lifetime_jitter != before->lifetime_jitter)
        session_timer_start(s);
    if (service->ops->carry_over && s->phase != SESSION_PHASE_ENDING)
        service->ops->carry_over(s);
    session_preface_settle(s); /* by the new routes */
    session_timer_arm(s);
}

bool session_admit(struct session *s, const struct address *client)
{
    enum session_reason reason;

    MUST(loop_is_current(s->owner->net->loop));
    if (!s->service->admission)
        return true;
    if (admission_refuses(s->service->admission, client)) {
        session_abort(s, SESSION_LIMIT);
        return false;
    }
    switch (admission_enter(s->service->admission, &s->ticket, client, &reason)) {
    case ADMISSION_ADMIT: return true;
    case ADMISSION_CLOSE: session_close(s, reason); return false;
    case ADMISSION_RESET: break;
    }
    session_abort(s, reason);
    return false;
}

void session_offend(struct session *s, enum ban_offence offence)
{
    if (s->service->admission)
        admission_offend(s->service->admission, &s->peer, offence);
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
    if (leg == 0)
        return;
    session_enter(s, SESSION_PHASE_OPEN);
    session_timer_arm(s); /* the timeouts of both sides begin */
}

void session_leg_lost(struct session *s, unsigned leg)
{
    MUST(s->legs[leg] && s->open_legs > 0);
    s->legs[leg] = NULL;
    s->open_legs--;
    session_enter(s, SESSION_PHASE_CONNECTING);
    session_timer_arm(s);
}

void session_drain(struct session *s)
{
    s->draining = true;
    session_timer_arm(s);
}

void session_leave_by(struct session *s, int64_t at_ns)
{
    MUST(loop_is_current(s->owner->net->loop));
    s->leaving = true;
    if (at_ns < s->expires_at_ns)
        s->expires_at_ns = at_ns;
    session_timer_arm(s);
}

int64_t session_active_at_ns(const struct session *s)
{
    int64_t at_ns = s->began_at_ns;

    session_for_each_leg (leg, s)
        if (leg->last_io_at_ns > at_ns)
            at_ns = leg->last_io_at_ns;
    return at_ns;
}

unsigned session_load_us(const struct session *s, int64_t now_ns)
{
    unsigned us = 0;

    session_for_each_leg (leg, s)
        us += event_load_us(&leg->load, now_ns);
    return us;
}

int64_t session_moved_ns(const struct session *s, int64_t now_ns)
{
    int64_t moved_ns = CLOCK_NEVER;

    session_for_each_leg (leg, s)
        moved_ns = clock_sooner(moved_ns, event_load_moved_ns(&leg->load, now_ns));
    return moved_ns;
}

void session_set_moved(struct session *s, int64_t now_ns)
{
    session_for_each_leg (leg, s)
        leg->load.moved_second = event_load_second(now_ns);
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
