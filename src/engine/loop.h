/*
 * engine/loop: event loop: one thread that runs I/O and tasks in turns.
 *
 * A loop owns one struct ev_loop and all objects on it. One turn:
 *
 *   1. Poll, without blocking if tasks wait.
 *   2. Run I/O callbacks in order of arrival (engine/ready). Due timers queue behind queued tasks.
 *      Silence timers are due only after a poll that heard all up to their instant (engine/heard).
 *   3. Run the control queue: at most 1,024 tasks, within task_quantum. It precedes step 4 so that
 *      new connections do not wait behind a backlog. Then poll again if tasks wait.
 *   4. Run tasks within the budget of io_ratio and task_quantum (engine/budget).
 *   5. Run the tail tasks queued before this step, within task_quantum.
 *   6. Reap: run the tasks of loop_reap(), which free ended objects.
 *   7. Shut down, if requested.
 *
 * The first submitted task starts the thread.
 */
#ifndef ENGINE_LOOP_H
#define ENGINE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/affinity.h"
#include "engine/budget.h"
#include "engine/loop_stats.h"
#include "engine/task.h"
#include "engine/timer_heap.h"

struct ev_loop;
struct heard;
struct loop;
struct promise_listener;

enum loop_state {
    LOOP_NOT_STARTED,
    LOOP_STARTED,
    LOOP_SHUTTING_DOWN, /* still accepts tasks */
    LOOP_SHUTDOWN,      /* refuses tasks */
    LOOP_TERMINATED
};

/* Best value first. */
enum loop_availability {
    LOOP_AVAILABLE,
    LOOP_FULL,         /* max_pending_tasks control tasks wait */
    LOOP_NO_THREAD,    /* its thread failed to start within the last second */
    LOOP_NOT_AVAILABLE /* refuses tasks, or has ended */
};

enum loop_queue {
    LOOP_CONTROL, /* step 3; no limit, see loop_availability() */
    LOOP_TASKS,   /* step 4 */
    LOOP_TAIL     /* step 5; no limit */
};

/* Retries of a submit to a full task queue; threads of loops do not retry. */
struct loop_backoff {
    unsigned retries;
    int64_t delay_ns; /* before each retry */
};

#define LOOP_PENDING_MIN 16

struct loop_conf {
    const char *name; /* thread name, at most 15 characters */
    struct budget_conf budget;
    unsigned max_pending_tasks;
    struct loop_backoff backoff;
    unsigned rebuild_threshold; /* early polls before a rebuild; 0: ignore them */
    int64_t stall_threshold_ns; /* turns at least this long count as stalls; 0: no stalls */
    struct affinity_conf affinity;
    bool yields; /* see note: yield in turn.c */
};

/*
 * loop_create(out, conf):
 * Create a loop without a thread.
 *
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int loop_create(struct loop **out, const struct loop_conf *conf) NODISCARD;

/* loop_destroy(loop): free a loop that was joined or never started. Thread: any but the loop's */
void loop_destroy(struct loop *loop);

/*
 * loop_submit(loop, queue, t):
 * Queue ${t}; start the loop's thread, or wake it.
 *
 * Owns:   on 0 the loop runs or drops ${t}; on error the caller keeps it
 * Errors: 0; -EAGAIN (max_pending_tasks reached, or no thread could start); -ESHUTDOWN
 * Source: Netty SingleThreadEventExecutor.execute()
 */
int loop_submit(struct loop *loop, enum loop_queue queue, struct task *t) NODISCARD;

/*
 * loop_submit_lazy(loop, queue, t):
 * loop_submit() without wake-up: ${t} waits for the loop's next turn, at most a minute.
 */
int loop_submit_lazy(struct loop *loop, enum loop_queue queue, struct task *t) NODISCARD;

/*
 * loop_submit_after(loop, t, delay_ns, period_ns):
 * loop_schedule_every() for any thread. The delay counts from this call.
 *
 * Owns, Errors: as loop_submit()
 */
