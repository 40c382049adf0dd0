/* engine/loop, its timers: never early, in order, fair, and gone when the loop ends. */
#include <stdlib.h>

#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;
static struct tasks_trace trace;

static void setup(void)
{
    loop = loop_runner_create();
    trace = (struct tasks_trace){.len = 0};
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

/* A timer that notes when it ran, and may keep the loop busy for a while each time. */
#define PROBE_RUNS 8

struct probe {
    struct timer timer;
    int64_t delay_ns, period_ns;
    int64_t work_ns[PROBE_RUNS];
    int64_t scheduled_at_ns;
    int64_t planned_at_ns[PROBE_RUNS]; /* its instant in each run */
    int64_t began_at_ns[PROBE_RUNS];
    unsigned last_run; /* cancels itself then */
    atomic_uint run;
    atomic_uint dropped;
};

static void probe_run(struct task *t)
{
    struct probe *p = TIMER_OWNER(t, struct probe, timer);
    unsigned run = atomic_load(&p->run);
    int64_t now_ns = clock_now_ns();

    p->planned_at_ns[run] = p->timer.at_ns;
    p->began_at_ns[run] = now_ns;
    while (clock_now_ns() < now_ns + p->work_ns[run])
        ;
    if (run + 1 == p->last_run)
        loop_cancel(loop, &p->timer);
    atomic_store(&p->run, run + 1);
}

static void probe_drop(struct task *t)
{
    atomic_fetch_add(&TIMER_OWNER(t, struct probe, timer)->dropped, 1);
}

static void probe_init(struct probe *p, int64_t delay_ns, int64_t period_ns)
{
    static const struct task_type type = {.name = "probe", .run = probe_run, .drop = probe_drop};

    *p = (struct probe){.delay_ns = delay_ns, .period_ns = period_ns, .last_run = PROBE_RUNS};
    timer_init(&p->timer, &type);
}

static void timer_heap_probe(void *arg)
{
    struct probe *p = arg;

    p->scheduled_at_ns = clock_now_ns();
    loop_schedule_every(loop, &p->timer, p->delay_ns, p->period_ns); /* a period of 0: once */
}

GROUP(timer, setup, teardown);

TEST(timer, timer_is_never_early_and_hardly_late)
{
    struct probe probes[100];

    srand(3);
    for (int i = 0; i < 100; i++) {
        probe_init(&probes[i], rand() % (30 * NS_PER_MS), 0);
        loop_runner_call(loop, timer_heap_probe, &probes[i]);
    }
    for (int i = 0; i < 100; i++) {
        int64_t at_ns = probes[i].scheduled_at_ns + probes[i].delay_ns;

        UNTIL(atomic_load(&probes[i].run) == 1);
        ck_assert_int_ge(probes[i].began_at_ns[0], at_ns);
        ck_assert_int_lt(probes[i].began_at_ns[0], at_ns + NS_PER_S);
    }
}

static void schedule_letters(void *arg)
{
    struct tasks_timer *timers = arg;

    for (int i = 0; i < 26; i++)
        loop_schedule(loop, &timers[i].timer, i % 2 ? -5 : 0);
}

static void read_length(void *arg)
{
    *(unsigned *)arg = trace.len;
}

/* Are there ${n} letters? */
static bool traced(unsigned n)
{
    unsigned len;

    loop_runner_call(loop, read_length, &len);
    return len == n;
}

TEST(timer, negative_delay_is_zero_and_order_is_kept)
{
    struct tasks_timer timers[26];

    for (int i = 0; i < 26; i++)
        tasks_timer_init(&timers[i], &trace, (char)('a' + i));
    loop_runner_call(loop, schedule_letters, timers);
    UNTIL(traced(26));
    teardown();
    ck_assert_str_eq(trace.text, "abcdefghijklmnopqrstuvwxyz");
    setup();
}

static void read_stats(void *arg)
{
    loop_stats(loop, arg);
}

/* What is due counts as queued, so at ratio 100 too. */
TEST_EACH(timer, timers_due_together_run_in_one_turn_at_any_ratio, 2)
{
    struct budget_conf budget = {.io_ratio = _i ? 100 : 50, .quantum_ns = NS_PER_S};
    struct tasks_timer timers[26];
    struct loop_stats before, after;

    teardown();
    loop = loop_runner_create_with(budget, 64);
    for (int i = 0; i < 26; i++)
        tasks_timer_init(&timers[i], &trace, (char)('a' + i));
    loop_runner_call(loop, read_stats, &before);
    loop_runner_call(loop, schedule_letters, timers);
    PAUSE_MS(50);
    UNTIL(traced(26));
    loop_runner_call(loop, read_stats, &after);
    ck_assert_uint_le(after.turns - before.turns, 12); /* the calls, the wake-ups, the timers */
}

static void cancel_probe(void *arg)
{
    struct probe *p = arg;

    loop_cancel(loop, &p->timer);
    loop_cancel(loop, &p->timer);
}

TEST(timer, endless_delay_can_be_scheduled_and_cancelled)
{
    struct probe p, soon;

    probe_init(&p, CLOCK_NEVER, 0);
    probe_init(&soon, NS_PER_MS, 0);
    loop_runner_call(loop, timer_heap_probe, &p);
    loop_runner_call(loop, timer_heap_probe, &soon);
    UNTIL(atomic_load(&soon.run) == 1);
    loop_runner_call(loop, cancel_probe, &p);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&p.run) + atomic_load(&p.dropped), 0);
}

