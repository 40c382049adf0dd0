/* tls/tls_handshakes: order and bounds of the queue, deadlines, and threads. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "support/steps.h"
#include "support/suite.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"

/* ---- the queue ---- */

GROUP(order, steps_setup, NULL);

static struct tls_jobs jobs;

static void add(struct step *s, bool first, int64_t at_ns, int64_t deadline_ns)
{
    s->job.first = first;
    s->job.submitted_ns = at_ns;
    s->job.deadline_ns = deadline_ns;
    tls_jobs_add(&jobs, &s->job);
}

static void expect_next(int64_t now_ns, const struct step *s)
{
    ck_assert_ptr_eq(tls_jobs_take(&jobs, now_ns), &s->job);
}

TEST(order, young_queue_is_first_in_first_out_and_an_old_one_youngest_first)
{
    tls_jobs_init(&jobs);
    ck_assert_ptr_null(tls_jobs_take(&jobs, 0));
    ck_assert_int_eq(tls_jobs_oldest_at_ns(&jobs), CLOCK_NEVER);
    for (unsigned i = 0; i < 6; i++)
        add(&steps.steps[i], true, i, CLOCK_NEVER);
    expect_next(TLS_JOBS_YOUNG_NS - 1, &steps.steps[0]);
    ck_assert_int_eq(tls_jobs_oldest_at_ns(&jobs), 1);
    expect_next(TLS_JOBS_YOUNG_NS + 1, &steps.steps[5]);
    expect_next(TLS_JOBS_YOUNG_NS + 1, &steps.steps[4]);
    expect_next(TLS_JOBS_YOUNG_NS, &steps.steps[1]);
    expect_next(TLS_JOBS_YOUNG_NS + 2, &steps.steps[3]);
    expect_next(TLS_JOBS_YOUNG_NS + 2, &steps.steps[2]);
    ck_assert_ptr_null(tls_jobs_take(&jobs, 0));
}

TEST(order, later_steps_precede_first_steps)
{
    tls_jobs_init(&jobs);
    add(&steps.steps[0], true, 0, CLOCK_NEVER);
    add(&steps.steps[1], false, 1, CLOCK_NEVER);
    add(&steps.steps[2], false, 2, CLOCK_NEVER);
    expect_next(2, &steps.steps[1]);
    expect_next(2, &steps.steps[2]);
    expect_next(2, &steps.steps[0]);
}

TEST(order, oldest_step_is_taken_when_it_is_late_before_the_youngest)
{
    tls_jobs_init(&jobs);
    for (unsigned i = 0; i < 3; i++)
        add(&steps.steps[i], true, 0, TLS_JOBS_YOUNG_NS + 10 * (i + 1));
    jobs.taken_at_ns = TLS_JOBS_YOUNG_NS; /* others were taken meanwhile */
    expect_next(TLS_JOBS_YOUNG_NS + 9, &steps.steps[2]);
    expect_next(TLS_JOBS_YOUNG_NS + 10, &steps.steps[0]);
    ck_assert(tls_job_is_late(&steps.steps[0].job, TLS_JOBS_YOUNG_NS + 10));
    ck_assert(!tls_job_is_late(&steps.steps[1].job, TLS_JOBS_YOUNG_NS + 19));
}

TEST(order, steps_that_waited_while_no_step_was_taken_are_not_late)
{
    tls_jobs_init(&jobs);
    add(&steps.steps[0], false, 10, 20);
    add(&steps.steps[1], true, 10, 20);
    expect_next(10 + TLS_JOBS_ABSENCE_NS, &steps.steps[0]);
    expect_next(10 + TLS_JOBS_ABSENCE_NS, &steps.steps[1]);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!tls_job_is_late(&steps.steps[i].job, 10 + TLS_JOBS_ABSENCE_NS));
        ck_assert(tls_job_is_late(&steps.steps[i].job, 20 + TLS_JOBS_ABSENCE_NS));
    }
}

/* ---- threads ---- */

GROUP(threads, steps_setup, NULL);

TEST(threads, threads_start_on_demand_up_to_their_number_with_name_and_nice_value)
{
    const struct tls_handshakes_conf conf = {.threads = 2, .nice = 3, .max_pending = MANY};
    int nice = getpriority(PRIO_PROCESS, 0);

    ck_assert_int_eq(tls_handshakes_start(&conf, &steps.pool), 0);
    ck_assert_uint_eq(steps_stats().threads, 0);
    for (unsigned i = 0; i < 3; i++) {
        steps.steps[i].gate = &steps.gate;
        steps_submit(&steps.steps[i], CLOCK_NEVER, true);
        UNTIL(steps_stats().steps_run == (i < 2 ? i + 1 : 2));
    }
    ck_assert_uint_eq(steps_stats().threads, 2);
    ck_assert_uint_eq(steps_stats().steps_pending, 1);
    ck_assert_int_gt(steps_stats().oldest_ns, 0);
    for (unsigned i = 0; i < 3; i++)
        sem_post(&steps.gate);
    UNTIL(steps_stats().steps_run == 3);
    ck_assert_int_eq(steps_stats().oldest_ns, 0);
    tls_handshakes_free(steps.pool);
    ck_assert_str_eq(steps.steps[0].thread, "hs-1");
    ck_assert_str_eq(steps.steps[1].thread, "hs-2");
    ck_assert_int_eq(steps.steps[0].nice, (nice + 3 < 19 ? nice + 3 : 19));
    ck_assert_int_eq(getpriority(PRIO_PROCESS, 0), nice);
}

