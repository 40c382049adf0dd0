/*
 * engine/loop: one thread that does I/O and tasks in turns.
 *
 * A loop owns one struct ev_loop and everything that lives on it. One turn:
 *
 *   1. Poll: without blocking if tasks wait, else until I/O, a due timer or a wake-up.
 *   2. Run the I/O callbacks, in order of arrival (engine/ready); the time they take, and not the
 *      poll's, is the turn's I/O time. A due timer does no work itself: its task takes its place
 *      behind the tasks already queued.
 *   3. Run the control lane (up to 1,024 tasks, and no longer than task_quantum) before any other
 *      task, so that adopting a connection never waits behind a backlog. If it had any and tasks
 *      wait, look for I/O once more.
 *   4. Run tasks within the budget that io_ratio and task_quantum give (engine/budget).
 *   5. Run tail tasks: those that were there when the step began, no longer than task_quantum.
 *   6. Reap: destroy what ended in this turn. Objects are freed here and nowhere else.
 *   7. Look whether the loop is to end.
 *
 * Submitting and stopping work from any thread; all else is for the loop's own thread, which
 * asserts it. The thread is started by the first task that is submitted.
 */
#ifndef ENGINE_LOOP_H
#define ENGINE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/budget.h"
#include "engine/loop_stats.h"
#include "engine/timer_heap.h"
#include "engine/affinity.h"
#include "engine/task.h"

struct ev_loop;
struct loop;
struct promise_listener;

/* Only ever forward, by compare-and-swap. */
enum loop_state {
    LOOP_NOT_STARTED,
    LOOP_STARTED,
    LOOP_SHUTTING_DOWN, /* still accepts tasks */
    LOOP_SHUTDOWN,      /* refuses tasks, ends */
    LOOP_TERMINATED
};

/* May another connection be given to a loop? In the order of preference. */
enum loop_availability {
    LOOP_AVAILABLE,
    LOOP_FULL,         /* max_pending_tasks control tasks wait there */
    LOOP_NO_THREAD,    /* starting its thread has just failed */
    LOOP_NOT_AVAILABLE /* it has ended */
};

/* Which queue a task goes to. */
enum loop_lane {
    LOOP_CONTROL, /* step 3; not bounded, but see loop_availability() */
    LOOP_TASKS,   /* step 4 */
    LOOP_TAIL     /* step 5; not bounded by max_pending_tasks */
};

/*
 * A full task lane: try again so often before the submitter is told. Never on a thread that is
 * itself a loop.
 */
struct loop_backoff {
    unsigned retries; /* 0: tell at once */
    int64_t delay_ns; /* before each */
};

/* The least that max_pending_tasks can be; fewer count as so many. */
#define LOOP_PENDING_MIN 16

struct loop_conf {
    const char *name; /* of the thread: at most 15 characters; copied */
    struct budget_conf budget;
    unsigned max_pending_tasks;
    struct loop_backoff backoff;
    unsigned rebuild_threshold; /* see engine/backend; 0: never rebuild for early polls */
    int64_t stall_threshold_ns; /* a turn that takes longer counts as a stall; 0: none does */
    struct affinity_conf affinity;
};

/*
 * loop_create(out, conf):
 * A loop with its own epoll instance and no thread yet.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int loop_create(struct loop **out, const struct loop_conf *conf) NODISCARD;

/*
 * loop_destroy(loop):
 * Free a loop that was never started, or was stopped and joined. No thread may know it any more.
 *
 * Thread: any but the loop's
 */
void loop_destroy(struct loop *loop);

/*
 * loop_submit(loop, lane, t):
 * Have ${t} run on the loop: start the thread if there is none, queue ${t}, and end the loop's
 * sleep.
 *
 * Thread: any
 * Owns:   on 0 the loop owns ${t}, and runs or drops it; on error the caller still does
 * Errors: 0; -EAGAIN (max_pending_tasks reached, or no thread could be started); -ESHUTDOWN (loop
 *         has ended)
 * Source: Netty SingleThreadEventExecutor.execute(); there the thread is started last and the task
 *         taken back
 */
int loop_submit(struct loop *loop, enum loop_lane lane, struct task *t) NODISCARD;

/*
 * loop_submit_lazy(loop, t):
 * As loop_submit() to the task lane, without ending the loop's sleep: ${t} runs in its next turn.
 *
 * Thread: any
 * Owns, Errors: as loop_submit()
 */
int loop_submit_lazy(struct loop *loop, struct task *t) NODISCARD;

/*
 * loop_submit_after(loop, t, delay_ns, period_ns):
 * Have the idle ${t} run after ${delay_ns}, and then each ${period_ns} as loop_schedule_every()
 * says; from any thread. Its instant counts from now, however long it takes until the loop hears of
 * it. The loop's sleep is ended only if it would last longer.
 *
 * Thread: any
 * Owns:   on 0 the loop owns ${t}, and runs or drops it; on error the caller still does
 * Units:  ns
 * Errors: as loop_submit()
 * Source: Netty AbstractScheduledEventExecutor.schedule()
 */
int loop_submit_after(struct loop *loop, struct timer *t, int64_t delay_ns,
                      int64_t period_ns) NODISCARD;

/*
 * loop_withdraw(loop, t):
 * Take back what loop_submit_after() accepted: true if ${t} will not run (again), and is dropped by
 * the loop instead, soon; false if it comes too late. Does not end the loop's sleep.
 *
 * Thread: any
 * Owns:   nothing; the memory of ${t} must outlive the call, whichever way it ends
 */
bool loop_withdraw(struct loop *loop, struct timer *t);

