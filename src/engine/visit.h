/*
 * engine/visit: visits the loops of a group, each in bounded steps.
 *
 *   visit_begin() -> each loop that has a thread: step(), step() ... VISIT_OVER -> done(), once
 *
 * A loop that refuses a step may still run other tasks: the visit waits for its end. Such a loop,
 * and one that drops a step, is lost, and counts as visited.
 */
#ifndef ENGINE_VISIT_H
#define ENGINE_VISIT_H

#include "base/ref.h"
#include "engine/loop_group.h"
#include "engine/promise.h"
#include "engine/timer.h"

/* Results of step(), besides nanoseconds until the next step. */
#define VISIT_OVER      (-1)
#define VISIT_NEXT_TURN 0

/* The `task` of struct visit_ops; ${name_} is for logs. */
#define VISIT_TASK(name_)                                     \
    {                                                         \
        .name = (name_), .run = visit_run, .drop = visit_drop \
    }

struct visit_ops {
    struct task_type task;
    enum loop_queue first; /* queue of the first step */
    bool is_lazy;          /* the first step does not wake its loop */
    /* step() must meet each object of all loops: hold off moves between them; see move_gate.h. */
    bool is_exact;
    /* On loop ${i}: do some work. NULL: VISIT_OVER. */
    int64_t (*step)(void *cookie, unsigned i);
    /* Loop ${i} is lost; on its thread, or any when it has ended. NULL: nothing to do. */
    void (*lost)(void *cookie, unsigned i);
    /*
     * All loops are visited or lost; on any thread, perhaps inside visit_begin(). May free the
     * visit or begin it again. NULL: nothing to do.
     */
    void (*done)(void *cookie);
};

/* One of the loops visited at the same time. */
struct visit_part {
    struct timer timer;
    struct promise_listener ended;
    struct visit *visit;
    unsigned i; /* number of the loop */
};

struct visit {
    const struct visit_ops *ops;
    void *cookie;
    struct visit_part *parts;
    unsigned n_parts;
    struct loop_group *group;
    unsigned n_loops;
    struct ref left; /* parts under way, plus one for visit_begin() */
};

/*
 * visit_init(v, ops, cookie, parts, n_parts):
 * Initialize a visit that visits ${n_parts} loops at the same time.
 *
 * Thread: owner
 * Owns:   ${ops}, ${v} and ${parts} must live until done()
 */
void visit_init(struct visit *v, const struct visit_ops *ops, void *cookie,
                struct visit_part *parts, unsigned n_parts);

/*
 * visit_begin(v, group, n) / visit_begin_one(v, loop):
 * Visit the first ${n} loops of ${group} / visit ${loop}, as number 0. Loops without a thread are
 * left out. If ${n} is more than the parts, a part visits one loop after the other.
 *
 * Thread: any, while ${v} is not under way
 */
void visit_begin(struct visit *v, struct loop_group *group, unsigned n);
void visit_begin_one(struct visit *v, struct loop *loop);

/* visit_run(t) / visit_drop(t): for VISIT_TASK() only. Thread: as run() and drop() of a task */
void visit_run(struct task *t);
void visit_drop(struct task *t);

#endif
