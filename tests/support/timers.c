/* support/timers: see timers.h. */
#include "support/timers.h"

#include <check.h>

#include "base/clock.h"
#include "support/until.h"

static void noted_run(struct task *t)
{
    struct timers_noted *n = TIMER_OWNER(t, struct timers_noted, timer);
    unsigned run = atomic_load(&n->run);
    int64_t now_ns = clock_now_ns();

    if (run < TIMERS_NOTES) {
        n->planned_at_ns[run] = n->timer.at_ns;
        n->began_at_ns[run] = now_ns;
    }
    while (run == 0 && clock_now_ns() < now_ns + n->work_ns)
        ;
    if (run + 1 == n->last_run)
        loop_cancel(loop_current(), &n->timer);
    if (atomic_load(&n->dropped) > 0)
        atomic_store(&n->broken, true);
    atomic_store(&n->run, run + 1);
}

static void noted_drop(struct task *t)
{
    struct timers_noted *n = TIMER_OWNER(t, struct timers_noted, timer);

    if (atomic_fetch_add(&n->dropped, 1) > 0)
        atomic_store(&n->broken, true);
}

void timers_noted_init(struct timers_noted *t)
{
    static const struct task_type type = {.name = "noted", .run = noted_run, .drop = noted_drop};

    *t = (struct timers_noted){.last_run = 0};
    timer_init(&t->timer, &type);
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0)
        ; /* a signal came first */
}

static void block_run(struct task *t)
{
    struct timers_block *b = TIMER_OWNER(t, struct timers_block, timer);

    atomic_fetch_add(&b->run, 1);
    sem_post(&b->entered);
    wait_for(&b->released);
}

static void block_drop(struct task *t)
{
    atomic_fetch_add(&TIMER_OWNER(t, struct timers_block, timer)->dropped, 1);
}

void timers_block_init(struct timers_block *t)
{
    static const struct task_type type = {
        .name = "blocking timer", .run = block_run, .drop = block_drop};

    timer_init(&t->timer, &type);
    sem_init(&t->entered, 0, 0);
    sem_init(&t->released, 0, 0);
    atomic_init(&t->run, 0);
    atomic_init(&t->dropped, 0);
}

void timers_block_wait(struct timers_block *t)
{
    wait_for(&t->entered);
}

void timers_block_end(struct timers_block *t)
{
    sem_post(&t->released);
}

void timers_after(struct loop *loop, struct timers_noted *t, int64_t delay_ns, int64_t period_ns)
{
    ck_assert_int_eq(loop_submit_after(loop, &t->timer, delay_ns, period_ns), 0);
}

void timers_begin(struct loop *loop, struct timers_noted *t, int64_t delay_ns, int64_t period_ns)
{
    timers_noted_init(t);
    timers_after(loop, t, delay_ns, period_ns);
}

void timers_expect_run(struct loop *loop)
{
    struct timers_noted t;

    timers_begin(loop, &t, 10 * NS_PER_MS, 0);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_int_ge(t.began_at_ns[0], t.planned_at_ns[0]);
}
