#include "engine/loop.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_internal.h"

/* How long choosers avoid a loop after its thread failed to start. */
#define LOOP_START_RETRY_NS (1 * NS_PER_S)

_Thread_local struct loop *loop_of_this_thread;

static void loop_init(struct loop *l, const struct loop_conf *conf)
{
    memset(l, 0, sizeof(*l));
    snprintf(l->name, sizeof(l->name), "%s", conf->name);
    l->quantum_ns = conf->budget.quantum_ns;
    l->yields = conf->yields;
    l->stall_threshold_ns = conf->stall_threshold_ns;
    l->max_pending_tasks =
        conf->max_pending_tasks > LOOP_PENDING_MIN ? conf->max_pending_tasks : LOOP_PENDING_MIN;
    l->backoff = conf->backoff;
    affinity_note(&l->affinity, &conf->affinity);
    atomic_init(&l->io_ratio, conf->budget.io_ratio);
    atomic_init(&l->goal_ns, conf->budget.goal_ns);
    timer_heap_init(&l->schedule);
    pthread_mutex_init(&l->start_lock, NULL);
    promise_init(&l->terminated, NULL);
    for (unsigned i = 0; i < LOOP_QUEUES; i++) {
        queue_init(&l->queues[i]);
    }
    atomic_init(&l->state, LOOP_NOT_STARTED);
    atomic_init(&l->load, 0);
    atomic_init(&l->start_failed_at_ns, 0);
    atomic_init(&l->stop_quiet_ns, -1);
    atomic_init(&l->stop_timeout_ns, 0);
    l->last_task_at_ns = clock_now_ns();
}

static void loop_free(struct loop *l)
{
    promise_close(&l->terminated);
    pthread_mutex_destroy(&l->start_lock);
    free(l);
}

int loop_create(struct loop **out, const struct loop_conf *conf)
{
    struct loop *l = aligned_alloc(CACHE_LINE_BYTES, (sizeof(*l) + CACHE_LINE_BYTES - 1) /
                                                         CACHE_LINE_BYTES * CACHE_LINE_BYTES);
    int rc;

    if (!l)
        return -ENOMEM;
    loop_init(l, conf);
    rc = wakeup_open(&l->wakeup);
    if (rc < 0)
        goto err_free;
    rc = backend_open(&l->backend, l->name, l->wakeup.fd, conf->rebuild_threshold);
    if (rc < 0)
        goto err_wakeup;
    rc = loop_reserve_fd(l, l->wakeup.fd);
    if (rc < 0)
        goto err_backend;
    turn_init(l);
    *out = l;
    return 0;

err_backend:
    backend_close(&l->backend);
err_wakeup:
    wakeup_close(&l->wakeup);
err_free:
    loop_free(l);
    return rc;
}

void loop_destroy(struct loop *l)
{
    enum loop_state state = loop_state(l);

    MUST(!loop_is_current(l));
    if (state == LOOP_NOT_STARTED)
        loop_stop(l, 0, 0);
    MUST(loop_state(l) == LOOP_TERMINATED);
    pthread_mutex_lock(&l->start_lock); /* see note: end */
    pthread_mutex_unlock(&l->start_lock);
    backend_close(&l->backend);
    wakeup_close(&l->wakeup);
    loop_free(l);
}

void loop_set_state(struct loop *l, enum loop_state state)
{
    atomic_store(&l->state, (int)state);
}

static bool loop_move_state(struct loop *l, enum loop_state from, enum loop_state to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong(&l->state, &expected, (int)to);
}

static void loop_drop_queue(struct loop *l, unsigned queue)
{
    while (gate_count(&l->queues[queue].gate) > 0) {
        struct task *t;

        queue_take(&l->queues[queue]);
        t = queue_pop(&l->queues[queue]);
        if (!t) {
            sched_yield(); /* a producer has entered the gate, and not pushed yet */
            continue;
        }
        task_drop(t);
        gate_leave(&l->queues[queue].gate, 1);
        atomic_fetch_add_explicit(&l->telemetry.tasks_dropped, 1, memory_order_relaxed);
    }
}

void loop_refuse_and_drop(struct loop *l)
{
    loop_set_state(l, LOOP_SHUTDOWN);
    for (unsigned i = 0; i < LOOP_QUEUES; i++)
        gate_close(&l->queues[i].gate);
    for (unsigned i = 0; i < LOOP_QUEUES; i++)
        loop_drop_queue(l, i);
}

