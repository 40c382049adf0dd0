/*
 * engine/timer: a task that runs at an instant, once or periodically.
 *
 * A silence timer ends something because no bytes came. It is due when all input up to its instant
 * was read: see engine/heard.h.
 *
 *   IDLE --timer_heap_add--> WAITING --timer_heap_fetch_due--> DUE --run, timer_heap_remove--> IDLE
 *     \--loop_resume-- SUSPENDED <--loop_suspend--/---------------/
 *
 * note: claim. Another thread may withdraw a submitted timer just when the loop runs it: the thread
 * that changes `claim` wins. Only the loop changes `state`.
 *
 *   FREE --loop_submit_after--> COMING (task queue) --arrives--> HELD --loop runs or drops--> FREE
 *                                  \--loop_withdraw--> WITHDRAWN <--loop_withdraw--/
 *                                                         \--loop drops--> FREE
 *
 * Acquire and release: the winner sees what the other thread wrote.
 */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "engine/task.h"

enum timer_state { TIMER_IDLE, TIMER_WAITING, TIMER_DUE, TIMER_SUSPENDED };
enum timer_claim { TIMER_FREE, TIMER_COMING, TIMER_HELD, TIMER_WITHDRAWN };

struct timer {
    struct task task;
    int64_t at_ns;     /* when the timer is due; a fixed rate adds its period to this */
    int64_t rank_ns;   /* WAITING: key in the heap; see timer_heap_add_again() */
    int64_t period_ns; /* 0: once; > 0: fixed rate; < 0: fixed delay */
    uint64_t order;    /* WAITING: insertion order; DUE: position among the loop's tasks */
    union {
        struct {
            struct timer *child;
            struct timer *next;
            struct timer *prev; /* left sibling, or parent of a first child */
        } heap;
        struct list due;
    } u;
    enum timer_state state : 8;
    bool silence;
    atomic_int claim;
    const struct task_type
        *own_type; /* the caller's type, while task.type is internal; unused if `claim` is FREE */
};

/* The object with the timer ${member}, for run() and drop() of its task. */
#define TIMER_OWNER(t, type, member) CONTAINER_OF(t, type, member.task)

/* timer_init(t, type): initialize an idle timer. Thread: owner */
static inline void timer_init(struct timer *t, const struct task_type *type)
{
    t->task.type = type;
    t->at_ns = 0;
    t->rank_ns = 0;
    t->period_ns = 0;
    t->order = 0;
    t->state = TIMER_IDLE;
    t->silence = false;
    atomic_init(&t->claim, TIMER_FREE);
    t->own_type = NULL;
}

/*
 * timer_init_silence(t, type):
 * Initialize an idle silence timer. run() compares deadlines with loop_heard_ns(), not with the
 * clock.
 *
 * Thread: owner
 */
static inline void timer_init_silence(struct timer *t, const struct task_type *type)
{
    timer_init(t, type);
    t->silence = true;
}

/*
 * timer_move_claim(t, from, to):
 * Change `claim` from ${from} to ${to}; false if it is not ${from} (note: claim).
 */
static inline bool timer_move_claim(struct timer *t, enum timer_claim from, enum timer_claim to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong_explicit(&t->claim, &expected, (int)to,
                                                   memory_order_acq_rel, memory_order_acquire);
}

/*
 * timer_next_at_ns(t, now_ns):
 * The next instant of a periodic ${t} that has just run.
 *
 * Thread: owner
 */
static inline int64_t timer_next_at_ns(const struct timer *t, int64_t now_ns)
{
    if (t->period_ns > 0)
        return clock_add_ns(t->at_ns, t->period_ns);
    return clock_add_ns(now_ns, -t->period_ns);
}

#endif
