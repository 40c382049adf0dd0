#include "sessions/session_idlest.h"

#include <string.h>

#include "service/session.h"

static void session_idlest_remove_at(struct session_idlest *si, unsigned at)
{
    si->n--;
    memmove(&si->list[at], &si->list[at + 1], (si->n - at) * sizeof(si->list[0]));
}

static void session_idlest_on_removed(struct session_set_walk *walk, const struct session *s)
{
    struct session_idlest *si = CONTAINER_OF(walk, struct session_idlest, walk);

    for (unsigned i = 0; i < si->n; i++)
        if (si->list[i].session == s) {
            session_idlest_remove_at(si, i);
            return;
        }
}

void session_idlest_init(struct session_idlest *si)
{
    session_set_walk_init(&si->walk);
}

void session_idlest_begin(struct session_idlest *si, struct session_set *set,
                          int64_t (*at_ns)(const struct session *s))
{
    si->at_ns = at_ns;
    si->n = 0;
    session_set_begin(&si->walk, set);
    si->walk.removed = session_idlest_on_removed;
}

void session_idlest_end(struct session_idlest *si)
{
    session_set_end(&si->walk);
}

static void session_idlest_insert(struct session_idlest *si, struct session *s)
{
    int64_t at_ns = si->at_ns(s);
    unsigned at = si->n;

    if (at_ns == CLOCK_NEVER || (si->n == SESSION_IDLEST_MAX && at_ns >= si->list[0].at_ns))
        return;
    if (si->n == SESSION_IDLEST_MAX) {
        session_idlest_remove_at(si, 0);
        at--;
    }
    while (at > 0 && si->list[at - 1].at_ns <= at_ns)
        at--;
    memmove(&si->list[at + 1], &si->list[at], (si->n - at) * sizeof(si->list[0]));
    si->list[at] = (struct session_idlest_entry){.at_ns = at_ns, .session = s};
    si->n++;
}

static bool session_idlest_visit(void *cookie, struct session *s)
{
    if (s->phase != SESSION_PHASE_ENDING)
        session_idlest_insert(cookie, s);
    return false;
}

bool session_idlest_step(struct session_idlest *si)
{
    return session_set_step(&si->walk, SESSION_SET_STEP, session_idlest_visit, si);
}

struct session *session_idlest_take(struct session_idlest *si)
{
    while (si->n > 0) {
        struct session *s = si->list[--si->n].session;

        if (s->phase != SESSION_PHASE_ENDING)
            return s;
    }
    return NULL;
}

void session_idlest_put_back(struct session_idlest *si)
{
    si->n++;
}
