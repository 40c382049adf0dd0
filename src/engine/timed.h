/*
 * engine/timed: a task with an instant, once or again and again.
 *
 *   IDLE --schedule_add--> WAITING --schedule_take_due--> IDLE, or DUE in the loop's list --run--> IDLE
 */
#ifndef ENGINE_TIMED_H
#define ENGINE_TIMED_H

#include <stdint.h>

#include "base/list.h"
#include "engine/task.h"

enum timed_state { TIMED_IDLE, TIMED_WAITING, TIMED_DUE };

struct timed {
    struct task task;
    int64_t at_ns;
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
 * timed_next_at_ns(t, now_ns):
 * When a periodic ${t} that has just run is due again: fixed rate counts from its last instant, fixed delay
 * from ${now_ns}.
 *
 * Thread: owner of ${t}
 * Errors: none
 */
int64_t timed_next_at_ns(const struct timed *t, int64_t now_ns);

#endif
