#include "engine/promise.h"

#include <errno.h>
#include <stdalign.h>
#include <time.h>

#include "base/cache_line.h"
#include "base/clock.h"
#include "engine/loop.h"
#include "engine/task_list.h"

#define STRIPES 64

/* A notification under way, on the notifying thread's stack. */
struct promise_notifier {
    pthread_mutex_t *stripe;
    bool is_over; /* the promise was closed; under the lock `stripe` */
};

/* Static locks. Each guards the notifiers of the promises whose addresses hash to it. */
static struct {
    alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
} stripes[STRIPES] = {[0 ... STRIPES - 1] = {PTHREAD_MUTEX_INITIALIZER}};

/* How deep this thread's notifications are nested, and the promises deferred to depth 0. */
static _Thread_local struct {
    unsigned depth;
    struct task_list later; /* `notify` of each promise */
} here;

static void promise_on_notify(struct task *t);

/* A dropped task still notifies. */
static const struct task_type notify_type = {
    .name = "promise", .run = promise_on_notify, .drop = promise_on_notify};

void promise_init(struct promise *p, struct loop *loop)
{
    pthread_condattr_t attr;

    atomic_init(&p->state, PROMISE_PENDING);
    p->error = 0;
    p->loop = loop;
    p->notify.type = &notify_type;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->completed, &attr);
    pthread_condattr_destroy(&attr);
    list_init(&p->listeners);
    p->notifying = false;
    p->notifier = NULL;
}

/* Knuth's multiplicative hash of the address. */
static pthread_mutex_t *promise_stripe(const struct promise *p)
{
    uint32_t hash = (uint32_t)((uintptr_t)p >> 4) * UINT32_C(2654435761);

    return &stripes[hash / (UINT32_MAX / STRIPES + 1)].lock;
}

void promise_close(struct promise *p)
{
    pthread_mutex_t *stripe = promise_stripe(p);

    MUST(list_empty(&p->listeners));
    pthread_mutex_lock(stripe);
    if (p->notifier)
        p->notifier->is_over = true;
    pthread_mutex_unlock(stripe);
    pthread_cond_destroy(&p->completed);
    pthread_mutex_destroy(&p->lock);
}

/* Must the caller notify the listeners? Called under the promise's lock. */
static bool promise_claim_notifying(struct promise *p)
{
    if (!promise_is_done(p) || p->notifying || list_empty(&p->listeners))
        return false;
    p->notifying = true;
    return true;
}

/* Unlink and return the next listener; NULL: none, or the promise was closed. */
static struct promise_listener *promise_take(struct promise *p, struct promise_notifier *me)
{
    struct promise_listener *l = NULL;

