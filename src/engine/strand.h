/*
 * engine/strand: tasks that run one after the other on an executor, whichever thread takes them.
 *
 * One for each connection (or whatever must keep its order): its tasks never run at the same time
 * and keep the order they were submitted in, but no thread is reserved for it, so a slow connection
 * holds up nobody else. It takes one place in the executor's queue however many tasks it has, and
 * gives it up after SERIAL_BATCH tasks, so that others have their turn. Each of its tasks counts as
 * one of the executor's, whose bound is the bound on all work that waits.
 *
 * Full is a state and not a loss: strand_submit() refuses, the producer stops producing (pauses its
 * channel), and is told on its loop when it may go on.
 */
#ifndef ENGINE_STRAND_H
#define ENGINE_STRAND_H

#include "engine/executor.h"

/*
 * Tasks in one go (Netty's NonStickyEventExecutorGroup takes 1,024; a channel's reads are longer
 * than its tasks).
 */
#define SERIAL_BATCH 64

struct strand;

/*
 * The executor and the loop must not be destroyed before the serial, nor the loop before the
 * executor was stopped.
 */
struct strand_conf {
    struct executor *executor;
    struct loop *loop;          /* where the producer lives */
    unsigned max_pending_tasks; /* of this serial, at least 1 */
    /*
     * After a refusal: half of what was full is free again, or never will be (stopped). Called on
     * ${loop}, unless that ends first; may submit again, and may destroy the serial.
     */
    void (*room)(void *cookie);
    void *cookie;
};

/*
 * strand_create(out, conf):
 * An order of its own on conf->executor.
 *
 * Thread: loop of conf->loop
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM
 */
int strand_create(struct strand **out, const struct strand_conf *conf) NODISCARD;

/*
 * strand_submit(s, t):
 * Have ${t} run after those submitted before it.
 *
 * Thread: loop of ${s}
 * Owns:   on 0 the serial owns ${t}, and runs or drops it; on error the caller still does
 * Errors: 0; -EAGAIN (full, here or in the executor: conf->room will be called once); -ESHUTDOWN
 */
int strand_submit(struct strand *s, struct task *t) NODISCARD;

/*
 * strand_destroy(s):
 * Drop what has not begun, let what runs come to its end, and free ${s} then; conf->room is not
 * called any more.
 *
 * Thread: loop of ${s}, or after the loop has ended
 * Owns:   ${s} is gone for the caller; its last thread frees it
 */
void strand_destroy(struct strand *s);

#endif