int loop_submit_after(struct loop *loop, struct timer *t, int64_t delay_ns,
                      int64_t period_ns) NODISCARD;

/*
 * loop_withdraw(loop, t):
 * Cancel a timer of loop_submit_after(). True: drop() will be called, and run() not again; false:
 * too late.
 *
 * Owns:   ${t} must outlive the call
 */
bool loop_withdraw(struct loop *loop, struct timer *t);

/*
 * loop_schedule(loop, t, delay_ns) / loop_schedule_every(loop, t, delay_ns, period_ns):
 * Run the idle ${t} once, ${delay_ns} from now or later / and then periodically: every ${period_ns}
 * if > 0; if < 0, -${period_ns} after the end of each run. A loop that ends drops ${t}.
 *
 * Thread: loop
 * Owns:   ${t} must live until run, dropped or cancelled
 */
void loop_schedule(struct loop *loop, struct timer *t, int64_t delay_ns);
void loop_schedule_every(struct loop *loop, struct timer *t, int64_t delay_ns, int64_t period_ns);

/*
 * loop_cancel(loop, t):
 * Make ${t} idle without run() or drop(). A timer of loop_submit_after() must have arrived on the
 * loop. run() of a periodic ${t} may cancel and free it.
 *
 * Thread: loop
 */
void loop_cancel(struct loop *loop, struct timer *t);

/*
 * loop_suspend(loop, t) / loop_resume(loop, t):
 * Take the one-shot ${t}, which may be idle, off ${loop} / schedule it on ${loop}, perhaps another
 * one, for the instant it had; not if it was idle. A silence timer is due no sooner than a poll
 * that begins after this call.
 *
 * Thread: loop
 */
void loop_suspend(struct loop *loop, struct timer *t);
void loop_resume(struct loop *loop, struct timer *t);

/*
 * loop_set_io_ratio(loop, io_ratio) / loop_set_queue_wait_goal(loop, goal_ns):
 * Use ${io_ratio}, which may be BUDGET_RATIO_AUTO, from the next turn on / use ${goal_ns} with
 * BUDGET_RATIO_AUTO.
 *
 * Errors: 0; -EINVAL (above 100)
 */
int loop_set_io_ratio(struct loop *loop, unsigned io_ratio) NODISCARD;
void loop_set_queue_wait_goal(struct loop *loop, int64_t goal_ns);

/*
 * loop_set_activity(loop, what):
 * Name the current work for stall reports; ${what} must outlive the loop.
 *
 * Thread: loop
 */
void loop_set_activity(struct loop *loop, const char *what);

/*
 * loop_reap(loop, t):
 * Run ${t} in step 6 of this turn, or of a later turn if thousands of objects end at once. ${t} is
 * never dropped.
 *
 * Thread: loop
 */
void loop_reap(struct loop *loop, struct task *t);

/*
 * loop_at_stop(loop, t):
 * Run ${t} when shutdown begins, in order of addition; in this turn if shutdown has begun. Drop
 * ${t} if the loop never had a thread.
 *
 * Thread: loop, or any before the loop has a thread
 */
void loop_at_stop(struct loop *loop, struct task *t);

/*
 * loop_stop(loop, quiet_ns, timeout_ns):
 * Shut down: run at-stop tasks, drop timers, and end after ${quiet_ns} without tasks, or after
 * ${timeout_ns}. Does not wait; later calls have no effect. A loop without a thread ends at once.
 *
 * Units:  0 <= ${quiet_ns} <= ${timeout_ns}
 */
void loop_stop(struct loop *loop, int64_t quiet_ns, int64_t timeout_ns);

/*
 * loop_join_until(loop, at_ns):
 * After loop_stop(): wait until the loop has ended, or until ${at_ns} (CLOCK_NEVER: for ever).
 *
 * Thread: any but loops
 * Errors: 0; -ETIMEDOUT (still runs: do not destroy it)
 */
