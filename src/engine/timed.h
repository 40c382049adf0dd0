/*
 * engine/timed: a task with an instant, once or again and again.
 *
 *   IDLE --schedule_add--> WAITING --schedule_fetch_due--> DUE --run, or schedule_remove--> IDLE
 *
 * note: claim. A timer that another thread gave to a loop may also be taken back by another thread, while the loop is
 * about to run it: both try to change `claim`, and who succeeds has the timer. The states above are the loop's alone.
 *
 *   FREE --loop_submit_after--> COMING (in the task lane) --arrives--> HELD --the loop begins to run or drop it--> FREE
 *                                  \--loop_withdraw--> WITHDRAWN <--loop_withdraw--/
 *
 * Acquire and release on each change: who has the timer sees what the other wrote to it before.
 */
#ifndef ENGINE_TIMED_H
#define ENGINE_TIMED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "engine/task.h"

enum timed_state { TIMED_IDLE, TIMED_WAITING, TIMED_DUE };
enum timed_claim { TIMED_FREE, TIMED_COMING, TIMED_HELD, TIMED_WITHDRAWN };

struct timed {
    struct task task;
    int64_t at_ns;     /* its instant; a fixed rate counts from it */
    int64_t rank_ns;   /* WAITING: its key in the heap; see schedule_add_again() */
    int64_t period_ns; /* 0: once; > 0: fixed rate; < 0: fixed delay of that length */
    uint64_t order;    /* WAITING: of scheduling; DUE: its place among the loop's tasks */
    union {
        struct {
            struct timed *child;
            struct timed *next;
            struct timed *prev; /* left sibling, or parent of a first child */
        } heap;
        struct list due;
    } u;
    enum timed_state state;
    atomic_int claim; /* see note: claim */
    const struct task_type
        *own_type; /* unless FREE: its type, task.type being that of its way through a queue */
};

/*
 * timed_init(t, type):
 * Prepare ${t}, which is then idle.
 *
 * Thread: owner of ${t}
 * Errors: none
 */
void timed_init(struct timed *t, const struct task_type *type);

/*
 * timed_move_claim(t, from, to):
 * Change the claim from ${from} to ${to}; was it ${from}? See note: claim.
 *
 * Thread: any
 * Errors: none
 */
static inline bool timed_move_claim(struct timed *t, enum timed_claim from, enum timed_claim to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong_explicit(&t->claim, &expected, (int)to,
                                                   memory_order_acq_rel, memory_order_acquire);
}

/*
 * timed_next_at_ns(t, now_ns):
 * When a periodic ${t} that has just run is due again: fixed rate counts from its last instant, fixed delay
 * from ${now_ns}.
 *
 * Thread: owner of ${t}
 * Errors: none
 */
int64_t timed_next_at_ns(const struct timed *t, int64_t now_ns);

#endif
