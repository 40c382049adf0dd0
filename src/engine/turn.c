/* engine/turn: one turn of a loop, in the steps that loop.h lists. Everything here runs on the loop's thread. */
#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_internal.h"

/* Control tasks run in one turn at most, so that a control task that submits another cannot keep I/O waiting. */
#define TURN_CONTROL_MAX 1024

/* A statistic has one writer: no read-modify-write needed. */
#define BUMP(counter, n)                                                                \
    atomic_store_explicit(&(counter),                                                   \
                          atomic_load_explicit(&(counter), memory_order_relaxed) + (n), \
                          memory_order_relaxed)

static bool turn_stop_is_news(struct loop *l)
{
    return l->stop_began_at_ns == 0 && atomic_load(&l->state) >= LOOP_SHUTTING_DOWN;
}

static bool turn_has_work(struct loop *l)
{
    return !queue_empty(&l->lanes[LOOP_CONTROL]) || !queue_empty(&l->lanes[LOOP_TASKS]) ||
           !queue_empty(&l->lanes[LOOP_TAIL]) || !list_empty(&l->due);
}

static void on_wakeup(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct loop *l = CONTAINER_OF(w, struct loop, wakeup_io);

    (void)ev;
    (void)revents;
    wakeup_clear(&l->wakeup);
}

static void on_timer(struct ev_loop *ev, struct ev_timer *w, int revents)
{
    struct loop *l = CONTAINER_OF(w, struct loop, timer);

    (void)ev;
    (void)revents;
    l->timer_at_ns = CLOCK_NEVER;
}

/* Step 2, called by libev with everything that is ready, and with nothing as ev_run() begins. */
static void on_ready(struct ev_loop *ev)
{
    struct loop *l = ev_userdata(ev);

    if (ev_pending_count(ev) == 0)
        return;
    wakeup_done(&l->wakeup);
    l->now_ns = clock_now_ns();
    ev_invoke_pending(ev);
    l->io_ns = clock_now_ns() - l->now_ns;
}

void turn_init(struct loop *l)
{
    ev_set_userdata(l->ev, l);
    ev_set_invoke_pending_cb(l->ev, on_ready);
    ev_io_init(&l->wakeup_io, on_wakeup, l->wakeup.fd, EV_READ);
    ev_io_start(l->ev, &l->wakeup_io);
    ev_timer_init(&l->timer, on_timer, 0., 0.);
    l->timer_at_ns = CLOCK_NEVER;
}

/* When the next timer is due, or the shutdown has to look again. */
static int64_t turn_next_at_ns(struct loop *l)
{
    int64_t at_ns = schedule_next_at_ns(&l->schedule);

    if (l->stop_began_at_ns > 0) {
        int64_t quiet_at_ns = clock_add_ns(l->last_task_at_ns, atomic_load(&l->stop_quiet_ns));
        int64_t limit_at_ns = clock_add_ns(l->stop_began_at_ns, atomic_load(&l->stop_timeout_ns));
        int64_t stop_at_ns = quiet_at_ns < limit_at_ns ? quiet_at_ns : limit_at_ns;

        at_ns = stop_at_ns < at_ns ? stop_at_ns : at_ns;
    }
    return at_ns;
}

/* A timer armed too early costs one idle turn; re-arming it for each cancelled deadline would cost more. */
static void turn_arm_timer(struct loop *l, int64_t at_ns)
{
    int64_t delay_ns;

    if (at_ns >= l->timer_at_ns)
        return;
    ev_timer_stop(l->ev, &l->timer);
    ev_now_update(l->ev); /* libev counts from its own cached clock */
    delay_ns = at_ns - clock_now_ns();
    ev_timer_set(&l->timer, delay_ns > 0 ? (double)delay_ns / (double)NS_PER_S : 0., 0.);
    ev_timer_start(l->ev, &l->timer);
    l->timer_at_ns = at_ns;
}

/* Steps 1 and 2. */
static void turn_poll(struct loop *l)
{
    int64_t until_ns = turn_next_at_ns(l);

    l->now_ns = 0;
    l->io_ns = 0;
    turn_arm_timer(l, until_ns);
    if (turn_has_work(l)) {
        ev_run(l->ev, EVRUN_NOWAIT);
    } else {
        wakeup_prepare(&l->wakeup, until_ns);
        if (turn_has_work(l) || turn_stop_is_news(l)) { /* see note: wake-up */
            wakeup_done(&l->wakeup);
            ev_run(l->ev, EVRUN_NOWAIT);
        } else {
            BUMP(l->counters.polls_blocking, 1);
            ev_run(l->ev, EVRUN_ONCE);
            wakeup_done(&l->wakeup);
        }
    }
    if (l->now_ns == 0)
        l->now_ns = clock_now_ns();
    BUMP(l->counters.io_ns, l->io_ns);
}

/* Step 2, its end: due timers take their place behind the tasks that are queued now. */
static void turn_fetch_due(struct loop *l)
{
    uint64_t place;
    struct timed *t;

    if (schedule_next_at_ns(&l->schedule) > l->now_ns)
        return;
    place = l->tasks_taken + gate_count(&l->gates[LOOP_TASKS]);
    while ((t = schedule_take_due(&l->schedule, l->now_ns))) {
        t->state = TIMED_DUE;
        t->order = place;
        list_append(&l->due, &t->u.due);
    }
}

/* Step 3. */
static void turn_control(struct loop *l)
{
    unsigned run = 0;
    struct task *t;

    if (queue_empty(&l->lanes[LOOP_CONTROL]))
        return;
    while (run < TURN_CONTROL_MAX && (t = queue_pop(&l->lanes[LOOP_CONTROL]))) {
        t->type->run(t);
        run++;
    }
    gate_leave(&l->gates[LOOP_CONTROL], run);
    BUMP(l->counters.tasks_run, run);
    l->last_task_at_ns = l->now_ns;
}

