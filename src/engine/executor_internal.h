/*
 * engine/executor_internal: internals of the executor. The executor's lock guards all that is
 * declared here.
 *
 * An entry of the queue is called a place: a task, or a strand (note: place in strand.c).
 *
 * note: calling. A thread is busy (runs a task), idle, or coming (on its way to the queue). Another
 * thread is woken or started only if more places and due timers wait than threads are coming; each
 * thread checks again before it runs a task. One idle thread, the timekeeper, sleeps until the
 * first timer is due, so that timers do not wait for busy threads.
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
#define EXECUTOR_NAME_BYTES  16 /* the kernel's limit for thread names */

/* Time between a failed start of a thread and the next try. */
#define EXECUTOR_RETRY_NS (10 * NS_PER_MS)

struct strand;

/* States, in this order. */
enum executor_state {
    EXECUTOR_OPEN,
    EXECUTOR_DRAINING, /* refuses tasks, runs what is queued */
    EXECUTOR_OVER      /* the queue is empty and stays so */
};

struct executor_thread {
    struct executor *executor;
    unsigned number; /* from 1 */
    pthread_t id;
    pthread_cond_t wake;
    struct list idle;
    struct strand *strand;
    const char *running; /* name of the running task; NULL: no task */
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
    uint64_t n_taken; /* places taken from the queue so far */
    struct timer_heap schedule;
    uint64_t n_pending;       /* tasks accepted and not begun, also in strands */
    struct task_list waiting; /* struct executor_waiter */
    unsigned n_waiting;
    unsigned n_contending; /* waiters with `contends` set */
    uint64_t n_places;     /* sum of the waiters' n_places */
    struct task_list told; /* waiters for executor_unlock() to submit */

    /* Life cycle. */
    enum executor_state state;
    int64_t stop_at_ns; /* when DRAINING ends */
    pthread_cond_t ended;

    /* Threads; see note: calling. */
    unsigned n_threads;
    unsigned n_ended;
    unsigned n_joined;
    unsigned n_busy;
    unsigned n_idle;
    struct list idle; /* the longest idle first */
    struct executor_thread *timekeeper;
    int64_t start_failed_at_ns; /* time of the last failed start; 0: the last start succeeded */
    int start_error;            /* errno that executor_unlock() logs; 0: none */

    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected;
    int64_t longest_ns;
    const char *longest_name;

    struct executor_thread threads[];
};

/*
 * executor_lock(e) / executor_unlock(e):
 * Lock / unlock, submit the waiters in `told` to their loops and log `start_error`.
 */
void executor_lock(struct executor *e);
void executor_unlock(struct executor *e);

/*
 * executor_sleep(e, cond, at_ns):
 * Wait for ${cond} until ${at_ns}; may return early.
 *
 * Thread: any, locked
 */
void executor_sleep(struct executor *e, pthread_cond_t *cond, int64_t at_ns);

/*
 * executor_admit(e, w) / executor_count_out(e, n):
 * Count one task as pending, within the share of ${w} (NULL: no strand) / count out ${n} tasks that
 * begin or are dropped.
 *
 * Thread: any, locked
 * Errors: as executor_submit(); -EAGAIN also when ${w} must wait (note: shares)
 */
int executor_admit(struct executor *e, struct executor_waiter *w) NODISCARD;
void executor_count_out(struct executor *e, unsigned n);

/*
 * executor_give_back(e, w) / executor_leave(e, w):
 * Take back the unused share of ${w} / also stop counting ${w} as contending.
 *
 * Thread: any, locked
 */
void executor_give_back(struct executor *e, struct executor_waiter *w);
void executor_leave(struct executor *e, struct executor_waiter *w);

/* executor_push(e, place): queue ${place} and call executor_thread_wake(). Thread: any, locked */
void executor_push(struct executor *e, struct task *place);

/* executor_tell(e, w): let executor_unlock() submit ${w} to its loop. Thread: any, locked */
void executor_tell(struct executor *e, struct executor_waiter *w);

/*
 * executor_thread_start(e):
 * Start one more thread.
 *
 * Thread: any, locked
 * Errors: 0; -EAGAIN
 */
int executor_thread_start(struct executor *e) NODISCARD;

/*
 * executor_thread_wake(e) / executor_thread_call_all(e):
 * Wake or start one thread if needed (note: calling) / wake all idle threads.
 *
 * Thread: any, locked
 */
void executor_thread_wake(struct executor *e);
void executor_thread_call_all(struct executor *e);

/*
 * executor_thread_finish(e):
 * End the drain: drop all queued tasks. Unlocks while drop() runs.
 *
 * Thread: any, locked; once
 */
void executor_thread_finish(struct executor *e);

/* executor_thread_is_current(e): is this a thread of ${e}? */
bool executor_thread_is_current(const struct executor *e);

#endif