TEST(threads, idle_thread_is_used_again)
{
    steps_start(4, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        steps_submit(&steps.steps[i], CLOCK_NEVER, true);
        UNTIL(atomic_load(&steps.steps[i].run) == 1);
    }
    ck_assert_uint_le(steps_stats().threads, 2); /* it may not have gone to sleep yet */
    tls_handshakes_free(steps.pool);
    tls_handshakes_free(NULL);
}

/* An owner that goes on at once: its further step is behind no first one. */
TEST(threads, step_may_submit_the_next_step)
{
    steps_start(1, MANY);
    steps_block();
    steps.steps[0].then = &steps.steps[1];
    steps.steps[0].p = steps.pool;
    steps_submit(&steps.steps[0], CLOCK_NEVER, true);
    steps_submit(&steps.steps[2], CLOCK_NEVER, true);
    sem_post(&steps.gate);
    UNTIL(atomic_load(&steps.steps[2].run) == 1);
    ck_assert_uint_lt(steps.steps[1].order, steps.steps[2].order);
    tls_handshakes_free(steps.pool);
}

/* The loops are only compared. */
TEST(threads, finished_steps_are_returned_four_at_a_time_with_one_wakeup_per_loop)
{
    static char loops[2];
    static const struct {
        unsigned loop;
        bool wakes;
    } expected[] = {{0, false}, {1, true}, {0, true}, {0, false}, {1, true}, {0, true}};

    steps_start(1, MANY);
    steps.blocker.job.loop = (struct loop *)&loops[0]; /* the first of the four */
    steps_block();
    for (unsigned i = 0; i < 6; i++) {
        steps.steps[i].job.loop = (struct loop *)&loops[expected[i].loop];
        steps_submit(&steps.steps[i], CLOCK_NEVER, true);
    }
    sem_post(&steps.gate);
    for (unsigned i = 0; i < 6; i++) {
        UNTIL(atomic_load(&steps.steps[i].given_back) == 1);
        ck_assert_msg(steps.steps[i].woke == expected[i].wakes, "step %u", i);
    }
    ck_assert(!steps.blocker.woke);
    tls_handshakes_free(steps.pool);
}

TEST(threads, max_pending_bounds_first_steps_and_later_steps_separately)
{
    steps_start(1, 3);
    steps_block();
    for (unsigned i = 0; i < 3; i++)
        steps_submit(&steps.steps[i], CLOCK_NEVER, true);
    ck_assert_int_eq(tls_handshakes_submit(steps.pool, &steps.steps[3].job, CLOCK_NEVER, true),
                     -EBUSY);
    for (unsigned i = 4; i < 7; i++)
        steps_submit(&steps.steps[i], CLOCK_NEVER, false);
    ck_assert_int_eq(tls_handshakes_submit(steps.pool, &steps.steps[7].job, CLOCK_NEVER, false),
                     -EBUSY);
    ck_assert_uint_eq(steps_stats().steps_refused, 2);
    ck_assert_uint_eq(steps_stats().steps_pending, 6);
    sem_post(&steps.gate);
    UNTIL(steps_stats().steps_run == 7);
    steps_submit(&steps.steps[3], CLOCK_NEVER, true);
    UNTIL(steps_stats().steps_run == 8);
    tls_handshakes_free(steps.pool);
    ck_assert_uint_eq(atomic_load(&steps.steps[7].run) + atomic_load(&steps.steps[7].dropped), 0);
}

TEST(threads, a_late_step_is_dropped_on_a_thread_and_does_not_run)
{
    steps_start(1, MANY);
    steps_block();
    steps_submit(&steps.steps[0], clock_now_ns(), true);
    steps_submit(&steps.steps[1], clock_now_ns() + 3600 * NS_PER_S, true);
    sem_post(&steps.gate);
    UNTIL(atomic_load(&steps.steps[1].run) == 1);
    steps_expect_once(&steps.steps[0], false);
    ck_assert_str_eq(steps.steps[0].thread, "hs-1");
    ck_assert_uint_eq(steps_stats().steps_dropped, 1);
    tls_handshakes_free(steps.pool);
}

TEST(threads, a_stop_waits_for_the_running_step_drops_the_others_and_refuses_more)
{
    steps_start(1, MANY);
    steps_block();
    steps_submit(&steps.steps[0], CLOCK_NEVER, true);
    steps_submit(&steps.steps[1], CLOCK_NEVER, false);
    sem_post(&steps.gate);
    tls_handshakes_stop(steps.pool);
    steps_expect_once(&steps.blocker, true);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(atomic_load(&steps.steps[i].run) + atomic_load(&steps.steps[i].dropped),
                          1);
    ck_assert_int_eq(tls_handshakes_submit(steps.pool, &steps.steps[2].job, CLOCK_NEVER, true),
                     -ESHUTDOWN);
    ck_assert_uint_eq(steps_stats().steps_pending, 0);
    tls_handshakes_stop(steps.pool);
    tls_handshakes_free(steps.pool);
}

static void *post_when_stopped(void *arg)
{
    UNTIL(tls_handshakes_submit(steps.pool, &steps.steps[1].job, CLOCK_NEVER, true) == -ESHUTDOWN);
    sem_post(&steps.gate);
    return arg;
}

/* The queue is full, so that no step is taken before the stop. */
TEST(threads, step_that_runs_as_the_pool_stops_is_returned)
{
    pthread_t thread;

    steps_start(1, 1);
    steps_block();
    steps_submit(&steps.steps[0], CLOCK_NEVER, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, post_when_stopped, NULL), 0);
    tls_handshakes_stop(steps.pool);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(atomic_load(&steps.blocker.given_back), 1);
    steps_expect_once(&steps.steps[0], false);
    tls_handshakes_free(steps.pool);
}
