/*
 * engine/strand: serial queue: tasks that run one after the other on an executor.
 *
 * Keeps the tasks of one connection in order. A strand is one entry of the executor's queue, and
 * queues again after STRAND_BATCH tasks. Each task counts towards the executor's max_pending_tasks.
 */
#ifndef ENGINE_STRAND_H
#define ENGINE_STRAND_H

#include "engine/executor.h"

/* Tasks that a strand runs before it queues again. */
#define STRAND_BATCH 64

struct strand;

/* Executor and loop outlive the strand; destroy the loop after executor_stop(). */
struct strand_conf {
    struct executor *executor;
    struct loop *loop;          /* all submits come from its thread */
    unsigned max_pending_tasks; /* of this strand, at least 1 */
    /*
     * Called after -EAGAIN, on ${loop}, when half of the limit that was reached is free, or when
     * the executor has stopped; not if the loop has ended. room() may submit, or destroy the
     * strand.
     */
    void (*room)(void *cookie);
    void *cookie;
};

/*
 * strand_create(out, conf):
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
 * Thread: loop
 * Owns:   as executor_submit()
 * Errors: 0; -EAGAIN (strand or executor full: pause, conf->room will be called once); -ESHUTDOWN
 */
int strand_submit(struct strand *s, struct task *t) NODISCARD;

/*
 * strand_destroy(s):
 * Drop the tasks that have not begun; conf->room will not be called. ${s} is freed after its
 * running task.
 *
 * Thread: loop of ${s}, or any after its end
 */
void strand_destroy(struct strand *s);

#endif
