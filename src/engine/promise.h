/*
 * engine/promise: promise/future: an outcome that is set once, with listeners.
 *
 *   PENDING -------------------> SUCCEEDED | FAILED | CANCELLED
 *      \--> UNCANCELLABLE -----> SUCCEEDED | FAILED
 *
 * The first completion wins. Listeners are called one after another, in order of addition:
 *
 *   with a loop     on its thread: inside the call that completes the promise or adds the listener,
 *                   or in a control task. On another thread if the loop refuses or drops the task
 *   without a loop  on the thread that completes the promise or adds the listener, or on a thread
 *                   that is still calling earlier listeners
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

/* Limit of nested notifications: done() may complete another promise. */
#define PROMISE_NESTED_MAX 8

enum promise_state {
    PROMISE_PENDING,
    PROMISE_UNCANCELLABLE, /* pending, but promise_cancel() is refused */
    PROMISE_SUCCEEDED,
    PROMISE_FAILED,
    PROMISE_CANCELLED
};

/* A completion callback. done() may free the listener. */
struct promise_listener {
    struct list link;
    void (*done)(struct promise_listener *l, struct promise *p);
};

/*
 * note: completion. The state changes only under the lock, so one completion wins. The error is
 * written before the state is stored (release); a reader that loads a completed state (acquire)
 * sees the error without the lock.
 *
 * note: last touch. A promise may be freed
 *
 *   - without listeners: by a waiting thread, after promise_await() has returned to all waiters,
 *     at least once with 0;
 *   - in done() of the last listener ever added, or by a thread that done() hands it to;
 *   - by its creator, if no other thread knows it.
 *
 * Completion is one critical section; without listeners, the unlock is its last access to the
 * promise. A mutex may be destroyed once it can be locked (POSIX, rationale of
 * pthread_mutex_destroy()). So promise_await() locks even a completed promise. promise_is_done()
 * does not: freeing is not safe after it.
 *
 * The notifying thread accesses the promise after each done(), but the last done() may have closed
 * the promise. So the promise points to a notifier on that thread's stack, in which promise_close()
 * sets `is_over`. That thread and promise_close() access the notifier under the stripe, a static
 * lock.
 */
struct promise {
    atomic_int state;
    int error; /* FAILED: -errno; CANCELLED: -ECANCELED; else 0 */
    struct loop *loop;
    struct task notify; /* calls the listeners on the loop */
    pthread_mutex_t lock;
    pthread_cond_t completed;
    struct list listeners;             /* under the lock */
    bool notifying;                    /* under the lock: notification has begun or is queued */
    struct promise_notifier *notifier; /* see note: last touch */
};

/*
 * promise_init(p, loop):
 * Initialize ${p} as pending. Listeners run on ${loop}; NULL: on any thread.
 *
 * Owns:   ${loop} may end, but not be destroyed, before the listeners are called
 */
void promise_init(struct promise *p, struct loop *loop);

/*
 * promise_close(p):
 * Release the resources of ${p}, completed or not (note: last touch). No listener may be left.
 */
void promise_close(struct promise *p);

/*
 * promise_succeed(p) / promise_fail(p, error):
 * Complete ${p} and notify listeners. False: already complete.
 *
 * Owns:   a listener or waiter may free ${p} before this returns
 * Units:  ${error} -errno
 */
bool promise_succeed(struct promise *p);
bool promise_fail(struct promise *p, int error);

/* promise_cancel(p): complete ${p} as cancelled, with -ECANCELED. False also if uncancellable. */
bool promise_cancel(struct promise *p);

/*
 * promise_set_uncancellable(p):
 * Make promise_cancel() fail from now on. False: already cancelled.
 */
bool promise_set_uncancellable(struct promise *p);

/*
 * promise_listen(p, l):
 * Call ${l} on completion, perhaps inside this call. ${l} runs on another thread if the loop
 * refuses or drops the task: check loop_is_current().
 *
 * Owns:   ${l} must live until called; ${p} as for promise_succeed()
 */
void promise_listen(struct promise *p, struct promise_listener *l);

/*
 * promise_await(p, timeout_ns):
 * Wait for completion (CLOCK_NEVER: for ever; <= 0: do not wait). Listeners may be called later.
 * Refuses to wait on a loop's thread, because completion might need that thread.
 *
 * Errors: 0 (complete, whatever the outcome); -ETIMEDOUT; -EDEADLK (on a loop's thread)
 */
int promise_await(struct promise *p, int64_t timeout_ns) NODISCARD;

/* promise_state(p) / promise_is_done(p): return the state / is ${p} complete? */
enum promise_state promise_state(const struct promise *p);
bool promise_is_done(const struct promise *p);

/* promise_error(p): return the outcome of a completed promise: 0 or -errno. */
int promise_error(const struct promise *p);

#endif
