/* engine/loop: life of a loop and what other threads may ask of it. The turn itself is in turn.c. */
#include "engine/loop.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "engine/loop_internal.h"

static _Thread_local struct loop *loop_of_this_thread;

static void loop_init(struct loop *l, const struct loop_conf *conf)
{
    memset(l, 0, sizeof(*l));
    snprintf(l->name, sizeof(l->name), "%s", conf->name);
    l->budget = conf->budget;
    l->max_pending_tasks = conf->max_pending_tasks;
    list_init(&l->due);
    schedule_init(&l->schedule);
    pthread_mutex_init(&l->start_lock, NULL);
    for (unsigned i = 0; i < LOOP_LANES; i++) {
        gate_init(&l->gates[i]);
        queue_init(&l->lanes[i]);
    }
    atomic_init(&l->state, LOOP_NOT_STARTED);
    atomic_init(&l->load, 0);
    atomic_init(&l->stop_quiet_ns, -1);
    atomic_init(&l->stop_timeout_ns, 0);
    l->last_task_at_ns = clock_now_ns();
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
    errno = 0;
    l->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    if (!l->ev) {
        rc = errno ? -errno : -ENOMEM;
        goto err_wakeup;
    }
    turn_init(l);
    *out = l;
    return 0;

err_wakeup:
    wakeup_close(&l->wakeup);
err_free:
    pthread_mutex_destroy(&l->start_lock);
    free(l);
    return rc;
}

void loop_destroy(struct loop *l)
{
    enum loop_state state = loop_state(l);

    MUST(!loop_is_current(l));
    if (state == LOOP_NOT_STARTED)
        loop_stop(l, 0, 0);
    MUST(loop_state(l) == LOOP_TERMINATED);
    ev_loop_destroy(l->ev);
    wakeup_close(&l->wakeup);
    pthread_mutex_destroy(&l->start_lock);
    free(l);
}

static void loop_set_state(struct loop *l, enum loop_state state)
{
    atomic_store(&l->state, (int)state);
}

static bool loop_move_state(struct loop *l, enum loop_state from, enum loop_state to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong(&l->state, &expected, (int)to);
}

static void loop_drop_lane(struct loop *l, unsigned lane)
{
    while (gate_count(&l->gates[lane]) > 0) {
        struct task *t = queue_pop(&l->lanes[lane]);

        if (!t) {
            sched_yield(); /* a producer stands between gate and queue */
            continue;
        }
        t->type->drop(t);
        gate_leave(&l->gates[lane], 1);
        atomic_fetch_add_explicit(&l->counters.tasks_dropped, 1, memory_order_relaxed);
    }
}

void loop_refuse_and_drop(struct loop *l)
{
    loop_set_state(l, LOOP_SHUTDOWN);
    for (unsigned i = 0; i < LOOP_LANES; i++)
        gate_close(&l->gates[i]);
    for (unsigned i = 0; i < LOOP_LANES; i++)
        loop_drop_lane(l, i);
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;

    loop_of_this_thread = l;
    prctl(PR_SET_NAME, l->name);
    while (turn_run(l))
        ;
    loop_set_state(l, LOOP_TERMINATED);
    return NULL;
}

static void loop_drop_at_stop(struct loop *l)
{
    struct task *t;

    while ((t = task_list_take(&l->at_stop)))
        t->type->drop(t);
}

/* Create the thread if there is none; see note: start. */
static int loop_start(struct loop *l)
{
    int rc = 0;

    pthread_mutex_lock(&l->start_lock);
    if (loop_state(l) == LOOP_NOT_STARTED) {
        if (pthread_create(&l->thread, NULL, loop_main, l) == 0) {
            l->joinable = true;
            (void)loop_move_state(l, LOOP_NOT_STARTED, LOOP_STARTED);
        } else {
            rc = -EAGAIN;
        }
    }
    pthread_mutex_unlock(&l->start_lock);
    return rc;
}

