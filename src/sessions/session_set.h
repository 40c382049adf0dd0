/*
 * sessions/session_set: the sessions of a worker in the order of their adoption, and walks over
 * them that may pause between tasks.
 *
 *   begin -> step ... step (true: through) -> end
 *
 * A walk points at its next session; the removal of that session moves the walk on. Sessions added
 * after the begin of a walk are not visited, so it ends however many are added.
 */
#ifndef SESSIONS_SESSION_SET_H
#define SESSIONS_SESSION_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/must.h"
#include "engine/budget.h"

struct session;

/* Maximum of sessions for a step (one task). */
#define SESSION_SET_STEP 256

struct session_set {
    struct list sessions;
    struct list walks; /* under way */
    uint64_t last;     /* session.order of the newest session */
};

struct session_set_walk {
    struct list link;
    const struct session_set *set;
    struct list *next;
    uint64_t last; /* session.order of the last session to visit */
    void (*removed)(struct session_set_walk *walk, const struct session *s); /* may be NULL */
};

/*
 * session_set_init(set):
 * Initialise an empty set.
 *
 * Thread: any, before other threads can use ${set}
 */
void session_set_init(struct session_set *set);

/*
 * session_set_add(set, s) / session_set_remove(set, s):
 * Append ${s}, and number it / remove ${s}.
 *
 * Thread: loop
 */
void session_set_add(struct session_set *set, struct session *s);
void session_set_remove(struct session_set *set, struct session *s);

/* session_set_oldest(set): return the oldest session; NULL: the set is empty. Thread: loop */
struct session *session_set_oldest(const struct session_set *set);

/*
 * session_set_walk_init(walk) / session_set_begin(walk, set) / session_set_end(walk):
 * Initialise a walk that is not under way / begin at the oldest session / end the walk, also if it
 * is not under way.
 *
 * Thread: loop; session_set_walk_init(): any, before other threads can use ${walk}
 */
void session_set_walk_init(struct session_set_walk *walk);
void session_set_begin(struct session_set_walk *walk, struct session_set *set);
void session_set_end(struct session_set_walk *walk);

/*
 * session_set_next(walk):
 * Return the next session, perhaps one that is ending; NULL: no session is left.
 *
 * Thread: loop
 * Owns:   the session is valid until the end of the turn
 */
struct session *session_set_next(struct session_set_walk *walk);

/* Visit ${s}; true if the visit was expensive. */
typedef bool session_set_visit(void *cookie, struct session *s);

/*
 * session_set_step(walk, max, visit, cookie):
 * Visit the next sessions: ${max} of them, fewer if BUDGET_STEP_NS are over. True: ${walk} is
 * through.
 *
 * Thread: loop
 */
bool session_set_step(struct session_set_walk *walk, unsigned max, session_set_visit *visit,
                      void *cookie) NODISCARD;

/*
 * session_set_go_on(walk, set, visit, cookie):
 * Begin ${walk} if it is not under way, and do a step of SESSION_SET_STEP, for step() of
 * engine/visit. VISIT_OVER: ${walk} is through, and ended; else VISIT_NEXT_TURN.
 *
 * Thread: loop
 */
int64_t session_set_go_on(struct session_set_walk *walk, struct session_set *set,
                          session_set_visit *visit, void *cookie) NODISCARD;

/*
 * session_set_step_begin(step):
 * Start the budget of a step other than session_set_step(); count its work by budget_step_over().
 *
 * Thread: loop
 */
static inline void session_set_step_begin(struct budget *step)
{
    budget_begin_step(step, clock_now_ns(), BUDGET_STEP_NS, SESSION_SET_STEP);
}

/* session_set_is_through(walk): would session_set_next() return NULL? Thread: loop */
bool session_set_is_through(const struct session_set_walk *walk);

/* session_set_walks(walk): is ${walk} under way? Thread: loop */
static inline bool session_set_walks(const struct session_set_walk *walk)
{
    return !list_empty(&walk->link);
}

#endif
