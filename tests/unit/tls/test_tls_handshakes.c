/* tls/tls_handshakes: order and bounds of the queue, deadlines, threads, and loops instead. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "engine/loop.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"

#define MANY 40

struct step {
    struct tls_job job;
    unsigned order; /* in which it was run or dropped; from 1 */
    uint64_t turn;  /* of its loop */
    atomic_uint run, dropped, given_back;
    bool woke; /* its loop, when it was given back */
    char thread[16];
    int nice;
    sem_t *gate;              /* run() waits for it; NULL: does not wait */
    struct step *then;        /* run() submits it as a further step; NULL: none */
    struct tls_handshakes *p; /* for `then` */
};

static struct tls_handshakes *pool;
static struct step steps[MANY], blocker;
static atomic_uint n_done;
static sem_t gate;

static void step_note(struct step *s)
{
    struct loop_stats stats;

    s->order = atomic_fetch_add(&n_done, 1) + 1;
    prctl(PR_GET_NAME, s->thread);
    s->nice = getpriority(PRIO_PROCESS, 0);
    if (loop_current()) {
        loop_stats(loop_current(), &stats);
        s->turn = stats.turns;
    }
}

static void step_run(struct tls_job *job)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    step_note(s);
    if (s->then)
        ck_assert_int_eq(tls_handshakes_submit(s->p, &s->then->job, CLOCK_NEVER, false), 0);
    atomic_fetch_add(&s->run, 1);
    while (s->gate && sem_wait(s->gate) < 0)
        continue;
}

static void step_give_back(struct tls_job *job, bool wakes)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    s->woke = wakes;
    atomic_fetch_add(&s->given_back, 1);
}

static void step_drop(struct tls_job *job)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    step_note(s);
    atomic_fetch_add(&s->dropped, 1);
}

static const struct tls_job_type step_type = {"step", step_run, step_give_back, step_drop};

static void setup(void)
{
    for (unsigned i = 0; i < MANY; i++)
        steps[i].job.type = &step_type;
    blocker.job.type = &step_type;
    ck_assert_int_eq(sem_init(&gate, 0, 0), 0);
}

static void start(unsigned threads, unsigned max_pending)
{
    const struct tls_handshakes_conf conf = {.threads = threads, .max_pending = max_pending};

    ck_assert_int_eq(tls_handshakes_start(&conf, &pool), 0);
}

static struct tls_handshakes_stats stats(void)
{
    struct tls_handshakes_stats s;

    tls_handshakes_stats(pool, &s);
    return s;
}

static void submit(struct step *s, int64_t deadline_ns, bool first)
{
    ck_assert_int_eq(tls_handshakes_submit(pool, &s->job, deadline_ns, first), 0);
}

/* Keep the only thread busy until sem_post(&gate). */
static void block(void)
{
    blocker.gate = &gate;
    submit(&blocker, CLOCK_NEVER, true);
    UNTIL(atomic_load(&blocker.run) == 1);
}

static void expect_once(const struct step *s, bool runs)
{
    ck_assert_uint_eq(atomic_load(&s->run), runs);
    ck_assert_uint_eq(atomic_load(&s->dropped), !runs);
}

/* ---- the queue ---- */

GROUP(order, setup, NULL);

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
        add(&steps[i], true, i, CLOCK_NEVER);
    expect_next(TLS_JOBS_YOUNG_NS - 1, &steps[0]);
    ck_assert_int_eq(tls_jobs_oldest_at_ns(&jobs), 1);
    expect_next(TLS_JOBS_YOUNG_NS + 1, &steps[5]);
    expect_next(TLS_JOBS_YOUNG_NS + 1, &steps[4]);
    expect_next(TLS_JOBS_YOUNG_NS, &steps[1]);
    expect_next(TLS_JOBS_YOUNG_NS + 2, &steps[3]);
    expect_next(TLS_JOBS_YOUNG_NS + 2, &steps[2]);
    ck_assert_ptr_null(tls_jobs_take(&jobs, 0));
}