/*
 * loop_schedule(loop, t, delay_ns) / loop_schedule_every(loop, t, delay_ns, period_ns):
 * Run the idle ${t} once after ${delay_ns} (negative counts as 0), and then each ${period_ns}: a
 * positive one is a fixed rate, a negative one a fixed delay after each run. Never early. When the
 * loop ends, a task that still waits is dropped.
 *
 * Thread: loop
 * Owns:   nothing; ${t} must live until it has run or was cancelled
 * Units:  ns
 */
void loop_schedule(struct loop *loop, struct timer *t, int64_t delay_ns);
void loop_schedule_every(struct loop *loop, struct timer *t, int64_t delay_ns, int64_t period_ns);

/*
 * loop_cancel(loop, t):
 * Make ${t} idle: it neither runs nor is dropped. Nothing happens if it is idle, or has not arrived
 * yet after loop_submit_after(): loop_withdraw() is for that. A periodic ${t} that cancels itself
 * in its own run may be freed, or handed to another thread, before that run returns.
 *
 * Thread: loop
 */
void loop_cancel(struct loop *loop, struct timer *t);

/*
 * loop_set_io_ratio(loop, io_ratio):
 * From the next turn on, tasks get their time by this ratio.
 *
 * Thread: any
 * Units:  percent
 * Errors: 0; -EINVAL (not 1 to 100; nothing changed)
 */
int loop_set_io_ratio(struct loop *loop, unsigned io_ratio) NODISCARD;

/*
 * loop_rebuild(loop):
 * Replace the loop's epoll instance before its next poll; nothing that is watched notices.
 *
 * Thread: loop
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM (the old one stays)
 */
int loop_rebuild(struct loop *loop) NODISCARD;

/*
 * loop_doing(loop, what):
 * Say what the loop runs from here on in this turn, for who looks at a turn that takes long.
 *
 * Thread: loop
 * Owns:   nothing; ${what} must live as long as the loop
 */
void loop_doing(struct loop *loop, const char *what);

/*
 * loop_reap(loop, t):
 * Run ${t} in step 6 of this turn; for what must not happen inside an object's own callbacks.
 *
 * Thread: loop
 * Owns:   the loop owns ${t}; it is always run, never dropped
 */
void loop_reap(struct loop *loop, struct task *t);

/*
 * loop_at_stop(loop, t):
 * Run ${t} once on the loop when it begins to shut down, after those added before; at once (in this
 * turn) if it is shutting down already. If the loop never had a thread, it is dropped.
 *
 * Thread: loop, or before start
 * Owns:   the loop owns ${t}
 */
void loop_at_stop(struct loop *loop, struct task *t);

/*
 * loop_stop(loop, quiet_ns, timeout_ns):
 * Begin to shut down: run the at-stop tasks, cancel timers, go on until no task came for
 * ${quiet_ns}, but no longer than ${timeout_ns}. Returns at once; the first call decides the times.
 * A loop without a thread has ended when this returns.
 *
 * Thread: any
 * Units:  ns, 0 <= ${quiet_ns} <= ${timeout_ns}
 */
void loop_stop(struct loop *loop, int64_t quiet_ns, int64_t timeout_ns);

/*
 * loop_join(loop) / loop_join_until(loop, at_ns):
 * Wait until the loop has ended, but no longer than until ${at_ns}; after loop_stop(). A task that
 * hangs cannot be cut: the loop can then not be destroyed.
 *
 * Thread: none that is a loop
 * Errors: 0; -ETIMEDOUT
 */
void loop_join(struct loop *loop);
int loop_join_until(struct loop *loop, int64_t at_ns) NODISCARD;

/*
 * loop_listen_end(loop, l):
 * Tell ${l} when the loop has ended, so that no callback runs on it any more; inside this call if
 * it has ended already, else on the loop's thread, or in loop_stop() if it has none.
 *
 * Thread: any
 * Owns:   ${l} must live until it was told
 */
void loop_listen_end(struct loop *loop, struct promise_listener *l);

/*
 * loop_state(loop) / loop_name(loop):
 * What it says.
 *
 * Thread: any
 */
enum loop_state loop_state(const struct loop *loop);
const char *loop_name(const struct loop *loop);

/*
 * loop_is_current(loop) / loop_current():
 * Is the caller this loop's thread; which loop's thread is it (NULL: none)?
 *
 * Thread: any
 */
bool loop_is_current(const struct loop *loop);
struct loop *loop_current(void);

/*
 * loop_set_cookie(loop, cookie) / loop_cookie(loop):
 * What an upper layer keeps for each loop.
 *
 * Thread: before start; any
 */
void loop_set_cookie(struct loop *loop, void *cookie);
void *loop_cookie(const struct loop *loop);

/*
 * loop_now_ns(loop):
 * The clock as this turn's callbacks began: good enough for activity stamps, and free.
 *
 * Thread: loop
 * Units:  ns
 */
int64_t loop_now_ns(const struct loop *loop);

/*
 * loop_ev(loop):
 * The libev loop that watchers of this loop are started on.
 *
 * Thread: loop
 * Owns:   the loop keeps it
 */
struct ev_loop *loop_ev(struct loop *loop);

/*
 * loop_load_add(loop, n) / loop_load(loop):
 * Change and read the number of connections the loop has or is about to get; choosers read it.
 *
 * Thread: any
 */
void loop_load_add(struct loop *loop, int n);
unsigned loop_load(const struct loop *loop);

/*
 * loop_availability(loop):
 * May another connection be given to the loop? Submitters look here, since a
 * control task is accepted as long as the loop has not ended and has a thread or can start one.
 *
 * Thread: any
 */
enum loop_availability loop_availability(const struct loop *loop);

/*
 * loop_backend_text(text, size):
 * Version and backend of the event library, such as "libev 4.33 (epoll)".
 *
 * Thread: any
 * Units:  ${size} bytes
 */
void loop_backend_text(char *text, size_t size);

#endif
