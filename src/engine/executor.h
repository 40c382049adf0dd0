/*
 * engine/executor: thread pool for blocking or slow work, such as DNS lookups.
 *
 * Threads start on demand and share one FIFO queue. A task owns its memory, and returns its result
 * in a task for a loop.
 *
 * note: shares. A strand whose task is refused waits in line. When half of max_pending_tasks is
 * free, the first in line gets a share: max_pending_tasks divided by the number of strands that
 * wait or have a share. While others wait or have unused shares, a strand may submit only its
 * share, and then waits in line again. At most half of max_pending_tasks is kept for unused shares,
 * so a hung loop does not block other loops.
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
    const char *name; /* threads are called NAME-POOL-1, NAME-POOL-2 ... */
    unsigned pool;
    unsigned threads;           /* at least 1 */
    unsigned max_pending_tasks; /* less than 16 counts as 16 */
};

struct executor_stats {
    unsigned threads; /* started so far */
    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected;
    uint64_t tasks_pending; /* accepted and not begun */
    int64_t oldest_ns;      /* age of the oldest pending task */
    int64_t longest_ns;     /* duration of the longest finished task */
    const char *longest_name;
    const char *running_name; /* task that has been running longest; NULL: no task */
    int64_t running_ns;
};

/*
 * A strand that waits for capacity of the executor (note: shares). run() of `timer` is called when
 * it gets its share, drop() if the loop has ended.
 */
struct executor_waiter {
    struct timer timer; /* the caller initializes it, and sets all other fields to 0 */
    struct loop *loop;
    unsigned n_places; /* unused part of the strand's share, in tasks; under the executor's lock */
    bool contends;     /* the strand waits, or has a share; under the lock */
    bool gone;         /* the strand was destroyed and gets no share; under the lock */
};

/*
 * executor_create(out, conf):
 * Create an executor without threads.
 *
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM
 */
int executor_create(struct executor **out, const struct executor_conf *conf) NODISCARD;

/*
 * executor_submit(e, t):
 * Queue ${t}.
 *
 * Owns:   on 0 the executor runs or drops ${t}; on error the caller keeps it
 * Errors: 0; -EAGAIN (max_pending_tasks reached, or no thread could start); -ESHUTDOWN
 */
int executor_submit(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_submit_more(e, t):
 * Submit a further task of the same work, even above max_pending_tasks and during the drain.
 *
 * Thread: a task of ${e}
 * Owns:   as executor_submit()
 * Errors: 0; -ESHUTDOWN (drain time over)
 */
int executor_submit_more(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_schedule(e, t, delay_ns):
 * Run the idle ${t} once, ${delay_ns} from now or later: when due, it queues behind the queued
 * tasks. Timers do not count as pending tasks.
 *
 * Owns:   ${t} must live until run or dropped
 * Errors: 0; -EAGAIN (no thread could start); -ESHUTDOWN
 */
int executor_schedule(struct executor *e, struct timer *t, int64_t delay_ns) NODISCARD;

/*
 * executor_await_capacity(e, w, loop):
 * After -EAGAIN, wait for a share (note: shares). ${w} runs on ${loop} when it gets its share, when
 * the executor stops, or 10 ms after no thread could start.
 *
 * Thread: loop of ${loop}
 * Owns:   the executor uses ${w} and ${loop} until ${w} was run or dropped
 */
void executor_await_capacity(struct executor *e, struct executor_waiter *w, struct loop *loop);

/*
 * executor_return_share(e, w):
 * Give up the unused share of ${w}.
 *
 * Thread: loop of ${w}, or any after the loop has ended
 */
void executor_return_share(struct executor *e, struct executor_waiter *w);

/*
 * executor_stop(e, timeout_ns):
 * Refuse new tasks, drop timers, run queued tasks for ${timeout_ns} >= 0, then drop the rest. Does
 * not wait; later calls have no effect.
 *
 * Thread: any but a task of ${e}
 */
void executor_stop(struct executor *e, int64_t timeout_ns);

/*
 * executor_join(e, timeout_ns):
 * After executor_stop(): wait until all threads have ended (CLOCK_NEVER: for ever, <= 0: do not
 * wait).
 *
 * Thread: any but loops and tasks of ${e}, one at a time
 * Errors: 0; -ETIMEDOUT (a task still runs: do not destroy ${e})
 */
int executor_join(struct executor *e, int64_t timeout_ns) NODISCARD;

/*
 * executor_destroy(e):
 * Free ${e}, when it has no strands and its threads were joined. NULL is ignored.
 *
 * Thread: any but a task of ${e}
 */
void executor_destroy(struct executor *e);

/* executor_stats(e, out): copy the counters to ${out}. */
void executor_stats(struct executor *e, struct executor_stats *out);

#endif