TEST(order, later_steps_precede_first_steps)
{
    tls_jobs_init(&jobs);
    add(&steps[0], true, 0, CLOCK_NEVER);
    add(&steps[1], false, 1, CLOCK_NEVER);
    add(&steps[2], false, 2, CLOCK_NEVER);
    expect_next(2, &steps[1]);
    expect_next(2, &steps[2]);
    expect_next(2, &steps[0]);
}

TEST(order, oldest_step_is_taken_when_it_is_late_before_the_youngest)
{
    tls_jobs_init(&jobs);
    for (unsigned i = 0; i < 3; i++)
        add(&steps[i], true, 0, TLS_JOBS_YOUNG_NS + 10 * (i + 1));
    jobs.taken_at_ns = TLS_JOBS_YOUNG_NS; /* others were taken meanwhile */
    expect_next(TLS_JOBS_YOUNG_NS + 9, &steps[2]);
    expect_next(TLS_JOBS_YOUNG_NS + 10, &steps[0]);
    ck_assert(tls_job_is_late(&steps[0].job, TLS_JOBS_YOUNG_NS + 10));
    ck_assert(!tls_job_is_late(&steps[1].job, TLS_JOBS_YOUNG_NS + 19));
}

TEST(order, steps_that_waited_while_no_step_was_taken_are_not_late)
{
    tls_jobs_init(&jobs);
    add(&steps[0], false, 10, 20);
    add(&steps[1], true, 10, 20);
    expect_next(10 + TLS_JOBS_ABSENCE_NS, &steps[0]);
    expect_next(10 + TLS_JOBS_ABSENCE_NS, &steps[1]);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!tls_job_is_late(&steps[i].job, 10 + TLS_JOBS_ABSENCE_NS));
        ck_assert(tls_job_is_late(&steps[i].job, 20 + TLS_JOBS_ABSENCE_NS));
    }
}

/* ---- threads ---- */

GROUP(threads, setup, NULL);

TEST(threads, threads_start_on_demand_up_to_their_number_with_name_and_nice_value)
{
    const struct tls_handshakes_conf conf = {.threads = 2, .nice = 3, .max_pending = MANY};
    int nice = getpriority(PRIO_PROCESS, 0);

    ck_assert_int_eq(tls_handshakes_start(&conf, &pool), 0);
    ck_assert_uint_eq(stats().threads, 0);
    for (unsigned i = 0; i < 3; i++) {
        steps[i].gate = &gate;
        submit(&steps[i], CLOCK_NEVER, true);
        UNTIL(stats().steps_run == (i < 2 ? i + 1 : 2));
    }
    ck_assert_uint_eq(stats().threads, 2);
    ck_assert_uint_eq(stats().steps_pending, 1);
    ck_assert_int_gt(stats().oldest_ns, 0);
    for (unsigned i = 0; i < 3; i++)
        sem_post(&gate);
    UNTIL(stats().steps_run == 3);
    ck_assert_int_eq(stats().oldest_ns, 0);
    tls_handshakes_free(pool);
    ck_assert_str_eq(steps[0].thread, "hs-1");
    ck_assert_str_eq(steps[1].thread, "hs-2");
    ck_assert_int_eq(steps[0].nice, (nice + 3 < 19 ? nice + 3 : 19));
    ck_assert_int_eq(getpriority(PRIO_PROCESS, 0), nice);
}

TEST(threads, idle_thread_is_used_again)
{
    start(4, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        submit(&steps[i], CLOCK_NEVER, true);
        UNTIL(atomic_load(&steps[i].run) == 1);
    }
    ck_assert_uint_le(stats().threads, 2); /* it may not have gone to sleep yet */
    tls_handshakes_free(pool);
    tls_handshakes_free(NULL);
}

/* An owner that goes on at once: its further step is behind no first one. */
TEST(threads, step_may_submit_the_next_step)
{
    start(1, MANY);
    block();
    steps[0].then = &steps[1];
    steps[0].p = pool;
    submit(&steps[0], CLOCK_NEVER, true);
    submit(&steps[2], CLOCK_NEVER, true);
    sem_post(&gate);
    UNTIL(atomic_load(&steps[2].run) == 1);
    ck_assert_uint_lt(steps[1].order, steps[2].order);
    tls_handshakes_free(pool);
}

