/*
 * engine/strand: serial queue: tasks that run one after the other on an executor.
 *
 * Keeps one connection's tasks in order. Takes one place in the executor's queue; queues again
 * after STRAND_BATCH tasks. Each task counts towards the executor's bound.
 */
#ifndef ENGINE_STRAND_H
#define ENGINE_STRAND_H

#include "engine/executor.h"

/* Tasks per turn. (Netty's NonStickyEventExecutorGroup: 1,024, but these tasks are longer.) */
#define STRAND_BATCH 64

struct strand;

/* Must not outlive the executor or the loop; destroy the loop only after executor_stop(). */
struct strand_conf {
    struct executor *executor;
    struct loop *loop;          /* the producer's */
    unsigned max_pending_tasks; /* of this strand, at least 1 */
    /*
     * After -EAGAIN: half of the full bound is free, or the executor has stopped. Called on
     * ${loop}, if that lives; may submit or destroy the strand.
     */
    void (*room)(void *cookie);
    void *cookie;
};

/*
 * strand_create(out, conf):
 * Create an empty strand.
 *
 * Thread: loop of conf->loop
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM
 */
int strand_create(struct strand **out, const struct strand_conf *conf) NODISCARD;

/*
 * strand_submit(s, t):
 * Run ${t} after earlier tasks.
 *
 * Thread: loop of ${s}
 * Owns:   as executor_submit()
 * Errors: 0; -EAGAIN (strand or executor full: pause, conf->room will be called once); -ESHUTDOWN
 */
int strand_submit(struct strand *s, struct task *t) NODISCARD;

/*
 * strand_destroy(s):
 * Drop tasks that have not begun, and call conf->room no more; the running task's end frees ${s}.
 *
 * Thread: loop of ${s}, or after its end
 */
void strand_destroy(struct strand *s);

#endif