int loop_join_until(struct loop *loop, int64_t at_ns) NODISCARD;

/*
 * loop_listen_end(loop, l):
 * Call ${l} when the loop has ended: inside this call if the loop has ended before, else on the
 * loop's thread, or inside loop_stop() if the loop has no thread.
 *
 * Owns:   ${l} must live until called
 */
void loop_listen_end(struct loop *loop, struct promise_listener *l);

/* loop_state(loop) / loop_name(loop): return the state / name. */
enum loop_state loop_state(const struct loop *loop);
const char *loop_name(const struct loop *loop);

/*
 * loop_is_current(loop) / loop_current():
 * Is this the loop's thread? / the calling thread's loop, or NULL.
 */
bool loop_is_current(const struct loop *loop);
struct loop *loop_current(void);

/*
 * loop_set_cookie(loop, cookie) / loop_cookie(loop):
 * Set / return a pointer for the layer above.
 *
 * Thread: any, before other threads use ${loop} / any
 */
void loop_set_cookie(struct loop *loop, void *cookie);
void *loop_cookie(const struct loop *loop);

/*
 * loop_now_ns(loop):
 * Return the time at which this turn's poll ended; the last one, if the turn polled again.
 *
 * Thread: loop
 */
int64_t loop_now_ns(const struct loop *loop);

/*
 * loop_heard_ns(loop):
 * Return the time up to which all input was read; see note: silence in heard.h. A silence timer
 * compares its deadlines with this, because later input may wait.
 *
 * Thread: loop
 */
int64_t loop_heard_ns(const struct loop *loop);

/*
 * loop_due_ns(loop, from_ns, limit_ns):
 * Return the end of ${limit_ns} that began at ${from_ns}, without the time in which the loop did
 * not run; see note: absence in heard.h. Compute it when the deadline is judged.
 *
 * Thread: loop
 */
int64_t loop_due_ns(struct loop *loop, int64_t from_ns, int64_t limit_ns);

/*
 * loop_heard(loop) / loop_adopt_heard(loop, heard):
 * What ${loop} knows of its silences / note the absences of another loop, from which something with
 * deadlines came.
 *
 * Thread: loop
 */
const struct heard *loop_heard(const struct loop *loop);
void loop_adopt_heard(struct loop *loop, const struct heard *heard);

/* loop_watchable_fds(loop): descriptors below this number can be watched; it only grows. */
int loop_watchable_fds(const struct loop *loop);

/*
 * loop_forget_fd(loop, fd):
 * Remove ${fd}, which no watcher uses, from the epoll instance now: libev leaves it there until its
 * next event. Before ${fd} is watched again, call ev_io_set().
 *
 * Thread: loop
 */
void loop_forget_fd(struct loop *loop, int fd);

/*
 * loop_reserve_fd(loop, fd):
 * Reserve the memory that libev needs to watch ${fd}; without it, libev may abort the process.
 *
 * Thread: loop, or any before other threads use ${loop}
 * Errors: 0; -ENOMEM (do not watch ${fd})
 */
int loop_reserve_fd(struct loop *loop, int fd) NODISCARD;

/*
 * loop_ev(loop):
 * Return the libev loop, for watchers. Call loop_reserve_fd() for each descriptor.
 *
 * Thread: loop
 */
struct ev_loop *loop_ev(struct loop *loop);

/*
 * loop_load_add(loop, n) / loop_load(loop):
 * Change / return the number of connections, for choosers.
 */
void loop_load_add(struct loop *loop, int n);
unsigned loop_load(const struct loop *loop);

/*
 * loop_availability(loop):
 * Can the loop take a connection? Check this first, because the control queue has no limit.
 */
enum loop_availability loop_availability(const struct loop *loop);

/* loop_backend_text(text, size): write libev's version and backend: "libev 4.33 (epoll)". */
void loop_backend_text(char *text, size_t size);

#endif