/* The loops are only compared. */
TEST(threads, finished_steps_are_returned_four_at_a_time_with_one_wakeup_per_loop)
{
    static char loops[2];
    static const struct {
        unsigned loop;
        bool wakes;
    } expected[] = {{0, false}, {1, true}, {0, true}, {0, false}, {1, true}, {0, true}};

    start(1, MANY);
    blocker.job.loop = (struct loop *)&loops[0]; /* the first of the four */
    block();
    for (unsigned i = 0; i < 6; i++) {
        steps[i].job.loop = (struct loop *)&loops[expected[i].loop];
        submit(&steps[i], CLOCK_NEVER, true);
    }
    sem_post(&gate);
    for (unsigned i = 0; i < 6; i++) {
        UNTIL(atomic_load(&steps[i].given_back) == 1);
        ck_assert_msg(steps[i].woke == expected[i].wakes, "step %u", i);
    }
    ck_assert(!blocker.woke);
    tls_handshakes_free(pool);
}

TEST(threads, max_pending_bounds_first_steps_and_later_steps_separately)
{
    start(1, 3);
    block();
    for (unsigned i = 0; i < 3; i++)
        submit(&steps[i], CLOCK_NEVER, true);
    ck_assert_int_eq(tls_handshakes_submit(pool, &steps[3].job, CLOCK_NEVER, true), -EBUSY);
    for (unsigned i = 4; i < 7; i++)
        submit(&steps[i], CLOCK_NEVER, false);
    ck_assert_int_eq(tls_handshakes_submit(pool, &steps[7].job, CLOCK_NEVER, false), -EBUSY);
    ck_assert_uint_eq(stats().steps_refused, 2);
    ck_assert_uint_eq(stats().steps_pending, 6);
    sem_post(&gate);
    UNTIL(stats().steps_run == 7);
    submit(&steps[3], CLOCK_NEVER, true);
    UNTIL(stats().steps_run == 8);
    tls_handshakes_free(pool);
    ck_assert_uint_eq(atomic_load(&steps[7].run) + atomic_load(&steps[7].dropped), 0);
}

TEST(threads, a_late_step_is_dropped_on_a_thread_and_does_not_run)
{
    start(1, MANY);
    block();
    submit(&steps[0], clock_now_ns(), true);
    submit(&steps[1], clock_now_ns() + 3600 * NS_PER_S, true);
    sem_post(&gate);
    UNTIL(atomic_load(&steps[1].run) == 1);
    expect_once(&steps[0], false);
    ck_assert_str_eq(steps[0].thread, "hs-1");
    ck_assert_uint_eq(stats().steps_dropped, 1);
    tls_handshakes_free(pool);
}

TEST(threads, a_stop_waits_for_the_running_step_drops_the_others_and_refuses_more)
{
    start(1, MANY);
    block();
    submit(&steps[0], CLOCK_NEVER, true);
    submit(&steps[1], CLOCK_NEVER, false);
    sem_post(&gate);
    tls_handshakes_stop(pool);
    expect_once(&blocker, true);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(atomic_load(&steps[i].run) + atomic_load(&steps[i].dropped), 1);
    ck_assert_int_eq(tls_handshakes_submit(pool, &steps[2].job, CLOCK_NEVER, true), -ESHUTDOWN);
    ck_assert_uint_eq(stats().steps_pending, 0);
    tls_handshakes_stop(pool);
    tls_handshakes_free(pool);
}

static void *post_when_stopped(void *arg)
{
    UNTIL(tls_handshakes_submit(pool, &steps[1].job, CLOCK_NEVER, true) == -ESHUTDOWN);
    sem_post(&gate);
    return arg;
}

/* The queue is full, so that no step is taken before the stop. */
TEST(threads, step_that_runs_as_the_pool_stops_is_returned)
{
    pthread_t thread;

    start(1, 1);
    block();
    submit(&steps[0], CLOCK_NEVER, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, post_when_stopped, NULL), 0);
    tls_handshakes_stop(pool);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(atomic_load(&blocker.given_back), 1);
    expect_once(&steps[0], false);
    tls_handshakes_free(pool);
}

