/*
 * engine/executor: threads for work that blocks or takes long, such as asking a name server.
 *
 * The same tasks as a loop runs, without I/O: a fixed number of threads, each started by need, take
 * from one queue in order, so that a slow task holds up its own thread only. Unlike a loop an
 * executor owns no objects: what its tasks touch they must own, and they answer by submitting a
 * task to a loop. What was accepted and cannot be run any more is dropped on the thread that stops
 * or joins the executor, or on one of its own.
 *
 * note: pool. One queue for many consumers, so it is guarded by a lock; nobody holds it while a
 * task runs or is dropped, and what it guards is short. Submitting from a loop therefore waits for
 * a few instructions, or for the start of a thread, never for a task.
 *
 * note: shares. Producers that were refused (serials) wait in order, and each gets an equal share
 * of all places as it is told. While others wait, or have not used their shares yet, a serial has
 * only its own share: with that used up it is refused and waits behind the others. So a producer
 * that could fill the executor alone gets its turn, and no more. Shares are kept free up to half of
 * max_pending_tasks: a loop that hangs with its share does not stop the others.
 */
#ifndef ENGINE_EXECUTOR_H
#define ENGINE_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/task.h"
#include "engine/timer.h"

struct executor;
struct loop;

struct executor_conf {
    const char *name; /* threads are called NAME-POOL-1, NAME-POOL-2 ... in the order they start */
    unsigned pool;
    unsigned threads;           /* at least 1 */
    unsigned max_pending_tasks; /* at least 16; a smaller number counts as 16 */
};

struct executor_stats {
    unsigned threads; /* started so far */
    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected;
    uint64_t tasks_pending; /* accepted and not begun */
    int64_t oldest_ns;      /* how long the first in the queue, or behind a serial's task, waits */
    int64_t longest_ns;     /* the longest task that has ended */
    const char *longest_name;
    const char *running_name; /* of the task that has been running longest now; NULL: none runs */
    int64_t running_ns;
};

/*
 * After executor_await_room() it is told once: run() means that there is room, drop() that its loop
 * has ended. See note: shares.
 */
struct executor_waiter {
    struct timer timer; /* initialised by the caller, with a type of its own; all else is 0 */
    struct loop *loop;
    unsigned n_places; /* under the executor's lock: of its share, not used yet */
    bool contends;     /* likewise: it was refused, and still has tasks to submit */
    bool gone;         /* likewise: it wants no share any more */
};

/*
 * executor_create(out, conf):
 * An executor with no thread yet. Its threads will run on the processors of the main thread.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM
 */
int executor_create(struct executor **out, const struct executor_conf *conf) NODISCARD;

/*
 * executor_submit(e, t):
 * Have ${t} run on one of the threads, after those submitted before it have begun.
 *
 * Thread: any
 * Owns:   on 0 the executor owns ${t}, and runs or drops it; on error the caller still does
 * Errors: 0; -EAGAIN (max_pending_tasks wait, or no thread could be started); -ESHUTDOWN (stopped)
 */
int executor_submit(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_submit_more(e, t):
 * As executor_submit(), but never refused for lack of room, and not yet while a stopped executor
 * still runs what is queued: for a task that continues one that was accepted.
 *
 * Thread: a task of ${e}
 * Owns:   as executor_submit()
 * Errors: 0; -ESHUTDOWN (the time that executor_stop() gave is over)
 */
int executor_submit_more(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_schedule(e, t, delay_ns) / executor_cancel(e, t):
 * Run the idle ${t} on one of the threads after ${delay_ns}, never early, even if tasks always
 * wait; make it idle again, if it has not begun. When it is due it takes its place behind what is
 * queued then. A timer that waits is dropped when the executor stops. Timers do not count as
 * pending.
 *
 * Thread: any
 * Owns:   nothing; ${t} must live until it has run, was dropped or cancelled
 * Units:  ns; negative counts as 0
 * Errors: 0; -EAGAIN (no thread could be started); -ESHUTDOWN. Cancel: was it in time?
 */
int executor_schedule(struct executor *e, struct timer *t, int64_t delay_ns) NODISCARD;
bool executor_cancel(struct executor *e, struct timer *t);

/*
 * executor_await_room(e, w, loop):
 * After -EAGAIN: run ${w} on ${loop} (control lane) as soon as no more than half of
 * max_pending_tasks wait and its turn has come, or the executor stops. Waiters are told in the
 * order they came, as many together as there is room for. Without a thread nothing would tell them:
 * ${w} runs after 10 ms.
 *
 * Thread: loop of ${loop}
 * Owns:   the executor has ${w}, and uses ${loop}, until ${w} was run or dropped
 */
void executor_await_room(struct executor *e, struct executor_waiter *w, struct loop *loop);

/*
 * executor_end_turn(e, w):
 * ${w} was told, and has submitted all it had: give back what is left of its share.
 *
 * Thread: loop of ${w}, or after that has ended
 */
void executor_end_turn(struct executor *e, struct executor_waiter *w);

/*
 * executor_stop(e, timeout_ns):
 * Refuse tasks from now on, drop the timers, run what is queued for ${timeout_ns}, then drop the
 * rest: executor_join() does, or the first thread whose task ends after that time. Returns without
 * waiting; the first call decides.
 *
 * Thread: any but a task of ${e}
 * Units:  ns, at least 0
 */
void executor_stop(struct executor *e, int64_t timeout_ns);

/*
 * executor_join(e, timeout_ns):
 * Wait until all threads have ended, after executor_stop(). A task that blocks cannot be cut: then
 * the executor cannot be destroyed.
 *
 * Thread: none that is a loop, nor a task of ${e}; one at a time
 * Units:  ns (CLOCK_NEVER: for ever; 0 or less: only look)
 * Errors: 0; -ETIMEDOUT (some task still runs: see executor_stats)
 */
int executor_join(struct executor *e, int64_t timeout_ns) NODISCARD;

/*
 * executor_destroy(e):
 * Free it; it was joined, or never had a thread, and no serial is left on it. NULL is allowed.
 *
 * Thread: any but a task of ${e}
 */
void executor_destroy(struct executor *e);

/*
 * executor_stats(e, out):
 * A reading of its counters.
 *
 * Thread: any
 */
void executor_stats(struct executor *e, struct executor_stats *out);

#endif
