/*
 * engine/loop_internal: internals of the loop, also for turn*.c and watchdog.c.
 */
#ifndef ENGINE_LOOP_INTERNAL_H
#define ENGINE_LOOP_INTERNAL_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/backend.h"
#include "engine/budget.h"
#include "engine/gate.h"
#include "engine/heard.h"
#include "engine/io_tune.h"
#include "engine/loop.h"
#include "engine/promise.h"
#include "engine/queue.h"
#include "engine/task_list.h"
#include "engine/telemetry.h"
#include "engine/wakeup.h"

#define LOOP_QUEUES     3
#define LOOP_NAME_BYTES 16

struct loop {
    /* Only the loop's thread accesses these. */
    struct backend backend;
    int64_t now_ns;               /* when this turn's last poll ended */
    int64_t turn_at_ns;           /* when this turn's first poll ended */
    int64_t clock_at_ns;          /* last clock reading */
    const struct task_type *type; /* type of the tasks run since clock_at_ns; NULL: none has run */
    int64_t sleep_at_ns;          /* when this turn's first poll began */
    int64_t sleep_until_ns;       /* deadline of this turn's first poll; 0: it did not block */
    int64_t io_ns;
    struct budget budget; /* of step 4 */
    struct heard heard;
    unsigned polled;    /* watchers that the last poll found ready */
    unsigned io_events; /* callbacks of this turn, except of `wakeup_io` and `timer` */
    bool ran;           /* a callback, task or timer ran */
    bool woken;         /* the wake-up descriptor was readable */
    bool wakeup_lost;   /* libev could not watch the wake-up descriptor */
    struct task_list reap;
    uint64_t tasks_taken;                  /* tasks taken from LOOP_TASKS so far */
    int64_t last_stamp_at_ns[LOOP_QUEUES]; /* when the last timestamped task was submitted */
    struct timer_heap schedule;
    struct timer *periodic; /* periodic timer now running; NULL: none, or cancelled */
    struct ev_io wakeup_io;
    struct ev_timer timer;
    int64_t timer_at_ns; /* expiry of `timer`; CLOCK_NEVER: not armed */
    int64_t quantum_ns;
    bool yields;
    int64_t stall_threshold_ns;
    struct task_list at_stop;
    int64_t stop_began_at_ns; /* 0: shutdown has not begun */
    int64_t last_task_at_ns;
    struct telemetry telemetry;
    struct io_tune io_tune; /* used while `io_ratio` is BUDGET_RATIO_AUTO */

    /* Shared. */
    alignas(CACHE_LINE_BYTES) struct wakeup wakeup; /* read by each submitter, seldom written */
    struct queue queues[LOOP_QUEUES];
    /*
     * When a queue's oldest task was submitted, or slightly earlier. Written by the loop, and by a
     * submitter that finds the queue empty; the gate orders both writes.
     */
    _Atomic int64_t oldest_at_ns[LOOP_QUEUES];
    alignas(CACHE_LINE_BYTES) unsigned max_pending_tasks;
    struct loop_backoff backoff;
    atomic_uint io_ratio;    /* as set; relaxed */
    _Atomic int64_t goal_ns; /* relaxed; see struct budget_conf */
    _Atomic uint64_t tasks_rejected;
    _Atomic uint64_t tasks_lazy; /* submitted by other threads, without wake-up */
    _Atomic int state;
    atomic_uint load;
    /*
     * note: start. The lock serializes starting and stopping of a loop without a thread. The state
     * becomes LOOP_STARTED after the thread exists, so a failed start needs no undo.
     *
     * note: end. Once the loop has ended, another thread may destroy it. So loop_stop() wakes the
     * loop under the lock, and loop_destroy() takes the lock: no stop is under way then. Without a
     * thread, the promise is the last that loop_stop() touches (note: last touch).
     */
    pthread_mutex_t start_lock;
    _Atomic int64_t start_failed_at_ns; /* last failed start; 0: never; relaxed */
    int64_t start_trouble_at_ns;
    unsigned start_failures;
    pthread_t thread;
    bool joinable;
    struct promise terminated;
    _Atomic int64_t stop_quiet_ns;
    _Atomic int64_t stop_timeout_ns;
    struct affinity affinity;
    void *cookie;
    char name[LOOP_NAME_BYTES];
};

/* The calling thread's loop, or NULL; saves calls of loop_current(). */
extern _Thread_local struct loop *loop_of_this_thread;

/*
 * loop_end_period(loop, t):
 * If the periodic ${t} is running, do not schedule it again after run(), which may free ${t} or
 * submit it elsewhere.
 *
 * Thread: loop
 */
static inline void loop_end_period(struct loop *loop, const struct timer *t)
{
    if (loop->periodic == t)
        loop->periodic = NULL;
}

/*
 * loop_start(loop):
 * Create the thread if there is none; see note: start.
 *
 * Errors: 0; -EAGAIN
 */
int loop_start(struct loop *loop) NODISCARD;

/*
 * loop_set_state(loop, state):
 * Store ${state}.
 *
 * Thread: loop, or the thread that stops a loop without thread
 */
void loop_set_state(struct loop *loop, enum loop_state state);

/*
 * loop_refuse_and_drop(loop):
 * Close all gates, and drop all queued tasks.
 *
 * Thread: as loop_set_state()
 */
void loop_refuse_and_drop(struct loop *loop);

/*
 * turn_init(loop) / turn_run(loop):
 * Start the loop's watchers / run one turn; false after the last.
 *
 * Thread: turn_init(): any, before other threads use ${loop}; turn_run(): loop
 */
void turn_init(struct loop *loop);
bool turn_run(struct loop *loop);

/* turn_has_work(loop): is a task queued (also for step 6), or a timer due? Thread: loop */
bool turn_has_work(const struct loop *loop);

/* turn_queued(loop): return the number of tasks for step 4, including due timers. Thread: loop */
uint64_t turn_queued(const struct loop *loop);

/* turn_reap(loop): run step 6. Thread: loop */
void turn_reap(struct loop *loop);

/*
 * turn_poll_init(loop) / turn_poll_run(loop) / turn_poll_again(loop) / turn_poll_count(loop) /
 * turn_poll_judge(loop):
 * Start the watchers / run steps 1 and 2 / repeat them without blocking / count I/O in the
 * telemetry / judge the poll by backend_judge().
 *
 * Thread: loop; turn_poll_init(): as turn_init()
 */
void turn_poll_init(struct loop *loop);
void turn_poll_run(struct loop *loop);
void turn_poll_again(struct loop *loop);
void turn_poll_count(struct loop *loop);
void turn_poll_judge(struct loop *loop);

/* turn_stop_run(loop): run step 7; false when the loop must end. Thread: loop */
bool turn_stop_run(struct loop *loop);

/* turn_stop_requested(loop): is shutdown requested, but not begun? Thread: loop */
bool turn_stop_requested(const struct loop *loop);

/*
 * turn_stop_next_at_ns(loop):
 * Return when to run step 7 again; CLOCK_NEVER: no shutdown has begun.
 *
 * Thread: loop
 */
int64_t turn_stop_next_at_ns(const struct loop *loop);

#endif
