/*
 * service/session_internal: shared by session.c (begin), session_end.c (end) and session_timer.c
 * (timeouts).
 */
#ifndef SERVICE_SESSION_INTERNAL_H
#define SERVICE_SESSION_INTERNAL_H

#include "service/session.h"

#define session_for_each_leg(leg, s)                                                          \
    for (struct channel *const *at_ = (s)->legs, *leg; at_ < (s)->legs + SESSION_LEGS; at_++) \
        if ((leg = *at_) && !channel_ended(leg))

/*
 * session_receiver(s, leg):
 * The leg that sends what ${leg} reads: the other leg, or ${leg} itself in an echo.
 *
 * Thread: loop of ${s}
 */
static inline struct channel *session_receiver(const struct session *s, const struct channel *leg)
{
    return s->legs[1] && leg == s->legs[0] ? s->legs[1] : s->legs[0];
}

/*
 * session_enter(s, phase):
 * Change the phase of ${s}, which must not go back, except to reconnect. An end stops connecting.
 *
 * Thread: loop of ${s}
 */
void session_enter(struct session *s, enum session_phase phase);

/* session_start(s): serve the client, whose preface, if any, is complete. Thread: loop of ${s} */
void session_start(struct session *s);

/*
 * session_timer_init(s) / session_timer_start(s) / session_timer_stop(s):
 * Initialize the timer / choose the lifetime, without arming the timer; session_leave_by() still
 * holds / cancel the timer.
 *
 * Thread: loop of ${s}; session_timer_init(): any
 */
void session_timer_init(struct session *s);
void session_timer_start(struct session *s);
void session_timer_stop(struct session *s);

/*
 * session_timer_arm(s):
 * Arm the timer for the next deadline, when a deadline may have come nearer. Bytes never bring one
 * nearer.
 *
 * Thread: loop of ${s}
 */
void session_timer_arm(struct session *s);

/*
 * session_time_out(s, reason, limit_ns):
 * Close ${s} after a timeout of ${limit_ns}, as session_close() does. But a stream whose bytes
 * still arrive or are unread is cut: its receiver gets the bytes read, then a reset.
 *
 * Thread: loop of ${s}
 */
void session_time_out(struct session *s, enum session_reason reason, int64_t limit_ns);

#endif
