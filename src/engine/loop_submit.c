#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "engine/loop_internal.h"

/* One of this many tasks gets a timestamp, because reading the clock costs more than submitting. */
#define LOOP_STAMP_EACH 64

/*
 * Function calls between gate_enter() and queue_push() make a submit a quarter slower, because
 * other threads take the cache line meanwhile.
 */
#define LOOP_SUBMIT_INLINE static inline __attribute__((always_inline))

#define LOOP_NO_BOUND (UINT64_MAX >> 1)

static uint64_t loop_submit_max(const struct loop *l, enum loop_queue queue)
{
    return queue == LOOP_TASKS ? l->max_pending_tasks : LOOP_NO_BOUND;
}

static int64_t loop_submit_patiently(struct loop *l, enum loop_queue queue)
{
    const struct timespec delay = {.tv_sec = l->backoff.delay_ns / NS_PER_S,
                                   .tv_nsec = l->backoff.delay_ns % NS_PER_S};
    int64_t inside = -EAGAIN;

    for (unsigned i = 0; i < l->backoff.retries && inside == -EAGAIN; i++) {
        wakeup_send(&l->wakeup);
        nanosleep(&delay, NULL);
        inside = gate_enter(&l->queues[queue].gate, loop_submit_max(l, queue));
    }
    return inside;
}

/*
 * Try a refused gate_enter() again, if this thread may sleep. Returns the last result of
 * gate_enter().
 */
static int64_t loop_submit_refused(struct loop *l, enum loop_queue queue, int64_t error)
{
    if (error == -EAGAIN)
        wakeup_send(&l->wakeup); /* lazy tasks may have filled the queue without waking the loop */
    if (error == -EAGAIN && !loop_current())
        error = loop_submit_patiently(l, queue);
    if (error < 0)
        atomic_fetch_add_explicit(&l->tasks_rejected, 1, memory_order_relaxed);
    return error;
}

/* Queue ${t}, for which gate_enter() returned ${inside}. */
LOOP_SUBMIT_INLINE void loop_submit_push(struct loop *l, enum loop_queue queue, struct task *t,
                                         int64_t inside)
{
    t->queued_at_ns = inside % LOOP_STAMP_EACH == 0 ? clock_now_ns() : 0;
    if (inside == 0)
        TELEMETRY_SET(l->oldest_at_ns[queue], t->queued_at_ns);
    queue_push(&l->queues[queue], t);
}

LOOP_SUBMIT_INLINE int loop_submit_quietly(struct loop *l, enum loop_queue queue, struct task *t)
{
    int64_t inside;

    if (atomic_load(&l->state) == LOOP_NOT_STARTED) {
        int rc = loop_start(l);

        if (rc < 0)
            return rc;
    }
    inside = gate_enter(&l->queues[queue].gate, loop_submit_max(l, queue));
    if (inside < 0)
        inside = loop_submit_refused(l, queue, inside);
    if (inside < 0)
        return (int)inside;
    loop_submit_push(l, queue, t, inside);
    return 0;
}

/* Does the loop submit to itself? Then count the task; it needs no wake-up. */
LOOP_SUBMIT_INLINE bool loop_submit_is_own(struct loop *l)
{
    if (loop_of_this_thread != l)
        return false;
    TELEMETRY_ADD(l->telemetry.tasks_own, 1);
    return true;
}

int loop_submit(struct loop *l, enum loop_queue queue, struct task *t)
{
    int rc = loop_submit_quietly(l, queue, t);

    if (rc == 0 && !loop_submit_is_own(l))
        wakeup_send(&l->wakeup);
    return rc;
}

int loop_submit_lazy(struct loop *l, enum loop_queue queue, struct task *t)
{
    bool is_first = loop_state(l) == LOOP_NOT_STARTED;
    int rc = loop_submit_quietly(l, queue, t);

    if (rc < 0 || loop_submit_is_own(l))
        return rc;
    atomic_fetch_add_explicit(&l->tasks_lazy, 1, memory_order_relaxed);
    if (is_first) /* wake the loop: its new thread may have gone to sleep before the push */
        wakeup_send(&l->wakeup);
    return 0;
}

