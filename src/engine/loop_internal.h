/*
 * engine/loop_internal: what the parts of a loop know of it: loop.c (life), loop_submit.c (what
 * other threads ask of it), loop_stats.c, and turn.c, turn_poll.c and turn_stop.c (the turn).
 * Private to them.
 */
#ifndef ENGINE_LOOP_INTERNAL_H
#define ENGINE_LOOP_INTERNAL_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/backend.h"
#include "engine/gate.h"
#include "engine/loop.h"
#include "engine/promise.h"
#include "engine/queue.h"
#include "engine/task_list.h"
#include "engine/telemetry.h"
#include "engine/wakeup.h"

#define LOOP_LANES      3
#define LOOP_NAME_BYTES 16 /* what the kernel keeps of a thread's name */

struct loop {
    /* The loop's own. */
    struct backend backend;
    int64_t now_ns;                       /* when this turn's last poll returned */
    int64_t turn_at_ns;                   /* when its first did */
    int64_t clock_at_ns;                  /* the last reading of the clock */
    const struct task_type *type;         /* of the tasks that ran since then; NULL: none did */
    int64_t sleep_at_ns;                  /* when this turn's poll began */
    int64_t sleep_until_ns;               /* until when it was to last; 0: it was not to block */
    int64_t io_ns;                        /* of this turn */
    unsigned io_events;                   /* of this turn, without wake-up and timer */
    bool ran;                             /* something ran in this turn */
    bool woken;                           /* the wake-up descriptor was readable in this turn */
    bool wakeup_lost;                     /* it could not be watched */
    struct task_list reap;                /* of this turn */
    uint64_t tasks_taken;                 /* from the task lane, ever */
    int64_t last_stamp_at_ns[LOOP_LANES]; /* of the last task taken that had a time */
    struct timer_heap schedule;
    struct timer *periodic; /* runs now, and is scheduled again; NULL: none, or it was cancelled */
    struct ev_io wakeup_io;
    struct ev_timer timer;
    int64_t timer_at_ns; /* what `timer` is armed for; CLOCK_NEVER: not armed */
    int64_t quantum_ns;
    int64_t stall_threshold_ns;
    struct task_list at_stop;
    int64_t stop_began_at_ns; /* 0: not yet */
    int64_t last_task_at_ns;
    struct telemetry telemetry;

    /* Shared. */
    alignas(CACHE_LINE_BYTES) struct wakeup wakeup; /* read by each submitter, written by few */
    struct queue lanes[LOOP_LANES];
    /*
     * Of each lane: when its oldest task was queued, or a little earlier. Written by who finds the
     * lane empty and by the loop as it takes tasks; the gate orders the two.
     */
    _Atomic int64_t oldest_at_ns[LOOP_LANES];
    alignas(CACHE_LINE_BYTES) unsigned max_pending_tasks;
    struct loop_backoff backoff;
    atomic_uint io_ratio; /* relaxed: a number on its own */
    _Atomic uint64_t tasks_rejected;
    _Atomic uint64_t tasks_lazy; /* of other threads: they wanted no wake-up */
    _Atomic int state;
    atomic_uint load;
    /*
     * note: start. Starting and stopping a loop without a thread exclude each other by this lock: a
     * loop is STARTED only when its thread exists, so a failed start has nothing to undo. Nobody
     * waits for it once the loop runs.
     */
    pthread_mutex_t start_lock;
    _Atomic int64_t start_failed_at_ns; /* relaxed: a hint for choosers; 0: never */
    int64_t start_trouble_at_ns;        /* when it failed first */
    unsigned start_failures;
    pthread_t thread;
    bool joinable;
    struct promise terminated; /* the last that the thread does */
    _Atomic int64_t stop_quiet_ns;
    _Atomic int64_t stop_timeout_ns;
    struct affinity affinity;
    void *cookie;
    char name[LOOP_NAME_BYTES];
};

/*
 * Whose turn the calling thread runs; NULL outside of loops. For loop_submit, which has no time for
 * a call.
 */
extern _Thread_local struct loop *loop_of_this_thread;

/*
 * loop_end_period(loop, t):
 * In the run of the periodic ${t}: its next instant is not set by the turn any more, so that ${t}
 * may be handed to another thread.
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
 * Thread: any
 * Errors: 0; -EAGAIN
 */
int loop_start(struct loop *loop) NODISCARD;

/*
 * loop_set_state(loop, state):
 * Move on to ${state}.
 *
 * Thread: loop, or the thread that ends a loop without one
 */
void loop_set_state(struct loop *loop, enum loop_state state);

/*
 * loop_refuse_and_drop(loop):
 * Close the gates and drop every task that came in before.
 *
 * Thread: loop, or the thread that ends a loop without one
 */
void loop_refuse_and_drop(struct loop *loop);

/*
 * turn_init(loop) / turn_run(loop):
 * Start the loop's own watchers; run one turn and say whether there is to be another.
 *
 * Thread: before start; loop
 */
void turn_init(struct loop *loop);
bool turn_run(struct loop *loop);

/*
 * turn_has_work(loop):
 * Does any lane, or a due timer, wait?
 *
 * Thread: loop
 */
bool turn_has_work(const struct loop *loop);

/*
 * turn_queued(loop):
 * How many tasks wait for step 4: due timers and the task lane.
 *
 * Thread: loop
 */
uint64_t turn_queued(const struct loop *loop);

/*
 * turn_reap(loop):
 * Step 6.
 *
 * Thread: loop
 */
void turn_reap(struct loop *loop);

/*
 * turn_poll_init(loop) / turn_poll_run(loop) / turn_poll_again(loop) / turn_poll_count(loop) /
 * turn_poll_judge(loop): Start the loop's own watchers; steps 1 and 2; the same once more, without
 * waiting; count what they did; at the turn's end, what it says about its poll.
 *
 * Thread: before start (init); loop
 */
void turn_poll_init(struct loop *loop);
void turn_poll_run(struct loop *loop);
void turn_poll_again(struct loop *loop);
void turn_poll_count(struct loop *loop);
void turn_poll_judge(struct loop *loop);

/*
 * turn_stop_run(loop):
 * Step 7: is there to be another turn?
 *
 * Thread: loop
 */
bool turn_stop_run(struct loop *loop);

/*
 * turn_stop_is_news(loop):
 * Is the loop to shut down, and has not begun to?
 *
 * Thread: loop
 */
bool turn_stop_is_news(const struct loop *loop);

/*
 * turn_stop_next_at_ns(loop):
 * When the shutdown has to look again; CLOCK_NEVER while there is none.
 *
 * Thread: loop
 */
int64_t turn_stop_next_at_ns(const struct loop *loop);

#endif
