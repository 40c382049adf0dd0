/* engine/executor_thread: threads of an executor (note: calling in executor_internal.h). */
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "engine/executor_internal.h"
#include "engine/strand_internal.h"

static _Thread_local struct executor_thread *executor_thread_self;

bool executor_thread_is_current(const struct executor *e)
{
    return executor_thread_self && executor_thread_self->executor == e;
}

static void executor_thread_stop_idling(struct executor *e, struct executor_thread *th)
{
    if (!list_empty(&th->idle)) {
        list_remove(&th->idle);
        e->n_idle--;
    }
    if (e->timekeeper == th)
        e->timekeeper = NULL;
}

/*
 * Wake the thread that became idle last, whose caches are warm; the timekeeper only if no other
 * thread is idle.
 */
static void executor_thread_call_idle(struct executor *e)
{
    struct list *last = e->idle.prev;
    struct executor_thread *th = LIST_ENTRY(last, struct executor_thread, idle);

    if (th == e->timekeeper && last->prev != &e->idle)
        th = LIST_ENTRY(last->prev, struct executor_thread, idle);
    executor_thread_stop_idling(e, th);
    pthread_cond_signal(&th->wake);
}

/* Start a further thread. The executor works without it: only the first failure is logged. */
static void executor_thread_start_another(struct executor *e)
{
    bool failed_before = e->start_failed_at_ns > 0;

    if (failed_before && clock_now_ns() - e->start_failed_at_ns < EXECUTOR_RETRY_NS)
        return;
    if (executor_thread_start(e) < 0 && !failed_before)
        e->start_error = EAGAIN;
}

void executor_thread_wake(struct executor *e)
{
    uint64_t wanted = e->n_queued + e->schedule.n_due + (e->schedule.count > 0 && !e->timekeeper);
    unsigned coming = e->n_threads - e->n_ended - e->n_busy - e->n_idle;

    if (wanted <= coming)
        return;
    if (e->n_idle > 0)
        executor_thread_call_idle(e);
    else if (e->n_threads < e->max_threads && e->state == EXECUTOR_OPEN)
        executor_thread_start_another(e);
}

void executor_thread_call_all(struct executor *e)
{
    while (e->n_idle > 0)
        executor_thread_call_idle(e);
}

static void executor_thread_wait_for_call(struct executor *e, struct executor_thread *me)
{
    int64_t until_ns = CLOCK_NEVER;

    if (!e->timekeeper && e->schedule.count > 0) {
        e->timekeeper = me;
        until_ns = timer_heap_next_at_ns(&e->schedule);
    }
    list_append(&e->idle, &me->idle);
    e->n_idle++;
    executor_sleep(e, &me->wake, until_ns);
    executor_thread_stop_idling(e, me);
}

/*
 * Let due timers run after the tasks queued before them, so that tasks and timers do not starve
 * each other.
 */
static void executor_thread_fetch_due(struct executor *e)
{
    int64_t now_ns;

    if (e->schedule.count == 0)
        return;
    now_ns = clock_now_ns();
    timer_heap_fetch_due(&e->schedule, now_ns, now_ns, e->n_taken + e->n_queued,
                         TIMER_HEAP_DUE_MAX);
}

static struct task *executor_thread_take_due(struct executor *e)
{
    struct timer *t = timer_heap_first_due(&e->schedule);

    if (!t || t->order > e->n_taken)
        return NULL;
    timer_heap_remove(&e->schedule, t);
    return &t->task;
}

/*
 * Take a due timer, or else the first place; NULL: none. A queued task counts as begun; tasks of a
 * strand do not yet.
 */
static struct task *executor_thread_take_place(struct executor *e)
{
    struct task *t = executor_thread_take_due(e);

    if (t)
        return t;
    t = task_list_take(&e->queue);
    if (!t)
        return NULL;
    e->n_queued--;
    e->n_taken++;
    if (!strand_of(t))
        executor_count_out(e, 1);
    return t;
}

static struct task *executor_thread_take_task(struct executor *e, struct executor_thread *me)
{
    struct task *t;

    for (;;) {
        if (me->strand) {
            t = strand_take(me->strand);
            if (t)
                return t;
        }
        t = executor_thread_take_place(e);
        me->strand = t ? strand_of(t) : NULL;
        if (!me->strand)
            return t;
    }
}

void executor_thread_finish(struct executor *e)
{
    struct task_list rest = {0};
    struct task *t;

    e->state = EXECUTOR_OVER;
    while ((t = executor_thread_take_place(e))) {
        struct strand *s = strand_of(t);

        if (s) {
            strand_take_all(s, &rest);
            MUST(!strand_take(s));
        } else {
            task_list_append(&rest, t);
            e->tasks_dropped++;
        }
    }
    for (unsigned i = 0; i < e->n_threads; i++)
        if (e->threads[i].strand)
            strand_take_all(e->threads[i].strand, &rest);
    executor_unlock(e);
    while ((t = task_list_take(&rest)))
        task_drop(t);
    executor_lock(e);
}

/* Wait for a task and return it; NULL: the thread must end. */
static struct task *executor_thread_next_task(struct executor *e, struct executor_thread *me)
{
    struct task *t;

    for (;;) {
        if (e->state == EXECUTOR_DRAINING && clock_now_ns() >= e->stop_at_ns)
            executor_thread_finish(e);
        executor_thread_fetch_due(e);
        t = executor_thread_take_task(e, me);
        if (t || e->state != EXECUTOR_OPEN)
            return t;
        executor_thread_wait_for_call(e, me);
    }
}

static void executor_thread_run_task(struct executor *e, struct executor_thread *me, struct task *t)
{
    int64_t took_ns;

    me->running = t->type->name;
    me->began_at_ns = clock_now_ns();
    e->n_busy++;
    executor_thread_wake(e);
    executor_unlock(e);
    t->type->run(t);
    executor_lock(e);
    took_ns = clock_now_ns() - me->began_at_ns;
    if (took_ns > e->longest_ns) {
        e->longest_ns = took_ns;
        e->longest_name = me->running;
    }
    me->running = NULL;
    e->tasks_run++;
    e->n_busy--;
}

static void executor_thread_set_name(const struct executor *e, const struct executor_thread *me)
{
    char suffix[24], name[EXECUTOR_NAME_BYTES + sizeof(suffix)];
    int space =
        EXECUTOR_NAME_BYTES - 1 - snprintf(suffix, sizeof(suffix), "-%u-%u", e->pool, me->number);

    snprintf(name, sizeof(name), "%.*s%s", space > 0 ? space : 0, e->name, suffix);
    prctl(PR_SET_NAME, name);
}

static void *executor_thread_main(void *arg)
{
    struct executor_thread *me = arg;
    struct executor *e = me->executor;
    struct task *t;

    executor_thread_self = me;
    executor_thread_set_name(e, me);
    affinity_take(&e->affinity, e->name);
    executor_lock(e);
    while ((t = executor_thread_next_task(e, me)))
        executor_thread_run_task(e, me, t);
    e->n_ended++;
    pthread_cond_signal(&e->ended);
    executor_unlock(e);
    return NULL;
}

int executor_thread_start(struct executor *e)
{
    struct executor_thread *th = &e->threads[e->n_threads];

    if (pthread_create(&th->id, NULL, executor_thread_main, th) != 0) {
        e->start_failed_at_ns = clock_now_ns();
        return -EAGAIN;
    }
    e->start_failed_at_ns = 0;
    e->n_threads++;
    return 0;
}