/* Timers; see note: claim in timer.h. */

static struct timer *loop_timer_of(struct task *t)
{
    return CONTAINER_OF(t, struct timer, task);
}

static void loop_free_timer(struct timer *t)
{
    t->task.type = t->own_type;
    t->period_ns = 0;
    atomic_store_explicit(&t->claim, TIMER_FREE, memory_order_release);
}

static void loop_drop_timer(struct loop *l, struct timer *t)
{
    loop_free_timer(t);
    TELEMETRY_ADD(l->telemetry.tasks_dropped, 1);
    task_drop(&t->task);
}

static void loop_run_arrival(struct task *task)
{
    struct loop *l = loop_current();
    struct timer *t = loop_timer_of(task);

    task->type = t->own_type;
    if (timer_move_claim(t, TIMER_COMING, TIMER_HELD))
        timer_heap_add(&l->schedule, t);
    else
        loop_drop_timer(l, t);
}

/* The loop ended before the timer arrived; loop_drop_queue() counts the drop. */
static void loop_drop_arrival(struct task *task)
{
    loop_free_timer(loop_timer_of(task));
    task_drop(task);
}

static void loop_run_withdrawal(struct task *task)
{
    struct loop *l = loop_current();

    timer_heap_remove(&l->schedule, loop_timer_of(task));
    loop_drop_timer(l, loop_timer_of(task));
}

static void loop_drop_withdrawal(struct task *task)
{
    timer_heap_remove(&loop_current()->schedule, loop_timer_of(task));
    loop_free_timer(loop_timer_of(task));
    task_drop(task);
}

static const struct task_type loop_arrival_type = {
    .name = "timer arrives", .run = loop_run_arrival, .drop = loop_drop_arrival};
static const struct task_type loop_withdrawal_type = {
    .name = "timer withdrawn", .run = loop_run_withdrawal, .drop = loop_drop_withdrawal};

int loop_submit_after(struct loop *l, struct timer *t, int64_t delay_ns, int64_t period_ns)
{
    int64_t at_ns = clock_add_ns(clock_now_ns(), delay_ns);
    int rc;

    MUST(t->claim == TIMER_FREE && t->state == TIMER_IDLE);
    if (loop_of_this_thread)
        loop_end_period(loop_of_this_thread, t);
    t->at_ns = at_ns;
    t->period_ns = period_ns;
    t->own_type = t->task.type;
    t->task.type = &loop_arrival_type;
    atomic_store_explicit(&t->claim, TIMER_COMING, memory_order_release);
    rc = loop_submit_quietly(l, LOOP_TASKS, &t->task);
    if (rc < 0) {
        t->task.type = t->own_type;
        atomic_store_explicit(&t->claim, TIMER_FREE, memory_order_relaxed);
        return rc;
    }
    if (!loop_submit_is_own(l))
        wakeup_send_before(&l->wakeup, at_ns);
    return 0;
}

/* gate_enter() keeps the loop from ending during this call. */
bool loop_withdraw(struct loop *l, struct timer *t)
{
    int64_t inside = gate_enter(&l->queues[LOOP_CONTROL].gate, LOOP_NO_BOUND);
    bool arrived, withdrawn;

    if (inside < 0)
        return false;
    withdrawn = timer_move_claim(t, TIMER_COMING, TIMER_WITHDRAWN);
    arrived = !withdrawn && timer_move_claim(t, TIMER_HELD, TIMER_WITHDRAWN);
    if (arrived) {
        t->task.type = &loop_withdrawal_type;
        loop_submit_push(l, LOOP_CONTROL, &t->task, inside);
    } else {
        gate_leave(&l->queues[LOOP_CONTROL].gate, 1);
    }
    return withdrawn || arrived;
}
