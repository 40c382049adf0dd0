/*
 * engine/promise: a result that comes later, once.
 *
 *   PENDING -------------------> SUCCEEDED | FAILED | CANCELLED
 *      \--> UNCANCELLABLE -----> SUCCEEDED | FAILED
 *
 * Exactly one completion wins. Listeners are told in the order they were added, one after the
 * other, each once; one that comes late after those before it, one that a listener adds when that
 * listener has returned. Where:
 *
 *   on the loop     inside the call that completes (or adds to what is complete) if that is made on
 *   the loop's thread
 *                   and not nested in PROMISE_NESTED_MAX others; else by a task in its control lane
 *   without a loop  on the thread that completes or adds, or on the one that still tells the
 *   earlier ones. So it is
 *                   also when the loop refuses the task (it has ended, or its thread cannot be
 *                   started); what it drops is told by who drops it
 *
 * A promise is embedded in what it is about. It must live until its listeners were told, whoever
 * waits has returned and nobody else can call it; note: last touch says who may end its life, and
 * when.
 */
#ifndef ENGINE_PROMISE_H
#define ENGINE_PROMISE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/must.h"
#include "engine/task.h"

struct loop;
struct promise;
struct promise_notifier;

/*
 * Promises that complete each other in done() are told so deep inside one another (Netty:
 * maxListenerStackDepth).
 */
#define PROMISE_NESTED_MAX 8

enum promise_state {
    PROMISE_PENDING,
    PROMISE_UNCANCELLABLE, /* pending, and promise_cancel() comes too late */
    PROMISE_SUCCEEDED,
    PROMISE_FAILED,
    PROMISE_CANCELLED
};

/* Embedded in whoever wants to know; free to be reused or freed as soon as done() is called. */
struct promise_listener {
    struct list link;
    void (*done)(struct promise_listener *l, struct promise *p);
};

/*
 * note: completion. The state changes under the lock only, so one completion wins. The winner
 * writes the result before it publishes the state with release; who sees a completed state with
 * acquire sees the result, without the lock.
 *
 * note: last touch. A promise may be closed and freed
 *
 *   - by a thread that has waited, as soon as promise_await() has returned to all that wait and 0
 *     to one of them, if no listener was added;
 *   - by the last listener ever added, in its done(), or by any thread that it has passed it on to
 *     there;
 *   - by who has made it, if nobody else knows it.
 *
 * Whoever completes publishes, wakes and looks for listeners in one stretch under the lock; if
 * there are none, unlocking is the last it does with the promise. That is early enough: a mutex may
 * be destroyed as soon as it can be locked again, even if the thread that unlocked it is still on
 * its way out of pthread_mutex_unlock() (POSIX, rationale of pthread_mutex_destroy()). It is also
 * why promise_await() takes the lock of what is complete, and why promise_is_done() alone does not
 * allow to free: promise_await(p, 0) does.
 *
 * Who tells the listeners comes back to the promise after each of them, and the last one may have
 * ended it. So while a listener is told the promise knows the teller, and promise_close() tells it
 * that there is nothing to come back to. What they leave each other is guarded by a lock that
 * outlives both: one of a few, chosen by the promise's address.
 */
struct promise {
    atomic_int state;
    int error;   /* FAILED: -errno; CANCELLED: -ECANCELED */
    void *value; /* SUCCEEDED */
    struct loop *loop;
    struct task notify; /* tells the listeners on the loop */
    pthread_mutex_t lock;
    pthread_cond_t completed;
    struct list listeners;             /* under the lock */
    bool notifying;                    /* under the lock: someone is at it or on the way */
    struct promise_notifier *notifier; /* see note: last touch */
};

/*
 * promise_init(p, loop):
 * Pending, no listeners. ${loop} is where listeners are told (NULL: wherever it completes).
 *
 * Thread: any
 * Owns:   nothing; ${loop} may end before ${p} completes, but must not be destroyed before the
 *         listeners were told
 */
void promise_init(struct promise *p, struct loop *loop);

/*
 * promise_close(p):
 * Release what promise_init() took; see note: last touch. Whether it is complete does not matter;
 * that no listener waits to be told does, and is asserted.
 *
 * Thread: any
 */
void promise_close(struct promise *p);

/*
 * promise_succeed(p, value) / promise_fail(p, error):
 * Complete, and tell the listeners. False: somebody else was first, and nothing changed.
 *
 * Thread: any
 * Owns:   nothing of ${value}; ${p} may be gone when this returns, if a listener or who waits may
 *         end it
 * Units:  ${error} -errno
 * Source: Netty DefaultPromise.trySuccess(), tryFailure()
 */
bool promise_succeed(struct promise *p, void *value);
bool promise_fail(struct promise *p, int error);

/*
 * promise_cancel(p):
 * Complete as cancelled, unless it is complete or uncancellable already. Did it?
 *
 * Thread: any
 * Owns:   ${p} as promise_succeed()
 */
bool promise_cancel(struct promise *p);

/*
 * promise_set_uncancellable(p):
 * From now on promise_cancel() comes too late. False: it was cancelled before.
 *
 * Thread: any
 */
bool promise_set_uncancellable(struct promise *p);

/*
 * promise_listen(p, l):
 * Tell ${l} when ${p} is complete, which may be inside this call. A listener that needs the loop
 * asks loop_is_current(): what the loop refuses is told on another thread.
 *
 * Thread: any
 * Owns:   ${l} must live until it was told; ${p} as promise_succeed()
 */
void promise_listen(struct promise *p, struct promise_listener *l);

/*
 * promise_await(p, timeout_ns):
 * Wait until ${p} is complete, but no longer than ${timeout_ns} (CLOCK_NEVER: for ever; 0 or less:
 * only look). Its listeners may still have to be told then. Never waits on a thread that is a loop:
 * what it waits for might need that loop.
 *
 * Thread: any
 * Units:  ns
 * Errors: 0 (complete, whatever the outcome); -ETIMEDOUT; -EDEADLK (a loop's thread, whatever the
 *         timeout, and it is not complete)
 */
int promise_await(struct promise *p, int64_t timeout_ns) NODISCARD;

/*
 * promise_state(p) / promise_is_done(p):
 * Where it is; is it complete?
 *
 * Thread: any
 */
enum promise_state promise_state(const struct promise *p);
bool promise_is_done(const struct promise *p);

/*
 * promise_error(p) / promise_value(p):
 * The outcome of a complete promise: 0 or -errno; the value, NULL unless it succeeded.
 *
 * Thread: any
 * Errors: none (asserts that it is complete)
 */
int promise_error(const struct promise *p);
void *promise_value(const struct promise *p);

#endif
