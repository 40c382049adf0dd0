/*
 * engine/executor_internal: shared by executor.c, executor_thread.c and strand.c; all under the
 * executor's lock.
 *
 * The queue holds places: tasks, and strands (note: place in strand.c).
 *
 * note: calling. A thread is busy, idle, or on its way to the queue. Another is called only if more
 * is queued than those on their way will take; each taking thread checks again. One idle thread,
 * the timekeeper, sleeps until the first timer: busy threads delay none.
 */
#ifndef ENGINE_EXECUTOR_INTERNAL_H
#define ENGINE_EXECUTOR_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "engine/affinity.h"
#include "engine/executor.h"
#include "engine/task_list.h"
#include "engine/timer_heap.h"

#define EXECUTOR_PENDING_MIN 16
#define EXECUTOR_NAME_BYTES  16 /* the kernel's limit */

/* After a thread failed to start. */
#define EXECUTOR_RETRY_NS (10 * NS_PER_MS)

struct strand;

/* Moves forward only. */
enum executor_state {
    EXECUTOR_OPEN,
    EXECUTOR_DRAINING, /* refuses tasks, runs what is queued */
    EXECUTOR_OVER      /* the queue stays empty */
};

struct executor_thread {
    struct executor *executor;
    unsigned number; /* from 1 */
    pthread_t id;
    pthread_cond_t wake; /* one each, to choose which thread wakes */
    struct list idle;    /* on executor->idle */
    struct strand *strand;
    const char *running; /* the task's name; NULL: none */
    int64_t began_at_ns;
};

struct executor {
    pthread_mutex_t lock;

    /* Constant. */
    char name[EXECUTOR_NAME_BYTES];
    unsigned pool;
    unsigned max_threads;
    unsigned max_pending;
    struct affinity affinity;

    /* Work. */
    struct task_list queue;
    uint64_t n_queued;
    uint64_t n_taken; /* from the queue, in total */
    struct timer_heap schedule;
    uint64_t n_pending;       /* accepted, not begun, also in strands */
    struct task_list waiting; /* struct executor_waiter */
    unsigned n_waiting;
    unsigned n_contending; /* waiters, and strands with a share */
    uint64_t n_places;     /* unused, of all shares (note: shares) */
    struct task_list told; /* waiters to call in executor_unlock() */

    /* Life cycle. */
    enum executor_state state;
    int64_t stop_at_ns; /* end of DRAINING */
    pthread_cond_t ended;

    /* Threads; see note: calling. */
    unsigned n_threads;
    unsigned n_ended;
    unsigned n_joined;
    unsigned n_busy;
    unsigned n_idle;
    struct list idle; /* most recently idle last */
    struct executor_thread *timekeeper;
    int64_t start_failed_at_ns; /* 0: the last start succeeded */
    int start_error;            /* for executor_unlock() to log */

    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected;
    int64_t longest_ns;
    const char *longest_name;

    struct executor_thread threads[];
};

/*
 * executor_lock(e) / executor_unlock(e):
 * Unlocking also calls due waiters and logs a failed start.
 *
 * Thread: any
 */
void executor_lock(struct executor *e);
void executor_unlock(struct executor *e);

/*
 * executor_sleep(e, cond, at_ns):
 * Wait on ${cond} until ${at_ns} or earlier.
 *
 * Thread: any, locked
 */
void executor_sleep(struct executor *e, pthread_cond_t *cond, int64_t at_ns);

/*
 * executor_admit(e, w) / executor_count_out(e, n):
 * Count in one task, from the share of ${w} (NULL: any place) / count out ${n} that begin or are
 * dropped.
 *
 * Thread: any, locked
 * Errors: as executor_submit(); -EAGAIN also on other producers' turn
 */
int executor_admit(struct executor *e, struct executor_waiter *w) NODISCARD;
void executor_count_out(struct executor *e, unsigned n);

/*
 * executor_give_back(e, w) / executor_leave(e, w):
 * Take back the share of ${w} / and end its contention.
 *
 * Thread: any, locked
 */
void executor_give_back(struct executor *e, struct executor_waiter *w);
void executor_leave(struct executor *e, struct executor_waiter *w);

/*
 * executor_push(e, place):
 * Append ${place} to the queue and call a thread.
 *
 * Thread: any, locked
 */
void executor_push(struct executor *e, struct task *place);

/*
 * executor_tell(e, w):
 * Let executor_unlock() call ${w}.
 *
 * Thread: any, locked
 */
void executor_tell(struct executor *e, struct executor_waiter *w);

/*
 * executor_thread_start(e):
 * Start a thread.
 *
 * Thread: any, locked
 * Errors: 0; -EAGAIN
 */
int executor_thread_start(struct executor *e) NODISCARD;

/*
 * executor_thread_wake(e) / executor_thread_call_all(e):
 * Wake or start a thread if needed / wake all.
 *
 * Thread: any, locked
 */
void executor_thread_wake(struct executor *e);
void executor_thread_call_all(struct executor *e);

/*
 * executor_thread_finish(e):
 * End the drain: drop all queued tasks. Unlocks meanwhile.
 *
 * Thread: any, locked; once
 */
void executor_thread_finish(struct executor *e);

/*
 * executor_thread_is_current(e):
 * Is the caller one of its threads?
 *
 * Thread: any
 */
bool executor_thread_is_current(const struct executor *e);

#endif