/* A periodic task may not free itself in run(), a one-shot may: it is not looked at afterwards. */
static void turn_run_timed(struct loop *l, struct timed *t)
{
    bool periodic = t->period_ns != 0;

    schedule_remove(&l->schedule, t);
    t->task.type->run(&t->task);
    if (periodic && t->period_ns != 0 && t->state == TIMED_IDLE) {
        t->at_ns = timed_next_at_ns(t, clock_now_ns());
        schedule_add(&l->schedule, t);
    }
}

/* Run the next task of step 4 by its place; false when none can be reached. */
static bool turn_run_next(struct loop *l, uint64_t *from_lane)
{
    struct timed *due = NULL;
    struct task *t;

    if (!list_empty(&l->due)) {
        due = LIST_FIRST(&l->due, struct timed, u.due);
        if (due->order <= l->tasks_taken) {
            turn_run_timed(l, due);
            return true;
        }
    }
    t = queue_pop(&l->lanes[LOOP_TASKS]);
    if (t) {
        l->tasks_taken++;
        (*from_lane)++;
        t->type->run(t);
        return true;
    }
    if (due)
        turn_run_timed(l, due);
    return due != NULL;
}

/* What waits for step 4: due timers and the task lane. */
static uint64_t turn_queued(const struct loop *l)
{
    uint64_t n = gate_count(&l->gates[LOOP_TASKS]);

    list_for_each (node, &l->due)
        n++;
    return n;
}

/* Step 4. */
static void turn_tasks(struct loop *l)
{
    struct budget budget;
    uint64_t from_lane = 0;
    int64_t now_ns;

    if (queue_empty(&l->lanes[LOOP_TASKS]) && list_empty(&l->due))
        return;
    budget_begin(&budget, &l->budget, l->io_ns, clock_now_ns(), turn_queued(l));
    while (turn_run_next(l, &from_lane)) {
        if (!budget_count(&budget))
            continue;
        gate_leave(&l->gates[LOOP_TASKS], from_lane);
        from_lane = 0;
        if (budget_spent(&budget, clock_now_ns()))
            break;
    }
    gate_leave(&l->gates[LOOP_TASKS], from_lane);
    now_ns = clock_now_ns();
    if (budget.run > 0)
        l->last_task_at_ns = now_ns;
    BUMP(l->counters.task_ns, now_ns - budget.start_at_ns);
    BUMP(l->counters.tasks_run, budget.run);
}

/* Step 5: as many as are there now, so that a tail task that submits itself runs once a turn. */
static void turn_tail(struct loop *l)
{
    uint64_t n, run = 0;
    struct task *t;

    if (queue_empty(&l->lanes[LOOP_TAIL]))
        return;
    n = gate_count(&l->gates[LOOP_TAIL]);
    while (run < n && (t = queue_pop(&l->lanes[LOOP_TAIL]))) {
        t->type->run(t);
        run++;
    }
    gate_leave(&l->gates[LOOP_TAIL], run);
    BUMP(l->counters.tasks_run, run);
}

/* Step 6: what a reaped object reaps in turn is reaped in the same step. */
static void turn_reap(struct loop *l)
{
    struct task *t;

    while ((t = task_list_take(&l->reap)))
        t->type->run(t);
}

static void turn_drop_timed(struct loop *l, struct timed *t)
{
    schedule_remove(&l->schedule, t);
    t->period_ns = 0;
    t->task.type->drop(&t->task);
    BUMP(l->counters.tasks_dropped, 1);
}

static void turn_drop_timers(struct loop *l)
{
    struct timed *t;

    while (!list_empty(&l->due))
        turn_drop_timed(l, LIST_FIRST(&l->due, struct timed, u.due));
    while ((t = schedule_take_due(&l->schedule, CLOCK_NEVER)))
        turn_drop_timed(l, t);
}

static void turn_begin_stop(struct loop *l)
{
    struct task *t;

    l->stop_began_at_ns = clock_now_ns();
    while ((t = task_list_take(&l->at_stop)))
        t->type->run(t);
    turn_reap(l);
}

static bool turn_may_end(struct loop *l)
{
    int64_t now_ns = clock_now_ns();

    if (now_ns - l->stop_began_at_ns >= atomic_load(&l->stop_timeout_ns)) {
        if (turn_has_work(l))
            log_warning("loop %s: stop timed out, %llu tasks are dropped", l->name,
                        (unsigned long long)turn_queued(l));
        return true;
    }
    if (turn_has_work(l))
        return false;
    return now_ns - l->last_task_at_ns >= atomic_load(&l->stop_quiet_ns);
}

/* Step 7. */
static bool turn_shutdown(struct loop *l)
{
    if (atomic_load_explicit(&l->state, memory_order_acquire) < LOOP_SHUTTING_DOWN)
        return true;
    if (l->stop_began_at_ns == 0)
        turn_begin_stop(l);
    turn_drop_timers(l);
    turn_reap(l);
    if (!turn_may_end(l))
        return true;
    loop_refuse_and_drop(l);
    turn_drop_timers(l);
    turn_reap(l);
    return false;
}

bool turn_run(struct loop *l)
{
    turn_poll(l);      /* 1, 2 */
    turn_fetch_due(l); /* 2, its end */
    turn_control(l);   /* 3 */
    turn_tasks(l);     /* 4 */
    turn_tail(l);      /* 5 */
    turn_reap(l);      /* 6 */
    BUMP(l->counters.turns, 1);
    return turn_shutdown(l); /* 7 */
}
