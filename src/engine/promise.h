/*
 * engine/promise: promise/future: a result that is set once, with listeners.
 *
 *   PENDING -------------------> SUCCEEDED | FAILED | CANCELLED
 *      \--> UNCANCELLABLE -----> SUCCEEDED | FAILED
 *
 * The first completion wins. Listeners are called once each, one after the other, in the order of
 * addition; one that a listener adds, after that listener has returned. Where:
 *
 *   with a loop     inside the completing or adding call, if on the loop's thread and nested
 *                   less than PROMISE_NESTED_MAX deep; else by a control task of the loop
 *   without a loop  on the completing or adding thread, or on one that still calls earlier
 *                   listeners; also if the loop refuses the task (ended or cannot start). A dropped
 *                   task calls them on the dropping thread
 *
 * A promise is embedded in its object. It must live until its listeners were called, waiters have
 * returned and no other thread can use it; see note: last touch.
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
 * Nesting limit for promises that complete each other in done(), as Netty's maxListenerStackDepth.
 */
#define PROMISE_NESTED_MAX 8

enum promise_state {
    PROMISE_PENDING,
    PROMISE_UNCANCELLABLE, /* pending, cannot be cancelled */
    PROMISE_SUCCEEDED,
    PROMISE_FAILED,
    PROMISE_CANCELLED
};

/* Embedded by the listening object; may be freed once done() is called. */
struct promise_listener {
    struct list link;
    void (*done)(struct promise_listener *l, struct promise *p);
};

/*
 * note: completion. The state changes only under the lock, so one completion wins. It writes the
 * result, then the state with release; a reader that sees completion with acquire sees the result
 * without the lock.
 *
 * note: last touch. A promise may be closed and freed
 *
 *   - by a waiting thread, when promise_await() has returned to all waiters, with 0 to one of them,
 *     and no listener was added;
 *   - by the last listener ever added, in its done(), or by a thread it hands the promise to there;
 *   - by its creator, if no other thread knows it.
 *
 * The completing thread sets the state, wakes waiters and checks for listeners in one critical
 * section; without listeners, unlocking is its last access. That suffices: a mutex may be destroyed
 * as soon as it can be locked, even if another thread is still inside pthread_mutex_unlock()
 * (POSIX, rationale of pthread_mutex_destroy()). For that reason promise_await() locks even a
 * complete promise, and promise_is_done() does not permit freeing, but promise_await(p, 0) does.
 *
 * The notifying thread returns to the promise after each listener, and the last one may have closed
 * it. So the promise points to the notifier during calls, and promise_close() tells it not to
 * return. A lock that outlives both guards this: one of a few stripes, chosen by the promise's
 * address.
 */
struct promise {
    atomic_int state;
    int error;   /* FAILED: -errno; CANCELLED: -ECANCELED */
    void *value; /* SUCCEEDED */
    struct loop *loop;
    struct task notify; /* notifies on the loop */
    pthread_mutex_t lock;
    pthread_cond_t completed;
    struct list listeners;             /* under the lock */
    bool notifying;                    /* under the lock: notifying has begun or is queued */
    struct promise_notifier *notifier; /* see note: last touch */
};

/*
 * promise_init(p, loop):
 * Initialize as pending; listeners run on ${loop} (NULL: where it completes).
 *
 * Thread: any
 * Owns:   nothing; ${loop} may end before ${p} completes, but must exist until listeners were
 *         called
 */
void promise_init(struct promise *p, struct loop *loop);

/*
 * promise_close(p):
 * Release the resources of promise_init(), complete or not; asserts that no listener is left. See
 * note: last touch.
 *
 * Thread: any
 */
void promise_close(struct promise *p);

/*
 * promise_succeed(p, value) / promise_fail(p, error):
 * Complete and notify the listeners. False: already complete, nothing changed.
 *
 * Thread: any
 * Owns:   nothing of ${value}; a listener or waiter may free ${p} before this returns
 * Units:  ${error} -errno
 * Source: Netty DefaultPromise.trySuccess(), tryFailure()
 */
bool promise_succeed(struct promise *p, void *value);
bool promise_fail(struct promise *p, int error);

/*
 * promise_cancel(p):
 * Cancel, unless complete or uncancellable; true if cancelled now.
 *
 * Thread: any
 * Owns:   ${p} as promise_succeed()
 */
bool promise_cancel(struct promise *p);

/*
 * promise_set_uncancellable(p):
 * Forbid promise_cancel(). False: already cancelled.
 *
 * Thread: any
 */
bool promise_set_uncancellable(struct promise *p);

/*
 * promise_listen(p, l):
 * Call ${l} when ${p} is complete, maybe inside this call. A listener that needs the loop must ask
 * loop_is_current(): if the loop refuses, another thread calls.
 *
 * Thread: any
 * Owns:   ${l} must live until called; ${p} as promise_succeed()
 */
void promise_listen(struct promise *p, struct promise_listener *l);

/*
 * promise_await(p, timeout_ns):
 * Wait until ${p} is complete, ${timeout_ns} at most (CLOCK_NEVER: for ever; 0 or less: only look).
 * Listeners may still be pending then. Never waits on a loop's thread: completion might need that
 * loop.
 *
 * Thread: any
 * Errors: 0 (complete, whatever the outcome); -ETIMEDOUT; -EDEADLK (incomplete, on a loop's thread)
 */
int promise_await(struct promise *p, int64_t timeout_ns) NODISCARD;

/*
 * promise_state(p) / promise_is_done(p):
 * Return the state / is it complete?
 *
 * Thread: any
 */
enum promise_state promise_state(const struct promise *p);
bool promise_is_done(const struct promise *p);

/*
 * promise_error(p) / promise_value(p):
 * Return the error (0: success) / value (NULL unless succeeded) of a complete promise; asserts
 * completion.
 *
 * Thread: any
 */
int promise_error(const struct promise *p);
void *promise_value(const struct promise *p);

#endif
