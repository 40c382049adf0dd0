/*
 * engine/executor_internal: what executor.c (submitting, life), executor_thread.c (its threads) and
 * serial.c know of an executor. Private to them; all of it is under the executor's lock.
 *
 * The queue consists of places. A place is a task, or stands for a serial with all its tasks (see
 * note: place in serial.c).
 *
 * note: calling. Of the threads some are busy, some idle, and the others on their way to the queue.
 * A thread is woken, or started, only when more is to be taken than those on their way will take.
 * Whoever takes something asks again, so that one who was called for two things passes the call on.
 * Timers that wait want one thread as well, so that they are not late when all others are busy: the
 * timekeeper, an idle one that sleeps until the first is due.
 */
#ifndef ENGINE_EXECUTOR_INTERNAL_H
#define ENGINE_EXECUTOR_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "engine/executor.h"
#include "engine/affinity.h"
#include "engine/timer_heap.h"
#include "engine/task_list.h"

#define EXECUTOR_PENDING_MIN 16
#define EXECUTOR_NAME_BYTES  16 /* what the kernel keeps of a thread's name */

/* After no thread could be started, the next try is not before. */
#define EXECUTOR_RETRY_NS (10 * NS_PER_MS)

struct strand;

/* Only ever forward. */
enum executor_state {
    EXECUTOR_OPEN,
    EXECUTOR_DRAINING, /* refuses tasks, runs what is queued */
    EXECUTOR_OVER      /* nothing is queued any more */
};

struct executor_thread {
    struct executor *executor;
    unsigned number; /* from 1 */
    pthread_t id;
    pthread_cond_t wake; /* each has its own, so that it is known who is woken */
    struct list idle;    /* on executor->idle while it waits for being called */
    struct strand *strand;
    const char *running; /* name of the task; NULL: none */
    int64_t began_at_ns;
};

struct executor {
    pthread_mutex_t lock;

    /* Of executor_create(). */
    char name[EXECUTOR_NAME_BYTES];
    unsigned pool;
    unsigned max_threads;
    unsigned max_pending;
    struct affinity affinity;

    /* What is to be done. */
    struct task_list queue; /* of places */
    uint64_t n_queued;
    uint64_t n_taken; /* from the queue, ever */
    struct timer_heap schedule;
    uint64_t n_pending;       /* tasks accepted and not begun: in the queue and in serials */
    struct task_list waiting; /* of struct executor_waiter */
    unsigned n_waiting;
    unsigned n_contending; /* waiters, and serials that have their turn */
    uint64_t n_places;     /* of all shares that are not used up (note: shares) */
    struct task_list told; /* the same: executor_unlock() tells them */

    /* Life. */
    enum executor_state state;
    int64_t stop_at_ns; /* DRAINING: until then */
    pthread_cond_t ended;

    /* Threads; see note: calling. */
    unsigned n_threads; /* ever started */
    unsigned n_ended;
    unsigned n_joined;
    unsigned n_busy;
    unsigned n_idle;
    struct list idle; /* the last is the one that has been idle for the shortest time */
    struct executor_thread *timekeeper;
    int64_t start_failed_at_ns; /* 0: the last start succeeded */
    int start_error;            /* for executor_unlock() to log; 0: nothing new */

    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected;
    int64_t longest_ns;
    const char *longest_name;

    struct executor_thread threads[];
};

/*
 * executor_lock(e) / executor_unlock(e):
 * Unlocking also tells the waiters that have come to be told, and logs.
 *
 * Thread: any
 */
void executor_lock(struct executor *e);
void executor_unlock(struct executor *e);

/*
 * executor_sleep(e, cond, at_ns):
 * Wait on ${cond} until ${at_ns} at the latest (CLOCK_NEVER: for ever). May return early.
 *
 * Thread: any, locked
 */
void executor_sleep(struct executor *e, pthread_cond_t *cond, int64_t at_ns);

/*
 * executor_admit(e, w) / executor_count_out(e, n):
 * Count one more task in, which the caller then queues; count out ${n} that begin or are dropped.
 * With ${w} the place is taken from its share (note: shares in executor.h); NULL: any free place.
 *
 * Thread: any, locked
 * Errors: as executor_submit(); -EAGAIN also if it is the turn of other producers
 */
int executor_admit(struct executor *e, struct executor_waiter *w) NODISCARD;
void executor_count_out(struct executor *e, unsigned n);

/*
 * executor_give_back(e, w) / executor_leave(e, w):
 * ${w} was refused, or its turn has ended: take back its share; leave: it contends for no other
 * one.
 *
 * Thread: any, locked
 */
void executor_give_back(struct executor *e, struct executor_waiter *w);
void executor_leave(struct executor *e, struct executor_waiter *w);

/*
 * executor_push(e, place):
 * Put it at the end of the queue, and have somebody come for it.
 *
 * Thread: any, locked
 */
void executor_push(struct executor *e, struct task *place);

/*
 * executor_tell(e, w):
 * Have ${w} told by executor_unlock().
 *
 * Thread: any, locked
 */
void executor_tell(struct executor *e, struct executor_waiter *w);

/*
 * executor_thread_start(e):
 * One more thread.
 *
 * Thread: any, locked
 * Errors: 0; -EAGAIN
 */
int executor_thread_start(struct executor *e) NODISCARD;

/*
 * executor_thread_call(e) / executor_thread_call_all(e):
 * See that somebody comes for what is queued and for the timers; wake all that are idle.
 *
 * Thread: any, locked
 */
void executor_thread_call(struct executor *e);
void executor_thread_call_all(struct executor *e);

/*
 * executor_thread_finish(e):
 * The time to run what is queued is over: drop it all. Unlocks meanwhile.
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
