#include "sessions/session_set.h"

#include "engine/visit.h"
#include "service/session.h"

void session_set_init(struct session_set *set)
{
    list_init(&set->sessions);
    list_init(&set->walks);
    set->last = 0;
}

void session_set_add(struct session_set *set, struct session *s)
{
    s->order = ++set->last;
    list_append(&set->sessions, &s->link);
}

void session_set_remove(struct session_set *set, struct session *s)
{
    list_for_each (node, &set->walks) {
        struct session_set_walk *walk = LIST_ENTRY(node, struct session_set_walk, link);

        if (walk->next == &s->link)
            walk->next = s->link.next;
        if (walk->removed)
            walk->removed(walk, s);
    }
    list_remove(&s->link);
}

struct session *session_set_oldest(const struct session_set *set)
{
    return list_empty(&set->sessions) ? NULL : LIST_ENTRY(set->sessions.next, struct session, link);
}

void session_set_walk_init(struct session_set_walk *walk)
{
    *walk = (struct session_set_walk){.set = NULL};
    list_init(&walk->link);
}

void session_set_begin(struct session_set_walk *walk, struct session_set *set)
{
    walk->set = set;
    walk->next = set->sessions.next;
    walk->last = set->last;
    list_append(&set->walks, &walk->link);
}

void session_set_end(struct session_set_walk *walk)
{
    list_remove(&walk->link);
}

static struct session *session_set_peek(const struct session_set_walk *walk)
{
    struct session *s;

    if (!walk->set)
        return NULL; /* not begun */
    s = LIST_ENTRY(walk->next, struct session, link);
    return walk->next == &walk->set->sessions || s->order > walk->last ? NULL : s;
}

bool session_set_is_through(const struct session_set_walk *walk)
{
    return !session_set_peek(walk);
}

struct session *session_set_next(struct session_set_walk *walk)
{
    struct session *s = session_set_peek(walk);

    if (s)
        walk->next = s->link.next;
    return s;
}

bool session_set_step(struct session_set_walk *walk, unsigned max, session_set_visit *visit,
                      void *cookie)
{
    struct budget step;
    struct session *s;

    budget_begin_step(&step, clock_now_ns(), BUDGET_STEP_NS, max);
    while ((s = session_set_next(walk)))
        if (budget_step_over(&step, visit(cookie, s)))
            break;
    return session_set_is_through(walk);
}

int64_t session_set_go_on(struct session_set_walk *walk, struct session_set *set,
                          session_set_visit *visit, void *cookie)
{
    if (!session_set_walks(walk))
        session_set_begin(walk, set);
    if (!session_set_step(walk, SESSION_SET_STEP, visit, cookie))
        return VISIT_NEXT_TURN;
    session_set_end(walk);
    return VISIT_OVER;
}