    pthread_mutex_lock(me->stripe);
    if (!me->is_over) {
        pthread_mutex_lock(&p->lock);
        if (!list_empty(&p->listeners)) {
            l = LIST_FIRST(&p->listeners, struct promise_listener, link);
            list_remove(&l->link);
        }
        p->notifying = l != NULL;
        p->notifier = l ? me : NULL;
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(me->stripe);
    return l;
}

static void promise_tell(struct promise *p)
{
    struct promise_notifier me = {.stripe = promise_stripe(p)};
    struct promise_listener *l;

    here.depth++;
    while ((l = promise_take(p, &me)))
        l->done(l, p);
    here.depth--;
}

/* To bound the stack, deeply nested notifications are left to the outermost call. */
static void promise_tell_here(struct promise *p)
{
    struct task *t;

    if (here.depth >= PROMISE_NESTED_MAX) {
        task_list_append(&here.later, &p->notify);
        return;
    }
    promise_tell(p);
    while (here.depth == 0 && (t = task_list_take(&here.later)))
        promise_tell(CONTAINER_OF(t, struct promise, notify));
}

static void promise_on_notify(struct task *t)
{
    promise_tell_here(CONTAINER_OF(t, struct promise, notify));
}

/* Call the listeners after promise_claim_notifying() returned true, without the lock. */
static void promise_notify(struct promise *p)
{
    bool elsewhere = p->loop && (!loop_is_current(p->loop) || here.depth >= PROMISE_NESTED_MAX);

    if (elsewhere && loop_submit(p->loop, LOOP_CONTROL, &p->notify) == 0)
        return; /* ${p} may be freed by now */
    promise_tell_here(p);
}

/* Called under the lock. */
static bool promise_may_become(const struct promise *p, enum promise_state state)
{
    enum promise_state now = promise_state(p);

    return now == PROMISE_PENDING || (now == PROMISE_UNCANCELLABLE && state != PROMISE_CANCELLED);
}

static bool promise_complete(struct promise *p, enum promise_state state, int error)
{
    bool is_first, notify = false;

    pthread_mutex_lock(&p->lock);
    is_first = promise_may_become(p, state);
    if (is_first) {
        p->error = error;
        atomic_store_explicit(&p->state, (int)state,
                              memory_order_release); /* see note: completion */
        pthread_cond_broadcast(&p->completed);
        notify = promise_claim_notifying(p);
    }
    pthread_mutex_unlock(&p->lock); /* see note: last touch */
    if (notify)
        promise_notify(p);
    return is_first;
}

bool promise_succeed(struct promise *p)
{
    return promise_complete(p, PROMISE_SUCCEEDED, 0);
}

bool promise_fail(struct promise *p, int error)
{
    MUST(error < 0);
    return promise_complete(p, PROMISE_FAILED, error);
}

bool promise_cancel(struct promise *p)
{
    return promise_complete(p, PROMISE_CANCELLED, -ECANCELED);
}

bool promise_set_uncancellable(struct promise *p)
{
    bool was_cancelled;

    pthread_mutex_lock(&p->lock);
    if (promise_state(p) == PROMISE_PENDING)
        atomic_store_explicit(&p->state, PROMISE_UNCANCELLABLE, memory_order_relaxed);
    was_cancelled = promise_state(p) == PROMISE_CANCELLED;
    pthread_mutex_unlock(&p->lock);
    return !was_cancelled;
}

void promise_listen(struct promise *p, struct promise_listener *l)
{
    bool notify;

    pthread_mutex_lock(&p->lock);
    list_append(&p->listeners, &l->link);
    notify = promise_claim_notifying(p);
    pthread_mutex_unlock(&p->lock); /* see note: last touch */
    if (notify)
        promise_notify(p);
}

/* Wait for completion. Called under the lock. */
static int promise_wait_until(struct promise *p, int64_t until_at_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_at_ns / NS_PER_S),
                             .tv_nsec = (long)(until_at_ns % NS_PER_S)};
    int rc = 0;

    while (!promise_is_done(p) && rc == 0)
        rc = pthread_cond_timedwait(&p->completed, &p->lock, &until);
    MUST(rc == 0 || rc == ETIMEDOUT);
    return promise_is_done(p) ? 0 : -ETIMEDOUT;
}

int promise_await(struct promise *p, int64_t timeout_ns)
{
    int rc;

    pthread_mutex_lock(&p->lock); /* lock even if the promise is complete; see note: last touch */
    if (promise_is_done(p))
        rc = 0;
    else if (loop_current())
        rc = -EDEADLK;
    else if (timeout_ns <= 0)
        rc = -ETIMEDOUT;
    else
        rc = promise_wait_until(p, clock_add_ns(clock_now_ns(), timeout_ns));
    pthread_mutex_unlock(&p->lock);
    return rc;
}

enum promise_state promise_state(const struct promise *p)
{
    return (enum promise_state)atomic_load_explicit(&p->state, memory_order_acquire);
}

bool promise_is_done(const struct promise *p)
{
    return promise_state(p) >= PROMISE_SUCCEEDED;
}

int promise_error(const struct promise *p)
{
    MUST(promise_is_done(p));
    return p->error;
}
