/*
 * engine/strand: serial queue: tasks that run one after the other on an executor.
 *
 * Keeps the order of one connection's tasks without reserving a thread, so a slow connection does
 * not block others. A strand takes one place in the executor's queue, requeued after SERIAL_BATCH
 * tasks. Each task counts towards the executor's bound.
 *
 * When full, strand_submit() refuses; the producer pauses its channel and is called on its loop
 * when it may go on.
 */
#ifndef ENGINE_STRAND_H
#define ENGINE_STRAND_H

#include "engine/executor.h"

/*
 * Tasks per turn. (Netty's NonStickyEventExecutorGroup: 1,024; a channel's reads are longer than
 * its tasks.)
 */
#define SERIAL_BATCH 64

struct strand;

/* Executor and loop must outlive the strand; the loop also until the executor was stopped. */
struct strand_conf {
    struct executor *executor;
    struct loop *loop;          /* the producer's */
    unsigned max_pending_tasks; /* of this strand, at least 1 */
    /*
     * After a refusal: half of the full bound is free again, or the executor has stopped. Called on
     * ${loop}, unless it ends first; may submit again or destroy the strand.
     */
    void (*room)(void *cookie);
    void *cookie;
};

/*
 * strand_create(out, conf):
 * Create an empty strand on conf->executor.
 *
 * Thread: loop of conf->loop
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM
 */
int strand_create(struct strand **out, const struct strand_conf *conf) NODISCARD;

/*
 * strand_submit(s, t):
 * Run ${t} after the tasks submitted before.
 *
 * Thread: loop of ${s}
 * Owns:   on 0 the strand runs or drops ${t}; on error the caller keeps it
 * Errors: 0; -EAGAIN (strand or executor full: conf->room will be called once); -ESHUTDOWN
 */
int strand_submit(struct strand *s, struct task *t) NODISCARD;

/*
 * strand_destroy(s):
 * Drop tasks that have not begun; no more calls of conf->room. ${s} is freed when its running task
 * ends.
 *
 * Thread: loop of ${s}, or after the loop has ended
 */
void strand_destroy(struct strand *s);

#endif
