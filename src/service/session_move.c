#include "service/session_move.h"

#include "service/session_internal.h"

enum session_obstacle session_obstacle(const struct session *s)
{
    static const enum session_obstacle phases[] = {
        [SESSION_PHASE_PREFACE] = SESSION_OBSTACLE_PREFACE,
        [SESSION_PHASE_CONNECTING] = SESSION_OBSTACLE_CONNECTING,
        [SESSION_PHASE_OPEN] = SESSION_OBSTACLE_NONE,
        [SESSION_PHASE_CLOSING] = SESSION_OBSTACLE_CLOSING,
        [SESSION_PHASE_ENDING] = SESSION_OBSTACLE_CLOSING};

    if (s->phase != SESSION_PHASE_OPEN)
        return phases[s->phase];
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i] && !channel_may_move(s->legs[i]))
            return SESSION_OBSTACLE_BUSY;
    return SESSION_OBSTACLE_NONE;
}

bool session_may_move(const struct session *s)
{
    return session_obstacle(s) == SESSION_OBSTACLE_NONE;
}

const char *session_obstacle_name(enum session_obstacle obstacle)
{
    static const char *const names[] = {[SESSION_OBSTACLE_NONE] = "failed",
                                        [SESSION_OBSTACLE_PREFACE] = "preface",
                                        [SESSION_OBSTACLE_CONNECTING] = "connecting",
                                        [SESSION_OBSTACLE_BUSY] = "busy",
                                        [SESSION_OBSTACLE_CLOSING] = "closing"};

    return names[obstacle];
}

int session_leave_loop(struct session *s)
{
    struct netloop *net = s->owner->net;

    MUST(loop_is_current(net->loop) && session_may_move(s));
    for (unsigned i = 0; i < SESSION_LEGS; i++) {
        int rc = s->legs[i] ? channel_leave_loop(s->legs[i]) : 0;

        if (rc == 0)
            continue;
        while (i-- > 0)
            if (s->legs[i])
                channel_join_loop(s->legs[i], net);
        return rc;
    }
    loop_suspend(net->loop, &s->timer);
    return 0;
}

void session_join_loop(struct session *s, struct session_owner *owner)
{
    MUST(loop_is_current(owner->net->loop));
    s->owner = owner;
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i])
            channel_join_loop(s->legs[i], owner->net);
    loop_resume(owner->net->loop, &s->timer);
}
