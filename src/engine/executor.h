/*
 * engine/executor: thread pool for blocking or slow work, such as DNS lookups.
 *
 * Threads start on demand and share one FIFO queue: a slow task delays only its own thread. Tasks
 * own what they touch, and answer by a task for a loop.
 *
 * note: pool. One lock guards the queue; it is not held while tasks run or are dropped.
 *
 * note: shares. Refused producers (strands) wait in order; each in turn gets an equal share of all
 * places. While others wait or have unused shares, a strand has only its own; after that it waits
 * behind them. At most half of max_pending_tasks is reserved, so a hung loop does not block the
 * others.
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
    unsigned max_pending_tasks; /* at least 16; fewer count as 16 */
};

struct executor_stats {
    unsigned threads; /* started so far */
    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected;
    uint64_t tasks_pending; /* accepted, not begun */
    int64_t oldest_ns;      /* of the oldest waiting task, also in running strands */
    int64_t longest_ns;     /* longest finished task */
    const char *longest_name;
    const char *running_name; /* longest-running task now; NULL: none */
    int64_t running_ns;
};

/* Waits for room: run() when there is some, drop() when its loop has ended. See note: shares. */
struct executor_waiter {
    struct timer timer; /* initialised by the caller with its type; all else is 0 */
    struct loop *loop;
    unsigned n_places; /* of its share, unused; under the executor's lock */
    bool contends;     /* refused, with tasks left; under the lock */
    bool gone;         /* wants no share; under the lock */
};

/*
 * executor_create(out, conf):
 * Create an executor.
 *
 * Thread: any
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM
 */
int executor_create(struct executor **out, const struct executor_conf *conf) NODISCARD;

/*
 * executor_submit(e, t):
 * Queue ${t}.
 *
 * Thread: any
 * Owns:   on 0 the executor runs or drops ${t}; on error the caller keeps it
 * Errors: 0; -EAGAIN (max_pending_tasks reached, or no thread could start); -ESHUTDOWN
 */
int executor_submit(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_submit_more(e, t):
 * Submit a task's continuation: without bound, and also while draining.
 *
 * Thread: a task of ${e}
 * Owns:   as executor_submit()
 * Errors: 0; -ESHUTDOWN (drain time over)
 */
int executor_submit_more(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_schedule(e, t, delay_ns):
 * Run the idle ${t} once after ${delay_ns}, never early. A due timer queues behind queued tasks.
 * Timers are not pending tasks; stopping drops them.
 *
 * Thread: any
 * Owns:   ${t} must live until run or dropped
 * Errors: 0; -EAGAIN (no thread could start); -ESHUTDOWN
 */
int executor_schedule(struct executor *e, struct timer *t, int64_t delay_ns) NODISCARD;

/*
 * executor_await_room(e, w, loop):
 * After -EAGAIN: run ${w} on ${loop} (control queue) on its turn, when at most half of
 * max_pending_tasks wait, or when the executor stops; without a thread, after 10 ms.
 *
 * Thread: loop of ${loop}
 * Owns:   the executor uses ${w} and ${loop} until ${w} was run or dropped
 */
void executor_await_room(struct executor *e, struct executor_waiter *w, struct loop *loop);

/*
 * executor_return_share(e, w):
 * Return the unused share of ${w}, when it has no more tasks.
 *
 * Thread: loop of ${w}, or after its end
 */
void executor_return_share(struct executor *e, struct executor_waiter *w);

/*
 * executor_stop(e, timeout_ns):
 * Refuse tasks, drop timers, drain the queue for ${timeout_ns} >= 0, then drop the rest: at once if
 * 0, in executor_join(), or after a task that ends later. Does not wait; the first call decides.
 *
 * Thread: any but a task of ${e}
 */
void executor_stop(struct executor *e, int64_t timeout_ns);

/*
 * executor_join(e, timeout_ns):
 * Wait for all threads to end, after executor_stop(); CLOCK_NEVER: for ever, <= 0: only look.
 *
 * Thread: neither a loop nor a task of ${e}; one at a time
 * Errors: 0; -ETIMEDOUT (a task still runs; must not be destroyed)
 */
int executor_join(struct executor *e, int64_t timeout_ns) NODISCARD;

/*
 * executor_destroy(e):
 * Free ${e} (or NULL), joined or without threads, and without strands.
 *
 * Thread: any but a task of ${e}
 */
void executor_destroy(struct executor *e);

/*
 * executor_stats(e, out):
 * Read the counters.
 *
 * Thread: any
 */
void executor_stats(struct executor *e, struct executor_stats *out);

#endif
