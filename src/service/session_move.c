#include "service/session_move.h"

#include "service/session_internal.h"

bool session_may_move(const struct session *s)
{
    if (s->phase != SESSION_PHASE_OPEN)
        return false;
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i] && !channel_may_move(s->legs[i]))
            return false;
    return true;
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
