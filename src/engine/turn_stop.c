/* engine/turn_stop: step 7 of a turn: shutting the loop down. */
#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_internal.h"

bool turn_stop_requested(const struct loop *l)
{
    return l->stop_began_at_ns == 0 && atomic_load(&l->state) >= LOOP_SHUTTING_DOWN;
}

int64_t turn_stop_next_at_ns(const struct loop *l)
{
    int64_t quiet_at_ns, limit_at_ns;

    if (l->stop_began_at_ns == 0)
        return CLOCK_NEVER;
    quiet_at_ns = clock_add_ns(l->last_task_at_ns, atomic_load(&l->stop_quiet_ns));
    limit_at_ns = clock_add_ns(l->stop_began_at_ns, atomic_load(&l->stop_timeout_ns));
    return clock_sooner(quiet_at_ns, limit_at_ns);
}

static void turn_stop_drop_timer(struct loop *l, struct timer *t)
{
    timer_heap_remove(&l->schedule, t);
    t->period_ns = 0;
    if (atomic_load_explicit(&t->claim, memory_order_acquire) != TIMER_FREE &&
        !timer_move_claim(t, TIMER_HELD, TIMER_FREE)) /* see note: claim in timer.h */
        return;
    task_drop(&t->task);
    TELEMETRY_ADD(l->telemetry.tasks_dropped, 1);
}

static void turn_stop_drop_timers(struct loop *l)
{
    struct timer *t;

    while ((t = timer_heap_first_due(&l->schedule)))
        turn_stop_drop_timer(l, t);
    while ((t = timer_heap_take_due(&l->schedule, CLOCK_NEVER)))
        turn_stop_drop_timer(l, t);
}

static void turn_stop_run_tasks(struct loop *l)
{
    struct task *t;

    while ((t = task_list_take(&l->at_stop))) {
        loop_set_activity(l, t->type->name);
        t->type->run(t);
    }
}

static void turn_stop_log_timeout(struct loop *l)
{
    const struct task *first = NULL;
    uint64_t n = 0;

    for (unsigned i = 0; i < LOOP_QUEUES; i++) {
        queue_take(&l->queues[i]);
        if (!first)
            first = queue_peek(&l->queues[i]);
        n += gate_count(&l->queues[i].gate);
    }
    if (first)
        log_warning("loop %s: stop timed out after %.1f s; tasks dropped: %llu, the first: %s",
                    l->name, (double)(clock_now_ns() - l->stop_began_at_ns) / (double)NS_PER_S,
                    (unsigned long long)n, first->type->name);
}

static bool turn_stop_may_end(struct loop *l)
{
    int64_t now_ns = clock_now_ns();

    if (now_ns - l->stop_began_at_ns >= atomic_load(&l->stop_timeout_ns)) {
        turn_stop_log_timeout(l);
        return true;
    }
    if (turn_has_work(l))
        return false;
    return now_ns - l->last_task_at_ns >= atomic_load(&l->stop_quiet_ns);
}

bool turn_stop_run(struct loop *l)
{
    if (atomic_load_explicit(&l->state, memory_order_acquire) < LOOP_SHUTTING_DOWN)
        return true;
    if (l->stop_began_at_ns == 0)
        l->stop_began_at_ns = clock_now_ns();
    turn_stop_run_tasks(l);
    turn_stop_drop_timers(l);
    turn_reap(l);
    if (!turn_stop_may_end(l))
        return true;
    loop_refuse_and_drop(l);
    do { /* drop() and run() may add tasks */
        turn_stop_run_tasks(l);
        turn_stop_drop_timers(l);
        turn_reap(l);
    } while (l->at_stop.first || l->schedule.count > 0 || l->reap.first);
    return false;
}