static void loop_end(struct loop *l)
{
    TELEMETRY_SET(l->telemetry.turn_at_ns, 0);
    loop_set_state(l, LOOP_TERMINATED);
    MUST(promise_succeed(&l->terminated));
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;

    loop_of_this_thread = l;
    backend_memory_use(&l->backend.memory);
    prctl(PR_SET_NAME, l->name);
    affinity_take(&l->affinity, l->name);
    l->clock_at_ns = clock_now_ns();
    while (turn_run(l))
        ;
    loop_end(l);
    return NULL;
}

static void loop_drop_at_stop(struct loop *l)
{
    struct task *t;

    while ((t = task_list_take(&l->at_stop)))
        task_drop(t);
}

/* Log the first failure, and a success after failures. Called under start_lock. */
static void loop_note_start(struct loop *l, int error)
{
    int64_t now_ns;

    if (error == 0 && l->start_failures == 0)
        return;
    now_ns = clock_now_ns();
    if (error == 0) {
        log_notice("loop %s: thread started after %.1f s; failed attempts: %u", l->name,
                   (double)(now_ns - l->start_trouble_at_ns) / (double)NS_PER_S, l->start_failures);
        return;
    }
    atomic_store_explicit(&l->start_failed_at_ns, now_ns, memory_order_relaxed);
    if (l->start_failures++ > 0)
        return;
    l->start_trouble_at_ns = now_ns;
    log_warning("loop %s: cannot start its thread: %s; the next task tries again", l->name,
                strerror(error));
}

int loop_start(struct loop *l)
{
    int rc = 0;

    pthread_mutex_lock(&l->start_lock);
    if (loop_state(l) == LOOP_NOT_STARTED) {
        int error = pthread_create(&l->thread, NULL, loop_main, l);

        loop_note_start(l, error);
        if (error == 0) {
            l->joinable = true;
            (void)loop_move_state(l, LOOP_NOT_STARTED, LOOP_STARTED);
        } else {
            rc = -EAGAIN;
        }
    }
    pthread_mutex_unlock(&l->start_lock);
    return rc;
}

void loop_schedule(struct loop *l, struct timer *t, int64_t delay_ns)
{
    loop_schedule_every(l, t, delay_ns, 0);
}

void loop_schedule_every(struct loop *l, struct timer *t, int64_t delay_ns, int64_t period_ns)
{
    MUST(loop_is_current(l));
    loop_end_period(l, t);
    t->at_ns = clock_add_ns(clock_now_ns(), delay_ns);
    t->period_ns = period_ns;
    timer_heap_add(&l->schedule, t);
}

void loop_cancel(struct loop *l, struct timer *t)
{
    MUST(loop_is_current(l));
    loop_end_period(l, t);
    timer_heap_remove(&l->schedule, t);
    t->period_ns = 0;
    (void)timer_move_claim(t, TIMER_HELD, TIMER_FREE); /* `claim` stays if FREE or WITHDRAWN */
}

void loop_suspend(struct loop *l, struct timer *t)
{
    bool is_set = t->state != TIMER_IDLE;

    MUST(t->period_ns == 0 && atomic_load_explicit(&t->claim, memory_order_relaxed) == TIMER_FREE);
    loop_cancel(l, t);
    if (is_set)
        t->state = TIMER_SUSPENDED;
}

/* What arrived before a silence timer's instant may be unread: hear of it first. */
void loop_resume(struct loop *l, struct timer *t)
{
    int64_t now_ns = clock_now_ns();

    MUST(loop_is_current(l));
    if (t->state != TIMER_SUSPENDED)
        return;
    t->state = TIMER_IDLE;
    if (t->silence && t->at_ns < now_ns)
        t->at_ns = now_ns;
    timer_heap_add(&l->schedule, t);
}

int loop_set_io_ratio(struct loop *l, unsigned io_ratio)
{
    if (io_ratio > 100)
        return -EINVAL;
    TELEMETRY_SET(l->io_ratio, io_ratio);
    return 0;
}

void loop_set_queue_wait_goal(struct loop *l, int64_t goal_ns)
{
    TELEMETRY_SET(l->goal_ns, goal_ns);
}

void loop_set_activity(struct loop *l, const char *what)
{
    TELEMETRY_SET(l->telemetry.doing, what);
}

void loop_reap(struct loop *l, struct task *t)
{
    MUST(loop_is_current(l));
    task_list_append(&l->reap, t);
}

void loop_at_stop(struct loop *l, struct task *t)
{
    MUST(loop_is_current(l) || loop_state(l) == LOOP_NOT_STARTED);
    task_list_append(&l->at_stop, t);
}