TEST(timer, a_cancelled_timer_neither_runs_nor_is_dropped_and_may_be_used_again)
{
    struct probe p;

    probe_init(&p, 20 * NS_PER_MS, 0);
    loop_runner_call(loop, timer_heap_probe, &p);
    loop_runner_call(loop, cancel_probe, &p);
    PAUSE_MS(60);
    ck_assert_uint_eq(atomic_load(&p.run), 0);
    loop_runner_call(loop, timer_heap_probe, &p);
    UNTIL(atomic_load(&p.run) == 1);
    ck_assert_uint_eq(atomic_load(&p.dropped), 0);
}

/* Two that are due in the same turn; the first to run cancels the other. */
struct rivals {
    struct timer timer[2];
    atomic_uint run;
};

static struct rivals rivals;

static void rival_run(struct task *t)
{
    struct timer *timer = CONTAINER_OF(t, struct timer, task);

    atomic_fetch_add(&rivals.run, 1);
    loop_cancel(loop, &rivals.timer[timer == &rivals.timer[0]]);
}

static void schedule_rivals(void *arg)
{
    static const struct task_type type = {.name = "rival", .run = rival_run};

    (void)arg;
    for (int i = 0; i < 2; i++) {
        timer_init(&rivals.timer[i], &type);
        loop_schedule(loop, &rivals.timer[i], 0);
    }
}

TEST(timer, a_timer_that_is_due_can_still_be_cancelled)
{
    loop_runner_call(loop, schedule_rivals, NULL);
    UNTIL(atomic_load(&rivals.run) > 0);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&rivals.run), 1);
}

static atomic_uint freed;

static void free_itself(struct task *t)
{
    free(CONTAINER_OF(t, struct timer, task));
    atomic_fetch_add(&freed, 1);
}

static void schedule_allocated(void *arg)
{
    static const struct task_type type = {.name = "allocated", .run = free_itself};
    struct timer *t = malloc(sizeof(*t));

    (void)arg;
    timer_init(t, &type);
    loop_schedule(loop, t, NS_PER_MS);
}

TEST(timer, a_timer_may_free_itself)
{
    for (int i = 0; i < 10; i++)
        loop_runner_call(loop, schedule_allocated, NULL);
    UNTIL(atomic_load(&freed) == 10);
}

TEST(timer, a_fixed_rate_catches_up_after_a_stall)
{
    struct probe p;

    probe_init(&p, 10 * NS_PER_MS, 20 * NS_PER_MS);
    p.work_ns[0] = 81 * NS_PER_MS; /* four instants go by */
    loop_runner_call(loop, timer_heap_probe, &p);
    UNTIL(atomic_load(&p.run) == PROBE_RUNS);
    for (int i = 1; i < PROBE_RUNS; i++) {
        ck_assert_int_eq(p.planned_at_ns[i], p.planned_at_ns[i - 1] + 20 * NS_PER_MS);
        ck_assert_int_ge(p.began_at_ns[i], p.planned_at_ns[i]);
    }
}