static int loop_enqueue(struct loop *l, enum loop_lane lane, struct task *t)
{
    int rc;

    if (loop_state(l) == LOOP_NOT_STARTED) {
        rc = loop_start(l);
        if (rc < 0)
            return rc;
    }
    rc = gate_enter(&l->gates[lane], lane == LOOP_TASKS ? l->max_pending_tasks : UINT64_MAX >> 1);
    if (rc == 0)
        queue_push(&l->lanes[lane], t);
    return rc;
}

int loop_submit(struct loop *l, enum loop_lane lane, struct task *t)
{
    int rc = loop_enqueue(l, lane, t);

    if (rc == 0 && !loop_is_current(l))
        wakeup_send(&l->wakeup);
    return rc;
}

int loop_submit_lazy(struct loop *l, struct task *t)
{
    bool is_first = loop_state(l) == LOOP_NOT_STARTED;
    int rc = loop_enqueue(l, LOOP_TASKS, t);

    if (rc == 0 && is_first)
        wakeup_send(
            &l->wakeup); /* the new thread may have gone to sleep before the task was there */
    return rc;
}

void loop_schedule(struct loop *l, struct timed *t, int64_t delay_ns)
{
    loop_schedule_every(l, t, delay_ns, 0);
}

void loop_schedule_every(struct loop *l, struct timed *t, int64_t delay_ns, int64_t period_ns)
{
    MUST(loop_is_current(l));
    t->at_ns = clock_add_ns(clock_now_ns(), delay_ns);
    t->period_ns = period_ns;
    schedule_add(&l->schedule, t);
}

void loop_cancel(struct loop *l, struct timed *t)
{
    MUST(loop_is_current(l));
    schedule_remove(&l->schedule, t);
    t->period_ns = 0;
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

    MUST(quiet_ns >= 0 && quiet_ns <= timeout_ns);
    if (!atomic_compare_exchange_strong(&l->stop_quiet_ns, &unset, quiet_ns))
        return; /* the first call decides */
    atomic_store(&l->stop_timeout_ns, timeout_ns);
    pthread_mutex_lock(&l->start_lock);
    if (loop_move_state(l, LOOP_NOT_STARTED, LOOP_SHUTDOWN)) {
        loop_refuse_and_drop(l);
        loop_drop_at_stop(l);
        loop_set_state(l, LOOP_TERMINATED);
    } else {
        MUST(loop_move_state(l, LOOP_STARTED, LOOP_SHUTTING_DOWN));
    }
    pthread_mutex_unlock(&l->start_lock);
    wakeup_send(&l->wakeup);
}

void loop_join(struct loop *l)
{
    MUST(!loop_current());
    if (l->joinable)
        pthread_join(l->thread, NULL);
    l->joinable = false;
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

struct ev_loop *loop_ev(struct loop *l)
{
    return l->ev;
}

void loop_load_add(struct loop *l, int n)
{
    atomic_fetch_add_explicit(&l->load, (unsigned)n, memory_order_relaxed);
}

unsigned loop_load(const struct loop *l)
{
    return atomic_load_explicit(&l->load, memory_order_relaxed);
}

void loop_stats(const struct loop *l, struct loop_stats *out)
{
    const struct loop_counters *c = &l->counters;

    out->turns = atomic_load_explicit(&c->turns, memory_order_relaxed);
    out->polls_blocking = atomic_load_explicit(&c->polls_blocking, memory_order_relaxed);
    out->tasks_run = atomic_load_explicit(&c->tasks_run, memory_order_relaxed);
    out->tasks_dropped = atomic_load_explicit(&c->tasks_dropped, memory_order_relaxed);
    out->tasks_pending = 0;
    for (unsigned i = 0; i < LOOP_LANES; i++)
        out->tasks_pending += gate_count(&l->gates[i]);
    out->wakeups_sent = atomic_load_explicit(&l->wakeup.sent, memory_order_relaxed);
    out->io_ns = atomic_load_explicit(&c->io_ns, memory_order_relaxed);
    out->task_ns = atomic_load_explicit(&c->task_ns, memory_order_relaxed);
    out->connections = loop_load(l);
}

void loop_backend_text(char *text, size_t size)
{
    snprintf(text, size, "libev %d.%d (epoll)", ev_version_major(), ev_version_minor());
}