void loop_stop(struct loop *l, int64_t quiet_ns, int64_t timeout_ns)
{
    int64_t unset = -1;
    bool has_thread;

    MUST(quiet_ns >= 0 && quiet_ns <= timeout_ns);
    if (!atomic_compare_exchange_strong(&l->stop_quiet_ns, &unset, quiet_ns))
        return;
    atomic_store(&l->stop_timeout_ns, timeout_ns);
    pthread_mutex_lock(&l->start_lock);
    has_thread = !loop_move_state(l, LOOP_NOT_STARTED, LOOP_SHUTDOWN);
    if (has_thread) {
        MUST(loop_move_state(l, LOOP_STARTED, LOOP_SHUTTING_DOWN));
        wakeup_send(&l->wakeup);
    } else {
        loop_refuse_and_drop(l);
        loop_drop_at_stop(l);
    }
    pthread_mutex_unlock(&l->start_lock);
    if (!has_thread)
        loop_end(l);
}

int loop_join_until(struct loop *l, int64_t at_ns)
{
    int rc;

    MUST(!loop_current());
    rc = promise_await(&l->terminated, at_ns == CLOCK_NEVER ? at_ns : at_ns - clock_now_ns());
    if (rc == 0 && l->joinable) {
        pthread_join(l->thread, NULL);
        l->joinable = false;
    }
    return rc;
}

void loop_listen_end(struct loop *l, struct promise_listener *listener)
{
    promise_listen(&l->terminated, listener);
}

enum loop_state loop_state(const struct loop *l)
{
    return (enum loop_state)atomic_load(&l->state);
}

const char *loop_name(const struct loop *l)
{
    return l->name;
}

bool loop_is_current(const struct loop *l)
{
    return loop_of_this_thread == l;
}

struct loop *loop_current(void)
{
    return loop_of_this_thread;
}

void loop_set_cookie(struct loop *l, void *cookie)
{
    MUST(loop_state(l) == LOOP_NOT_STARTED);
    l->cookie = cookie;
}

void *loop_cookie(const struct loop *l)
{
    return l->cookie;
}

int64_t loop_now_ns(const struct loop *l)
{
    return l->now_ns;
}

int64_t loop_heard_ns(const struct loop *l)
{
    return l->heard.at_ns;
}

int64_t loop_due_ns(struct loop *l, int64_t from_ns, int64_t limit_ns)
{
    if (l->turn_at_ns > 0)
        heard_note_absence(&l->heard, l->turn_at_ns, clock_now_ns());
    return heard_due_ns(&l->heard, from_ns, limit_ns);
}

void loop_forget_fd(struct loop *l, int fd)
{
    MUST(loop_is_current(l));
    backend_forget(&l->backend, fd);
}

struct ev_loop *loop_ev(struct loop *l)
{
    return l->backend.ev;
}

const struct heard *loop_heard(const struct loop *l)
{
    MUST(loop_is_current(l));
    return &l->heard;
}

void loop_adopt_heard(struct loop *l, const struct heard *heard)
{
    MUST(loop_is_current(l));
    heard_adopt(&l->heard, heard);
}

int loop_watchable_fds(const struct loop *l)
{
    return atomic_load_explicit(&l->backend.memory.n_fds, memory_order_relaxed);
}

int loop_reserve_fd(struct loop *l, int fd)
{
    MUST(loop_is_current(l) || loop_state(l) == LOOP_NOT_STARTED);
    return backend_memory_reserve(&l->backend.memory, fd);
}

void loop_load_add(struct loop *l, int n)
{
    atomic_fetch_add_explicit(&l->load, (unsigned)n, memory_order_relaxed);
}

unsigned loop_load(const struct loop *l)
{
    return atomic_load_explicit(&l->load, memory_order_relaxed);
}

static bool loop_is_without_thread(const struct loop *l)
{
    int64_t failed_at_ns = atomic_load_explicit(&l->start_failed_at_ns, memory_order_relaxed);

    return failed_at_ns > 0 && clock_now_ns() - failed_at_ns < LOOP_START_RETRY_NS;
}

enum loop_availability loop_availability(const struct loop *l)
{
    enum loop_state state = loop_state(l);

    if (state >= LOOP_SHUTDOWN)
        return LOOP_NOT_AVAILABLE;
    if (state == LOOP_NOT_STARTED && loop_is_without_thread(l))
        return LOOP_NO_THREAD;
    if (gate_count(&l->queues[LOOP_CONTROL].gate) >= l->max_pending_tasks)
        return LOOP_FULL;
    return LOOP_AVAILABLE;
}

void loop_backend_text(char *text, size_t size)
{
    snprintf(text, size, "libev %d.%d (epoll)", ev_version_major(), ev_version_minor());
}