/* ---- loops ---- */

GROUP(loops, setup, NULL);

static void submit_ten(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 10; i++)
        submit(&steps[i], i == 5 ? clock_now_ns() : CLOCK_NEVER, true);
}

TEST(loops, without_threads_the_loop_runs_one_step_in_a_turn)
{
    struct loop *loop = loop_runner_create();

    start(0, MANY);
    loop_runner_call(loop, submit_ten, NULL);
    UNTIL(stats().steps_run + stats().steps_dropped == 10);
    for (unsigned i = 0; i < 10; i++) {
        expect_once(&steps[i], i != 5);
        ck_assert_uint_eq(steps[i].order, i + 1);
        ck_assert_str_eq(steps[i].thread, "test");
        ck_assert(i == 0 || steps[i].turn > steps[i - 1].turn);
    }
    ck_assert_uint_eq(stats().threads, 0);
    loop_runner_destroy(loop);
    tls_handshakes_free(pool);
}

static void start_beside(unsigned threads, unsigned loops)
{
    const struct tls_handshakes_conf conf = {
        .threads = threads, .max_pending = MANY, .loops = loops};

    ck_assert_int_eq(tls_handshakes_start(&conf, &pool), 0);
}

/* The loop says of every other step that it may run it. */
static void submit_ten_young(void *arg)
{
    for (unsigned i = 0; i < 10; i++)
        steps[i].job.on_loop = i % 2;
    submit_ten(arg);
}

/* Returns how many steps ran on the loop. */
static uint64_t run_ten_young(unsigned threads, unsigned loops)
{
    struct loop *loop = loop_runner_create();
    uint64_t on_loops;

    start_beside(threads, loops);
    loop_runner_call(loop, submit_ten_young, NULL);
    UNTIL(stats().steps_run + stats().steps_dropped == 10);
    on_loops = stats().steps_on_loops;
    loop_runner_destroy(loop);
    tls_handshakes_free(pool);
    return on_loops;
}

TEST(loops, loop_runs_the_steps_allowed_on_it_and_threads_the_others)
{
    ck_assert_uint_eq(run_ten_young(2, 2), 4); /* one was late */
    for (unsigned i = 0; i < 10; i++) {
        expect_once(&steps[i], i != 5);
        ck_assert_int_eq(strcmp(steps[i].thread, "test") == 0, i % 2);
    }
}

TEST(loops, with_more_threads_than_loops_the_threads_run_all_steps)
{
    ck_assert_uint_eq(run_ten_young(3, 2), 0);
}

static void submit_young(void *arg)
{
    (void)arg;
    steps[0].job.on_loop = true;
    submit(&steps[0], CLOCK_NEVER, true);
}

TEST(loops, threads_sleep_while_only_loops_have_steps)
{
    struct loop *loop = loop_runner_create();

    start_beside(1, 1);
    block(); /* a thread is there */
    sem_post(&gate);
    UNTIL(atomic_load(&blocker.given_back) == 1);
    steps[0].gate = &gate; /* the loop's step lasts */
    loop_runner_call(loop, submit_young, NULL);
    UNTIL(atomic_load(&steps[0].run) == 1);
    ck_assert_str_eq(steps[0].thread, "test");
    submit(&steps[1], CLOCK_NEVER, true);
    UNTIL(atomic_load(&steps[1].given_back) == 1); /* not kept until the loop is done */
    sem_post(&gate);
    loop_runner_destroy(loop);
    tls_handshakes_free(pool);
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

    start(0, MANY);
    loop_runner_call(loop, stop_and_submit, loop);
    loop_runner_join(loop);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(atomic_load(&steps[i].run) + atomic_load(&steps[i].dropped), 1);
    ck_assert_uint_gt(stats().steps_dropped, 0);
    ck_assert_uint_eq(stats().steps_pending, 0);
    for (unsigned i = 0; i < 10; i++)
        atomic_store(&steps[i].run, 0);
    loop_runner_call(other, submit_ten, NULL);
    UNTIL(atomic_load(&steps[9].run) == 1);
    loop_runner_destroy(other);
    loop_runner_destroy(loop);
    tls_handshakes_free(pool);
}
