/*
 * engine/promise: promise/future: an outcome that is set once, with listeners.
 *
 *   PENDING -------------------> SUCCEEDED | FAILED | CANCELLED
 *      \--> UNCANCELLABLE -----> SUCCEEDED | FAILED
 *
 * The first completion wins. Listeners are called once each, one after another, in order of
 * addition. Where:
 *
 *   with a loop     inside the completing or adding call, if on the loop's thread and nested less
 *                   than PROMISE_NESTED_MAX deep; else by a control task of the loop
 *   without a loop  on the completing or adding thread, or on one that still calls earlier ones;
 *                   also if the loop refuses the task. A dropped task calls on the dropping thread
 *
 * When it may be freed: note: last touch.
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

/* As Netty's maxListenerStackDepth, for promises that complete each other in done(). */
#define PROMISE_NESTED_MAX 8

enum promise_state {
    PROMISE_PENDING,
    PROMISE_UNCANCELLABLE, /* pending */
    PROMISE_SUCCEEDED,
    PROMISE_FAILED,
    PROMISE_CANCELLED
};

/* May be freed once done() is called. */
struct promise_listener {
    struct list link;
    void (*done)(struct promise_listener *l, struct promise *p);
};

/*
 * note: completion. The state changes only under the lock, so one completion wins. The error is
 * written before the state is released; a reader that acquires a completed state sees it without
 * the lock.
 *
 * note: last touch. A promise may be freed
 *
 *   - by a waiting thread, when promise_await() has returned to all waiters, with 0 to one of them,
 *     and no listener was added;
 *   - by the last listener ever added, in its done(), or by a thread that gets the promise there;
 *   - by its creator, if no other thread knows it.
 *
 * Completion sets the state, wakes waiters and checks for listeners in one critical section;
 * without listeners, unlocking is its last access. That suffices: a mutex may be destroyed once it
 * can be locked, even if another thread still leaves pthread_mutex_unlock() (POSIX, rationale of
 * pthread_mutex_destroy()). So promise_await() locks even a complete promise; it permits freeing,
 * promise_is_done() does not.
 *
 * The notifying thread returns to the promise after each listener, but the last may have closed it.
 * So the promise points to the notifier meanwhile, and promise_close() marks it, under a stripe: a
 * lock that outlives both.
 */
struct promise {
    atomic_int state;
    int error; /* FAILED: -errno; CANCELLED: -ECANCELED; else 0 */
    struct loop *loop;
    struct task notify; /* notifies on the loop */
    pthread_mutex_t lock;
    pthread_cond_t completed;
    struct list listeners;             /* under the lock */
    bool notifying;                    /* under the lock: begun or queued */
    struct promise_notifier *notifier; /* see note: last touch */
};

/*
 * promise_init(p, loop):
 * Initialize as pending; listeners run on ${loop} (NULL: anywhere).
 *
 * Thread: any
 * Owns:   ${loop} may end before ${p} completes, but be destroyed only after the listeners were
 *         called
 */
void promise_init(struct promise *p, struct loop *loop);

/*
 * promise_close(p):
 * Release resources (note: last touch), complete or not; asserts that no listener is left.
 *
 * Thread: any
 */
void promise_close(struct promise *p);

/*
 * promise_succeed(p) / promise_fail(p, error):
 * Complete and notify. False: already complete.
 *
 * Thread: any
 * Owns:   a listener or waiter may free ${p} before this returns
 * Units:  ${error} -errno
 */
bool promise_succeed(struct promise *p);
bool promise_fail(struct promise *p, int error);

/*
 * promise_cancel(p):
 * As promise_fail(), but false also if uncancellable.
 *
 * Thread: any
 */
bool promise_cancel(struct promise *p);

/*
 * promise_set_uncancellable(p):
 * Refuse promise_cancel(). False: already cancelled.
 *
 * Thread: any
 */
bool promise_set_uncancellable(struct promise *p);

/*
 * promise_listen(p, l):
 * Call ${l} on completion, maybe inside this call; if the loop refuses, elsewhere: check
 * loop_is_current().
 *
 * Thread: any
 * Owns:   ${l} must live until called; ${p} as promise_succeed()
 */
void promise_listen(struct promise *p, struct promise_listener *l);

/*
 * promise_await(p, timeout_ns):
 * Wait for completion (CLOCK_NEVER: for ever; 0 or less: only look); listeners may still be
 * pending. Never waits on a loop's thread: completion might need it.
 *
 * Thread: any
 * Errors: 0 (complete, whatever the outcome); -ETIMEDOUT; -EDEADLK (on a loop's thread)
 */
int promise_await(struct promise *p, int64_t timeout_ns) NODISCARD;

/*
 * promise_state(p) / promise_is_done(p):
 * Return the state / whether it is complete.
 *
 * Thread: any
 */
enum promise_state promise_state(const struct promise *p);
bool promise_is_done(const struct promise *p);

/*
 * promise_error(p):
 * Return a complete promise's outcome: 0 or -errno.
 *
 * Thread: any
 */
int promise_error(const struct promise *p);

#endif
