/*
 * service/session_internal: what the parts of a session know of each other: session.c (its life),
 * session_closing.c (an end that takes its time) and session_timer.c (when to end, and to look).
 * Private to them. Everything here runs on the loop of the session.
 */
#ifndef SERVICE_SESSION_INTERNAL_H
#define SERVICE_SESSION_INTERNAL_H

#include "service/session.h"

#define session_for_each_leg(leg, s)                                                          \
    for (struct channel *const *at_ = (s)->legs, *leg; at_ < (s)->legs + SESSION_LEGS; at_++) \
        if ((leg = *at_) && !channel_ended(leg))

/*
 * session_timer_init(s) / session_timer_start(s) / session_timer_stop(s):
 * The timer's part of session_init(), of session_adopt() and of the session's end. It is armed by
 * session_timer_arm() alone.
 *
 * Thread: loop of ${s}; any for session_timer_init()
 */
void session_timer_init(struct session *s);
void session_timer_start(struct session *s);
void session_timer_stop(struct session *s);

/*
 * session_timer_arm(s):
 * Something happened that may bring a deadline nearer: see that the timer comes in time. Activity
 * brings none nearer.
 *
 * Thread: loop of ${s}
 */
void session_timer_arm(struct session *s);

/*
 * session_time_out(s, reason, limit_ns):
 * As session_close(), because of a timeout of ${limit_ns}. Where bytes still came, or wait to be
 * read, the stream is cut: its receiver gets all that was read, and then a reset.
 *
 * Thread: loop of ${s}
 * Units:  ns
 */
void session_time_out(struct session *s, enum session_reason reason, int64_t limit_ns);

#endif
