/*
 * engine/loop, what may not come late: timers on an idle loop, the stop of a sleeping one, the end
 * of a quiet period.
 */
#include <errno.h>

#include "support/loop_runner.h"
#include "support/loop_thread.h"
#include "support/suite.h"
#include "support/timers.h"
#include "support/until.h"

#define TRIES 500

static struct loop *loop;

static void setup(void)
{
    loop = loop_runner_create();
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static void schedule(void *arg)
{
    loop_schedule(loop, arg, 3 * NS_PER_MS);
}

GROUP(late, setup, teardown);

/* A busy machine delays some of them, and a loop that counts wrongly delays all. */
TEST(late, timer_is_at_most_two_milliseconds_late)
{
    int64_t least_ns = CLOCK_NEVER;

    for (int i = 0; i < TRIES && least_ns > 2 * NS_PER_MS; i++) {
        struct timers_noted t;
        int64_t late_ns;

        timers_noted_init(&t);
        if (i % 2)
            loop_runner_call(loop, schedule, &t.timer);
        else
            ck_assert_int_eq(loop_submit_after(loop, &t.timer, 3 * NS_PER_MS, 0), 0);
        UNTIL(atomic_load(&t.run) == 1);
        late_ns = t.began_at_ns[0] - t.planned_at_ns[0];
        ck_assert_int_ge(late_ns, 0);
        least_ns = clock_sooner(least_ns, late_ns);
    }
    ck_assert_int_le(least_ns, 2 * NS_PER_MS);
}

/* libev itself would look up once a minute. */
TEST(late, a_sleeping_loop_is_woken_by_its_stop)
{
    struct loop_thread thread;

    ck_assert_int_eq(loop_thread_find(&thread, loop), 0);
    UNTIL(loop_thread_sleeps(&thread, 50 * NS_PER_MS));
    loop_stop(loop, 0, 0);
    ck_assert_int_eq(loop_join_until(loop, clock_now_ns() + UNTIL_LIMIT_NS), 0);
}

static void note_time(void *arg)
{
    *(int64_t *)arg = clock_now_ns();
}

TEST(late, control_task_in_the_quiet_period_extends_it)
{
    int64_t quiet_ns = 3 * NS_PER_S, ran_at_ns;

    loop_runner_call(loop, note_time, &ran_at_ns);
    loop_stop(loop, quiet_ns, UNTIL_LIMIT_NS);
    PAUSE_MS(200);
    loop_runner_call(loop, note_time, &ran_at_ns);
    loop_runner_join(loop);
    ck_assert_int_ge(clock_now_ns(), ran_at_ns + quiet_ns);
}
