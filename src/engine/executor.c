#include "engine/executor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/executor_internal.h"
#include "engine/loop.h"
#include "engine/strand_internal.h"

static void executor_init_condition(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int executor_create(struct executor **out, const struct executor_conf *conf)
{
    struct executor *e;

    MUST(conf->threads > 0);
    e = calloc(1, sizeof(*e) + conf->threads * sizeof(e->threads[0]));
    if (!e)
        return -ENOMEM;
    snprintf(e->name, sizeof(e->name), "%s", conf->name);
    e->pool = conf->pool;
    e->max_threads = conf->threads;
    e->max_pending = conf->max_pending_tasks;
    if (e->max_pending < EXECUTOR_PENDING_MIN)
        e->max_pending = EXECUTOR_PENDING_MIN;
    affinity_note(&e->affinity, &(struct affinity_conf){.pinned = false});
    pthread_mutex_init(&e->lock, NULL);
    executor_init_condition(&e->ended);
    timer_heap_init(&e->schedule);
    list_init(&e->idle);
    for (unsigned i = 0; i < e->max_threads; i++) {
        e->threads[i].executor = e;
        e->threads[i].number = i + 1;
        executor_init_condition(&e->threads[i].wake);
        list_init(&e->threads[i].idle);
    }
    *out = e;
    return 0;
}

void executor_destroy(struct executor *e)
{
    if (!e)
        return;
    MUST(!executor_thread_is_current(e));
    MUST(e->n_joined == e->n_threads);
    MUST(e->n_pending == 0 && e->n_queued == 0);
    for (unsigned i = 0; i < e->max_threads; i++)
        pthread_cond_destroy(&e->threads[i].wake);
    pthread_cond_destroy(&e->ended);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

void executor_lock(struct executor *e)
{
    pthread_mutex_lock(&e->lock);
}

static void executor_tell_thread(struct task_list *waiters)
{
    struct task *t;

    while ((t = task_list_take(waiters))) {
        struct executor_waiter *w = TIMER_OWNER(t, struct executor_waiter, timer);

        if (loop_submit(w->loop, LOOP_CONTROL, t) < 0)
            task_drop(t);
    }
}

void executor_unlock(struct executor *e)
{
    struct task_list told = e->told;
    unsigned n_threads = e->n_threads;
    int error = e->start_error;

    e->told = (struct task_list){0};
    e->start_error = 0;
    pthread_mutex_unlock(&e->lock);
    if (error)
        log_warning("executor %s: cannot start another thread: %s; threads running: %u", e->name,
                    strerror(error), n_threads);
    executor_tell_thread(&told);
}

void executor_sleep(struct executor *e, pthread_cond_t *cond, int64_t at_ns)
{
    struct timespec at = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};

    if (at_ns == CLOCK_NEVER)
        pthread_cond_wait(cond, &e->lock);
    else
        pthread_cond_timedwait(cond, &e->lock, &at);
}

/* Must ${w} wait for other strands (note: shares)? */
static bool executor_is_others_turn(const struct executor *e, const struct executor_waiter *w)
{
    return w->n_places == 0 && (e->n_waiting > 0 || e->n_places > 0);
}

static int executor_check_admission(struct executor *e, const struct executor_waiter *w)
{
    if (e->state != EXECUTOR_OPEN)
        return -ESHUTDOWN;
    if (e->n_pending >= e->max_pending || (w && executor_is_others_turn(e, w)))
        return -EAGAIN;
    return e->n_threads > 0 ? 0 : executor_thread_start(e);
}

int executor_admit(struct executor *e, struct executor_waiter *w)
{
    int rc = executor_check_admission(e, w);

    if (rc < 0) {
        e->tasks_rejected++;
        return rc;
    }
    e->n_pending++;
    if (w && w->n_places > 0) {
        w->n_places--;
        e->n_places--;
    }
    return 0;
}

void executor_tell(struct executor *e, struct executor_waiter *w)
{
    task_list_append(&e->told, &w->timer.task);
}

static struct executor_waiter *executor_take_waiter(struct executor *e)
{
    if (e->n_waiting == 0)
        return NULL;
    e->n_waiting--;
    return CONTAINER_OF(task_list_take(&e->waiting), struct executor_waiter, timer.task);
}

/* Places for new shares (note: shares). */
static uint64_t executor_free_places(const struct executor *e)
{
    uint64_t half = e->max_pending / 2, kept = e->n_places < half ? e->n_places : half;

    return e->n_pending > half ? 0 : e->max_pending - e->n_pending - kept;
}

/* The share of one strand: a part of max_pending, not of the free places, to be fair over time. */
static uint64_t executor_share_of_each(const struct executor *e)
{
    uint64_t n = e->n_contending > 2 ? e->n_contending : 2; /* a single waiter gets half */

    return n < e->max_pending ? e->max_pending / n : 1;
}

static void executor_notify_waiters(struct executor *e)
{
    uint64_t left = executor_free_places(e), share = executor_share_of_each(e);
    struct executor_waiter *w;

    while ((e->state != EXECUTOR_OPEN || left >= share) && (w = executor_take_waiter(e))) {
        if (!w->gone && e->state == EXECUTOR_OPEN) {
            w->n_places = (unsigned)share;
            e->n_places += share;
            left -= share;
        }
        executor_tell(e, w);
    }
}

void executor_give_back(struct executor *e, struct executor_waiter *w)
{
    if (w->n_places == 0)
        return;
    e->n_places -= w->n_places;
    w->n_places = 0;
    executor_notify_waiters(e);
}

void executor_leave(struct executor *e, struct executor_waiter *w)
{
    e->n_contending -= w->contends;
    w->contends = false;
    executor_give_back(e, w);
}

void executor_return_share(struct executor *e, struct executor_waiter *w)
{
    executor_lock(e);
    executor_leave(e, w);
    executor_unlock(e);
}

void executor_count_out(struct executor *e, unsigned n)
{
    e->n_pending -= n;
    executor_notify_waiters(e);
}

void executor_push(struct executor *e, struct task *place)
{
    task_list_append(&e->queue, place);
    e->n_queued++;
    executor_thread_wake(e);
}

int executor_submit(struct executor *e, struct task *t)
{
    int rc;

    t->queued_at_ns = clock_now_ns();
    executor_lock(e);
    rc = executor_admit(e, NULL);
    if (rc == 0)
        executor_push(e, t);
    executor_unlock(e);
    return rc;
}

int executor_submit_more(struct executor *e, struct task *t)
{
    int rc = 0;

    MUST(executor_thread_is_current(e));
    t->queued_at_ns = clock_now_ns();
    executor_lock(e);
    if (e->state == EXECUTOR_OVER) {
        rc = -ESHUTDOWN;
        e->tasks_rejected++;
    } else {
        e->n_pending++;
        executor_push(e, t);
    }
    executor_unlock(e);
    return rc;
}

void executor_await_capacity(struct executor *e, struct executor_waiter *w, struct loop *loop)
{
    bool has_thread;

    MUST(loop_is_current(loop));
    w->loop = loop;
    executor_lock(e);
    has_thread = e->n_threads > 0 || e->state != EXECUTOR_OPEN;
    if (has_thread) {
        task_list_append(&e->waiting, &w->timer.task);
        e->n_waiting++;
        e->n_contending += !w->contends;
        w->contends = true;
        executor_notify_waiters(e);
    }
    executor_unlock(e);
    if (!has_thread)
        loop_schedule(loop, &w->timer, EXECUTOR_RETRY_NS);
}

static void executor_add_timer(struct executor *e, struct timer *t)
{
    timer_heap_add(&e->schedule, t);
    if (e->timekeeper && e->schedule.root == t)
        pthread_cond_signal(&e->timekeeper->wake);
    executor_thread_wake(e);
}

int executor_schedule(struct executor *e, struct timer *t, int64_t delay_ns)
{
    int rc = 0;

    t->at_ns = clock_add_ns(clock_now_ns(), delay_ns);
    t->period_ns = 0;
    executor_lock(e);
    if (e->state != EXECUTOR_OPEN)
        rc = -ESHUTDOWN;
    else if (e->n_threads == 0)
        rc = executor_thread_start(e);
    if (rc == 0)
        executor_add_timer(e, t);
    else
        e->tasks_rejected++;
    executor_unlock(e);
    return rc;
}

static void executor_take_timers(struct executor *e, struct task_list *out)
{
    struct timer *t;

    while ((t = timer_heap_take_due(&e->schedule, CLOCK_NEVER))) {
        task_list_append(out, &t->task);
        e->tasks_dropped++;
    }
}

void executor_stop(struct executor *e, int64_t timeout_ns)
{
    struct task_list timers = {0};
    struct task *t;

    MUST(timeout_ns >= 0);
    MUST(!executor_thread_is_current(e));
    executor_lock(e);
    if (e->state == EXECUTOR_OPEN) {
        e->state = EXECUTOR_DRAINING;
        e->stop_at_ns = clock_add_ns(clock_now_ns(), timeout_ns);
        executor_take_timers(e, &timers);
        executor_notify_waiters(e);
        executor_thread_call_all(e);
        if (timeout_ns == 0)
            executor_thread_finish(e);
    }
    executor_unlock(e);
    while ((t = task_list_take(&timers)))
        task_drop(t);
}

static void executor_join_threads(struct executor *e)
{
    while (e->n_joined < e->n_threads)
        pthread_join(e->threads[e->n_joined++].id, NULL);
}

int executor_join(struct executor *e, int64_t timeout_ns)
{
    int64_t until_ns = clock_add_ns(clock_now_ns(), timeout_ns);
    bool all_ended;

    MUST(!loop_current() && !executor_thread_is_current(e));
    executor_lock(e);
    MUST(e->state != EXECUTOR_OPEN);
    while (e->n_ended < e->n_threads) {
        bool drains = e->state == EXECUTOR_DRAINING;
        int64_t now_ns = clock_now_ns();

        if (drains && now_ns >= e->stop_at_ns)
            executor_thread_finish(e);
        else if (now_ns >= until_ns)
            break;
        else
            executor_sleep(e, &e->ended,
                           drains && e->stop_at_ns < until_ns ? e->stop_at_ns : until_ns);
    }
    all_ended = e->n_ended == e->n_threads;
    executor_unlock(e);
    if (!all_ended)
        return -ETIMEDOUT;
    executor_join_threads(e);
    return 0;
}

static int64_t executor_place_at_ns(struct task *place)
{
    struct strand *s = strand_of(place);

    return s ? strand_oldest_at_ns(s) : place->queued_at_ns;
}

static int64_t executor_oldest_at_ns(const struct executor *e)
{
    int64_t oldest_ns = CLOCK_NEVER;

    for (struct task *t = e->queue.first; t && oldest_ns == CLOCK_NEVER;
         t = atomic_load_explicit(&t->next, memory_order_relaxed))
        oldest_ns = executor_place_at_ns(t);
    for (unsigned i = 0; i < e->n_threads; i++) {
        const struct strand *s = e->threads[i].strand;
        int64_t at_ns = s ? strand_oldest_at_ns(s) : CLOCK_NEVER;

        oldest_ns = clock_sooner(oldest_ns, at_ns);
    }
    return oldest_ns;
}

static const struct executor_thread *executor_longest_running(const struct executor *e)
{
    const struct executor_thread *longest = NULL;

    for (unsigned i = 0; i < e->n_threads; i++) {
        const struct executor_thread *th = &e->threads[i];

        if (th->running && (!longest || th->began_at_ns < longest->began_at_ns))
            longest = th;
    }
    return longest;
}

void executor_stats(struct executor *e, struct executor_stats *out)
{
    const struct executor_thread *running;
    int64_t now_ns, oldest_ns;

    executor_lock(e);
    now_ns = clock_now_ns();
    oldest_ns = executor_oldest_at_ns(e);
    running = executor_longest_running(e);
    *out = (struct executor_stats){
        .threads = e->n_threads,
        .tasks_run = e->tasks_run,
        .tasks_dropped = e->tasks_dropped,
        .tasks_rejected = e->tasks_rejected,
        .tasks_pending = e->n_pending,
        .oldest_ns = oldest_ns == CLOCK_NEVER ? 0 : now_ns - oldest_ns,
        .longest_ns = e->longest_ns,
        .longest_name = e->longest_name,
        .running_name = running ? running->running : NULL,
        .running_ns = running ? now_ns - running->began_at_ns : 0,
    };
    executor_unlock(e);
}