TEST(timer, a_fixed_delay_counts_from_the_end_of_a_run)
{
    struct probe p;

    probe_init(&p, 0, -10 * NS_PER_MS);
    p.last_run = 4;
    for (int i = 0; i < 4; i++)
        p.work_ns[i] = 5 * NS_PER_MS;
    loop_runner_call(loop, timer_heap_probe, &p);
    UNTIL(atomic_load(&p.run) == 4);
    for (int i = 1; i < 4; i++)
        ck_assert_int_ge(p.began_at_ns[i] - p.began_at_ns[i - 1], 15 * NS_PER_MS);
}

TEST(timer, a_periodic_timer_can_cancel_itself)
{
    struct probe p;

    probe_init(&p, 0, NS_PER_MS);
    p.last_run = 3;
    loop_runner_call(loop, timer_heap_probe, &p);
    UNTIL(atomic_load(&p.run) == 3);
    PAUSE_MS(30);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&p.run), 3);
    ck_assert_uint_eq(atomic_load(&p.dropped), 0);
}

static atomic_bool flood_over;

static void flood_run(struct task *t)
{
    if (!atomic_load(&flood_over))
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, t), 0);
}

static void do_nothing(struct task *t)
{
    (void)t;
}

TEST(timer, endless_tasks_do_not_delay_a_timer)
{
    static const struct task_type type = {.name = "flood", .run = flood_run};
    static struct task flood[100];
    struct probe p;

    for (int i = 0; i < 100; i++) {
        flood[i].type = &type;
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &flood[i]), 0);
    }
    probe_init(&p, 10 * NS_PER_MS, 0);
    loop_runner_call(loop, timer_heap_probe, &p);
    UNTIL(atomic_load(&p.run) == 1);
    ck_assert_int_lt(p.began_at_ns[0] - p.planned_at_ns[0], NS_PER_S);
    atomic_store(&flood_over, true);
}

static void schedule_always_due(void *arg)
{
    loop_schedule_every(loop, arg, 0, 1);
}

static void cancel_always_due(void *arg)
{
    loop_cancel(loop, arg);
}

TEST(timer, timer_that_is_always_due_does_not_delay_tasks)
{
    static const struct task_type type = {.name = "always due", .run = do_nothing};
    struct tasks_counted t;
    struct timer always;

    timer_init(&always, &type);
    tasks_counted_init(&t);
    loop_runner_call(loop, schedule_always_due, &always);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t.task), 0);
    UNTIL(atomic_load(&t.run) == 1);
    loop_runner_call(loop, cancel_always_due, &always);
}

TEST(timer, stopping_drops_every_waiting_timer)
{
    struct probe once, every;

    probe_init(&once, NS_PER_S, 0);
    probe_init(&every, NS_PER_S, NS_PER_S);
    loop_runner_call(loop, timer_heap_probe, &once);
    loop_runner_call(loop, timer_heap_probe, &every);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&once.dropped), 1);
    ck_assert_uint_eq(atomic_load(&every.dropped), 1);
    ck_assert_uint_eq(atomic_load(&once.run) + atomic_load(&every.run), 0);
}

static void schedule_after_a_minute(void *arg)
{
    loop_schedule_every(loop, arg, 60 * NS_PER_S, 0);
}

TEST(timer, stopping_makes_a_timer_without_drop_idle)
{
    static const struct task_type type = {.name = "no drop", .run = do_nothing};
    struct timer t;

    timer_init(&t, &type);
    loop_runner_call(loop, schedule_after_a_minute, &t);
    loop_runner_stop(loop);
    ck_assert_int_eq(t.state, TIMER_IDLE);
}

TEST(timer, timer_scheduled_in_the_quiet_period_is_dropped)
{
    struct probe p;

    probe_init(&p, 0, 0);
    p.delay_ns = 10 * NS_PER_S;
    loop_runner_stats(loop);
    loop_stop(loop, 200 * NS_PER_MS, 5 * NS_PER_S);
    loop_runner_call(loop, timer_heap_probe, &p);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&p.dropped), 1);
    ck_assert_uint_eq(atomic_load(&p.run), 0);
}
