/* sessions/worker_handover: sessions that a worker gives to another process, or takes from one. */
#include <errno.h>
#include <unistd.h>

#include "engine/loop.h"
#include "engine/move_gate.h"
#include "limits/admission.h"
#include "net/netloop.h"
#include "service/session.h"
#include "service/session_handover.h"
#include "service/session_move.h"
#include "service/session_state.h"
#include "sessions/worker_internal.h"

/*
 * A visit of all sessions, such as that of a server that is down, does not wait for the other
 * process: what it would have said is asked when a session is taken back.
 */
int worker_give(struct worker *w, struct session *s)
{
    int rc;

    MUST(loop_is_current(w->owner.net->loop) && s->owner == &w->owner);
    if (!move_gate_enter(w->env.moves))
        return -EAGAIN;
    rc = session_leave_process(s);
    if (rc == 0)
        worker_forget(w, s);
    move_gate_leave(w->env.moves);
    return rc;
}

static void worker_put_back(struct worker *w, struct session *s)
{
    loop_load_add(w->owner.net->loop, 1);
    session_set_add(&w->sessions, s);
    session_join_loop(s, &w->owner);
}

void worker_take_back(struct worker *w, struct session *s)
{
    worker_put_back(w, s);
    worker_welcome(w, s);
    if (session_is_stranded(s))
        session_abort(s, SESSION_SERVER_DOWN);
}

void worker_gave(struct worker *w, struct session *s)
{
    worker_put_back(w, s); /* its end takes it off again */
    session_vanish(s, true);
}

static int worker_reserve(const struct worker *w, const int *fds, unsigned n)
{
    int rc = 0;

    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = loop_reserve_fd(w->owner.net->loop, fds[i]);
    return rc;
}

/* ${s} is not on the loop yet. */
static void worker_untake(struct worker *w, struct session *s, const struct worker_take *take)
{
    const struct service *service = s->service;

    for (unsigned i = 0; i < take->n_fds; i++)
        close(take->fds[i]);
    admission_leave(&s->ticket);
    session_unrestore(s);
    w->env.ended(w->env.cookie, service);
}

int worker_take(struct worker *w, struct session *s, const struct worker_take *take)
{
    unsigned n = session_state_has_server(take->state) ? 2 : 1;
    int rc = worker_reserve(w, take->fds, n);

    if (rc < 0) {
        worker_untake(w, s, take);
        return rc;
    }
    loop_load_add(w->owner.net->loop, 1);
    session_set_add(&w->sessions, s);
    rc = session_restore_open(s, &w->owner, take->state, take->fds);
    if (rc == 0)
        rc = take->commit(take->cookie);
    if (rc < 0) {
        session_vanish(s, false);
        return rc;
    }
    session_restore_begin(s);
    worker_welcome(w, s);
    return 0;
}
