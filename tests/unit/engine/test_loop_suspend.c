/* engine/loop: a suspended timer is resumed on another loop, for the instant it had. */
#include "base/clock.h"
#include "engine/loop_internal.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"

static struct loop *from, *to;
static struct timer timer, silence;
static atomic_bool has_run;
static _Atomic(struct loop *) ran_on;
static int64_t ran_at_ns;

static void on_timer(struct task *t)
{
    (void)t;
    ran_at_ns = clock_now_ns();
    atomic_store(&ran_on, loop_current());
    atomic_store(&has_run, true);
}

static const struct task_type type = {.name = "timer", .run = on_timer};

static void setup(void)
{
    from = loop_runner_create();
    to = loop_runner_create();
    timer_init(&timer, &type);
    timer_init_silence(&silence, &type);
    has_run = false;
}

static void teardown(void)
{
    loop_runner_destroy(from);
    loop_runner_destroy(to);
}

GROUP(suspend, setup, teardown);

static void do_schedule(void *t)
{
    loop_schedule(from, t, 100 * NS_PER_MS);
}

static void do_suspend(void *t)
{
    loop_suspend(from, t);
}

static void do_resume(void *t)
{
    loop_resume(to, t);
}

TEST_EACH(suspend, timer_runs_on_the_other_loop_at_its_instant, 2)
{
    struct timer *t = _i ? &timer : &silence;
    int64_t at_ns;

    loop_runner_call(from, do_schedule, t);
    at_ns = t->at_ns;
    loop_runner_call(from, do_suspend, t);
    loop_runner_call(to, do_resume, t);
    UNTIL(atomic_load(&has_run));
    ck_assert_ptr_eq(atomic_load(&ran_on), to);
    ck_assert_int_ge(ran_at_ns, at_ns);
}

TEST(suspend, suspended_timer_does_not_run)
{
    loop_runner_call(from, do_schedule, &timer);
    loop_runner_call(from, do_suspend, &timer);
    PAUSE_MS(200);
    ck_assert(!atomic_load(&has_run));
    loop_runner_call(to, do_resume, &timer); /* it is late */
    UNTIL(atomic_load(&has_run));
}

TEST(suspend, idle_timer_stays_idle)
{
    loop_runner_call(from, do_suspend, &timer);
    loop_runner_call(to, do_resume, &timer);
    ck_assert_int_eq(timer.state, TIMER_IDLE);
    PAUSE_MS(20);
    ck_assert(!atomic_load(&has_run));
}

static int64_t resumed_at_ns;

static void do_resume_late(void *t)
{
    resumed_at_ns = clock_now_ns();
    loop_resume(to, t);
}

/* What came for its object may be unread: a poll that began before proves nothing. */
TEST(suspend, late_silence_timer_waits_for_a_poll_of_its_new_loop)
{
    loop_runner_call(from, do_schedule, &silence);
    loop_runner_call(from, do_suspend, &silence);
    PAUSE_MS(200);
    loop_runner_call(to, do_resume_late, &silence);
    UNTIL(atomic_load(&has_run));
    ck_assert_int_ge(silence.at_ns, resumed_at_ns);
}
