/*
 * engine/strand: serial queue: tasks that run one after the other on an executor.
 *
 * Keeps the tasks of one connection in order. A strand is one entry of the executor's queue, and
 * queues again after STRAND_BATCH tasks. Each task counts towards the executor's max_pending_tasks.
 */
#ifndef ENGINE_STRAND_H
#define ENGINE_STRAND_H

#include "engine/executor.h"

#define STRAND_BATCH 64

struct strand;

/*
 * Configuration. Executor and loop must outlive the strand; destroy the loop after executor_stop().
 */
struct strand_conf {
    struct executor *executor;
    struct loop *loop;          /* all submits come from its thread */
    unsigned max_pending_tasks; /* limit of this strand, at least 1 */
    /*
     * Called on ${loop} after -EAGAIN: when half of the limit that was reached is free, when the
     * executor stops, or 10 ms after no thread could start. Not called if the loop has ended.
     * on_capacity() may submit, or destroy the strand.
     */
    void (*on_capacity)(void *cookie);
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
 * Run ${t} after the earlier tasks of ${s}.
 *
 * Thread: loop
 * Owns:   as executor_submit()
 * Errors: 0; -EAGAIN (full, or no thread could start: wait for conf->on_capacity()); -ESHUTDOWN
 */
int strand_submit(struct strand *s, struct task *t) NODISCARD;

/*
 * strand_destroy(s):
 * Drop the tasks that have not begun; conf->on_capacity will not be called. ${s} is freed after its
 * running task, if any.
 *
 * Thread: loop of ${s}, or any after the loop has ended
 */
void strand_destroy(struct strand *s);

#endif
