/*
 * engine/executor: thread pool for blocking or slow work, such as DNS lookups.
 *
 * Runs the same tasks as a loop, without I/O. Threads start on demand and share one FIFO queue, so
 * a slow task delays its own thread only. An executor owns no objects: tasks own what they touch,
 * and answer by submitting a task to a loop. Accepted tasks that cannot run any more are dropped,
 * on the thread that stops or joins the executor or on one of its own.
 *
 * note: pool. One lock guards the queue and is never held while a task runs or is dropped.
 * Submitting waits for a few instructions or for a thread to start, never for a task.
 *
 * note: shares. Refused producers (strands) wait in order; when called, each gets an equal share of
 * all places. While others wait or have unused shares, a strand has only its own share; when that
 * is used up, it is refused and waits behind the others. So no producer can fill the executor
 * alone. At most half of max_pending_tasks is kept free for shares: a hung loop does not block the
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
    const char *name; /* threads are called NAME-POOL-1, NAME-POOL-2 ... in order of start */
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
    int64_t oldest_ns;  /* age of the oldest task that waits, in the queue or in a running strand */
    int64_t longest_ns; /* longest finished task */
    const char *longest_name;
    const char *running_name; /* longest-running task now; NULL: none */
    int64_t running_ns;
};

/*
 * Called once after executor_await_room(): run() when there is room, drop() when its loop has
 * ended. See note: shares.
 */
struct executor_waiter {
    struct timer timer; /* initialised by the caller with its own type; all else is 0 */
    struct loop *loop;
    unsigned n_places; /* unused places of its share; under the executor's lock */
    bool contends;     /* was refused, and has tasks left; under the lock */
    bool gone;         /* wants no share any more; under the lock */
};

/*
 * executor_create(out, conf):
 * Create an executor without threads; they will run on the main thread's processors.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM
 */
int executor_create(struct executor **out, const struct executor_conf *conf) NODISCARD;

/*
 * executor_submit(e, t):
 * Queue ${t} to run on one of the threads.
 *
 * Thread: any
 * Owns:   on 0 the executor runs or drops ${t}; on error the caller keeps it
 * Errors: 0; -EAGAIN (max_pending_tasks reached, or no thread could start); -ESHUTDOWN
 */
int executor_submit(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_submit_more(e, t):
 * Submit a continuation of an accepted task: as executor_submit(), but ignores max_pending_tasks
 * and is still accepted while a stopped executor drains.
 *
 * Thread: a task of ${e}
 * Errors: 0; -ESHUTDOWN (the drain time is over)
 */
int executor_submit_more(struct executor *e, struct task *t) NODISCARD;

/*
 * executor_schedule(e, t, delay_ns) / executor_cancel(e, t):
 * Run the idle ${t} once after ${delay_ns}, never early / make it idle again. A due timer queues
 * behind the tasks of that moment. Timers do not count as pending; stopping drops them.
 *
 * Thread: any
 * Owns:   nothing; ${t} must live until run, dropped or cancelled
 * Units:  ns; negative counts as 0
 * Errors: 0; -EAGAIN (no thread could start); -ESHUTDOWN. Cancel: false if too late
 */
int executor_schedule(struct executor *e, struct timer *t, int64_t delay_ns) NODISCARD;
bool executor_cancel(struct executor *e, struct timer *t);

/*
 * executor_await_room(e, w, loop):
 * After -EAGAIN: run ${w} on ${loop} (control queue) when at most half of max_pending_tasks wait
 * and its turn has come, or when the executor stops. Waiters are called in order. Without a thread,
 * ${w} runs after 10 ms.
 *
 * Thread: loop of ${loop}
 * Owns:   the executor uses ${w} and ${loop} until ${w} was run or dropped
 */
void executor_await_room(struct executor *e, struct executor_waiter *w, struct loop *loop);

/*
 * executor_end_turn(e, w):
 * Return the unused share of ${w}, which has submitted all its tasks.
 *
 * Thread: loop of ${w}, or after it has ended
 */
void executor_end_turn(struct executor *e, struct executor_waiter *w);

/*
 * executor_stop(e, timeout_ns):
 * Refuse tasks, drop timers, run the queue for ${timeout_ns}, then drop the rest: in
 * executor_join(), or on the first thread whose task ends later. Does not wait; the first call
 * decides.
 *
 * Thread: any but a task of ${e}
 * Units:  ns, at least 0
 */
void executor_stop(struct executor *e, int64_t timeout_ns);

/*
 * executor_join(e, timeout_ns):
 * Wait until all threads have ended, after executor_stop(). If a task blocks for ever, the executor
 * cannot be destroyed.
 *
 * Thread: neither a loop nor a task of ${e}; one at a time
 * Units:  ns (CLOCK_NEVER: for ever; 0 or less: only look)
 * Errors: 0; -ETIMEDOUT (a task still runs: see executor_stats)
 */
int executor_join(struct executor *e, int64_t timeout_ns) NODISCARD;

/*
 * executor_destroy(e):
 * Free ${e}, which was joined or never had a thread, and has no strand left. NULL is allowed.
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
