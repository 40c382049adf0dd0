/* tls/tls_handshakes: steps that loops run, beside threads or without them. */
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/loop.h"
#include "support/loop_runner.h"
#include "support/steps.h"
#include "support/suite.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"

/* ---- loops ---- */

GROUP(loops, steps_setup, NULL);

static void submit_ten(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 10; i++)
        steps_submit(&steps.steps[i], i == 5 ? clock_now_ns() : CLOCK_NEVER, true);
}

TEST(loops, without_threads_the_loop_runs_one_step_in_a_turn)
{
    struct loop *loop = loop_runner_create();

    steps_start(0, MANY);
    loop_runner_call(loop, submit_ten, NULL);
    UNTIL(steps_stats().steps_run + steps_stats().steps_dropped == 10);
    for (unsigned i = 0; i < 10; i++) {
        steps_expect_once(&steps.steps[i], i != 5);
        ck_assert_uint_eq(steps.steps[i].order, i + 1);
        ck_assert_str_eq(steps.steps[i].thread, "test");
        ck_assert(i == 0 || steps.steps[i].turn > steps.steps[i - 1].turn);
    }
    ck_assert_uint_eq(steps_stats().threads, 0);
    loop_runner_destroy(loop);
    tls_handshakes_free(steps.pool);
}

static void start_beside(unsigned threads, unsigned loops)
{
    const struct tls_handshakes_conf conf = {
        .threads = threads, .max_pending = MANY, .loops = loops};

    ck_assert_int_eq(tls_handshakes_start(&conf, &steps.pool), 0);
}

/* The loop says of every other step that it may run it. */
static void submit_ten_young(void *arg)
{
    for (unsigned i = 0; i < 10; i++)
        steps.steps[i].job.on_loop = i % 2;
    submit_ten(arg);
}

/* Returns how many steps ran on the loop. */
static uint64_t run_ten_young(unsigned threads, unsigned loops)
{
    struct loop *loop = loop_runner_create();
    uint64_t on_loops;

    start_beside(threads, loops);
    loop_runner_call(loop, submit_ten_young, NULL);
    UNTIL(steps_stats().steps_run + steps_stats().steps_dropped == 10);
    on_loops = steps_stats().steps_on_loops;
    loop_runner_destroy(loop);
    tls_handshakes_free(steps.pool);
    return on_loops;
}

TEST(loops, loop_runs_the_steps_allowed_on_it_and_threads_the_others)
{
    ck_assert_uint_eq(run_ten_young(2, 2), 4); /* one was late */
    for (unsigned i = 0; i < 10; i++) {
        steps_expect_once(&steps.steps[i], i != 5);
        ck_assert_int_eq(strcmp(steps.steps[i].thread, "test") == 0, i % 2);
    }
}

TEST(loops, with_more_threads_than_loops_the_threads_run_all_steps)
{
    ck_assert_uint_eq(run_ten_young(3, 2), 0);
}

static void submit_young(void *arg)
{
    (void)arg;
    steps.steps[0].job.on_loop = true;
    steps_submit(&steps.steps[0], CLOCK_NEVER, true);
}

TEST(loops, threads_sleep_while_only_loops_have_steps)
{
    struct loop *loop = loop_runner_create();

    start_beside(1, 1);
    steps_block(); /* a thread is there */
    sem_post(&steps.gate);
    UNTIL(atomic_load(&steps.blocker.given_back) == 1);
    steps.steps[0].gate = &steps.gate; /* the loop's step lasts */
    loop_runner_call(loop, submit_young, NULL);
    UNTIL(atomic_load(&steps.steps[0].run) == 1);
    ck_assert_str_eq(steps.steps[0].thread, "test");
    steps_submit(&steps.steps[1], CLOCK_NEVER, true);
    UNTIL(atomic_load(&steps.steps[1].given_back) == 1); /* not kept until the loop is done */
    sem_post(&steps.gate);
    loop_runner_destroy(loop);
    tls_handshakes_free(steps.pool);
}

static void stop_and_submit(void *arg)
{
    submit_ten(NULL);
    loop_stop(arg, 0, 0);
}

/* As the loop shuts down it may run some of them before it drops the others. */
TEST(loops, a_loop_that_ends_drops_its_steps)
{
    struct loop *loop = loop_runner_create(), *other = loop_runner_create();

    steps_start(0, MANY);
    loop_runner_call(loop, stop_and_submit, loop);
    loop_runner_join(loop);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(atomic_load(&steps.steps[i].run) + atomic_load(&steps.steps[i].dropped),
                          1);
    ck_assert_uint_gt(steps_stats().steps_dropped, 0);
    ck_assert_uint_eq(steps_stats().steps_pending, 0);
    for (unsigned i = 0; i < 10; i++)
        atomic_store(&steps.steps[i].run, 0);
    loop_runner_call(other, submit_ten, NULL);
    UNTIL(atomic_load(&steps.steps[9].run) == 1);
    loop_runner_destroy(other);
    loop_runner_destroy(loop);
    tls_handshakes_free(steps.pool);
}
