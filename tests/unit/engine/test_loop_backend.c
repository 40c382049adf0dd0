/*
 * engine/loop over an epoll instance that misbehaves: tasks, timers and I/O go on, and the
 * processor stays free. What a new instance takes over is in test_loop_rebuild.c.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "support/bell.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/timers.h"
#include "support/until.h"

#define MS(n)     ((n)*NS_PER_MS)
#define THRESHOLD 512

/*
 * Polls in 300 ms that are no spin: a paced loop makes one in each millisecond, one that spins
 * 100,000.
 */
#define PACED_MAX 1500

static struct loop *loop;

static void setup_with(unsigned threshold)
{
    struct loop_conf conf = {.name = "test",
                             .budget = {.io_ratio = 50, .quantum_ns = MS(100)},
                             .max_pending_tasks = 65536,
                             .rebuild_threshold = threshold};

    log_lines_capture(LOG_LEVEL_NOTICE);
    ck_assert_int_eq(loop_create(&loop, &conf), 0);
}

static void setup(void)
{
    setup_with(THRESHOLD);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Have it make a turn, and with it the next poll. */
static void turn(void)
{
    loop_runner_call(loop, nothing, NULL);
}

/* Let its next ${times} polls end with ${error} at once; 0: without an event. */
static void spoil_polls(unsigned times, int error)
{
    observe_until_asleep(loop);
    fault_plan(FAULT_EPOLL_WAIT, 0, times, error);
    turn();
}

static void expect_tasks_run(void)
{
    struct tasks_counted t;

    for (int queue = LOOP_CONTROL; queue <= LOOP_TAIL; queue++) {
        tasks_counted_init(&t);
        ck_assert_int_eq(loop_submit(loop, (enum loop_queue)queue, &t.task), 0);
        UNTIL(atomic_load(&t.run) == 1);
    }
}

static void expect_all_well(struct bell *b)
{
    expect_tasks_run();
    timers_expect_run(loop);
    bell_expect_heard(b);
}

/* It neither spins nor wakes up over and over: what it polls in 300 ms. */
static unsigned polls_meanwhile(void)
{
    unsigned before = fault_calls(FAULT_EPOLL_WAIT);

    PAUSE_MS(300);
    return fault_calls(FAULT_EPOLL_WAIT) - before;
}

/* ---- polls that fail ---- */

GROUP(fail, setup, teardown);

TEST(fail, failed_poll_causes_a_rebuild_and_the_loop_continues)
{
    struct bell bell;

    bell_open(&bell, loop, NULL);
    spoil_polls(1, EBADF);
    UNTIL(observe_stats(loop).rebuilds == 1);
    expect_all_well(&bell);
    ck_assert_uint_le(polls_meanwhile(), 5);
    bell_close(&bell);
    ck_assert_uint_eq(observe_stats(loop).rebuilds, 1);
    ck_assert_uint_eq(
        log_lines_with("loop test: epoll_wait: Bad file descriptor; its epoll instance is rebuilt"),
        1);
    EXPECT_LOG_LINES("", 1);
}

/* The first has a turn poll twice: it is a control task, and others wait behind it. */
static struct tasks_counted polled_twice[2];

/* Run in the tail of a turn: has one of the two polls of the next turn fail. */
struct tail {
    struct task task;
    unsigned skip; /* polls before the one that fails */
};

static void tail_run(struct task *t)
{
    fault_plan(FAULT_EPOLL_WAIT, CONTAINER_OF(t, struct tail, task)->skip, 1, EBADF);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            loop_submit(loop, i == 0 ? LOOP_CONTROL : LOOP_TASKS, &polled_twice[i].task), 0);
}

static const struct task_type tail_type = {.name = "tail", .run = tail_run, .drop = tail_run};

TEST_EACH(fail, an_error_of_either_poll_of_a_turn_counts, 2)
{
    struct tail tail = {.task.type = &tail_type, .skip = (unsigned)_i};

    for (int i = 0; i < 2; i++)
        tasks_counted_init(&polled_twice[i]);
    observe_until_asleep(loop);
    ck_assert_int_eq(loop_submit(loop, LOOP_TAIL, &tail.task), 0);
    UNTIL(atomic_load(&polled_twice[1].run) == 1);
    turn();
    ck_assert_uint_eq(observe_stats(loop).rebuilds, 1);
    EXPECT_LOG_LINES("epoll_wait: Bad file descriptor; its epoll instance is rebuilt", 1);
}

/* Polls that fail, or end without an event at once, for ever. */
static const int endless_errors[] = {EBADF, EINVAL, ENOMEM, 0};

static double seconds_of_processor(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

TEST_EACH(fail, loop_whose_polls_fail_slows_down_and_runs_tasks_and_timers,
          ARRAY_LEN(endless_errors))
{
    double used;

    turn();
    spoil_polls(FAULT_ALWAYS, endless_errors[_i]);
    UNTIL(log_lines_with("does not help; the loop is slowed down") == 1);
    used = seconds_of_processor();
    ck_assert_uint_le(polls_meanwhile(), PACED_MAX);
    ck_assert_double_lt(seconds_of_processor() - used, 0.25);
    for (int i = 0; i < 10; i++) {
        expect_tasks_run();
        timers_expect_run(loop);
    }
    EXPECT_LOG_LINES("is rebuilt", 1);
    EXPECT_LOG_LINES("is slowed down", 1);
    ck_assert_uint_ge(observe_stats(loop).rebuilds, 1);
    ck_assert_uint_le(observe_stats(loop).rebuilds, 40); /* one each second */
}

TEST_EACH(fail, loop_recovers_when_polls_succeed_and_logs_each_event_once,
          ARRAY_LEN(endless_errors))
{
    struct bell bell;

    bell_open(&bell, loop, NULL);
    spoil_polls(FAULT_ALWAYS, endless_errors[_i]);
    UNTIL(log_lines_with("is slowed down") == 1);
    PAUSE_MS(50);
    fault_plan(FAULT_EPOLL_WAIT, 0, 0, 0);
    expect_all_well(&bell);
    UNTIL((bell_ring(&bell), log_lines_with("loop test: polling for events succeeds again") == 1));
    EXPECT_LOG_LINES("", 3); /* rebuilt, slowed down, work again */
    PAUSE_MS(20);            /* it has heard the last ring */
    ck_assert_uint_le(polls_meanwhile(), 5);
    expect_all_well(&bell);
    bell_close(&bell);
}

/* A loop without I/O: its polls end with its timers, or with tasks. */
TEST_EACH(fail, loop_recovers_by_timers_and_by_tasks, 2)
{
    struct timers_noted every;
    struct tasks_counted t;

    turn();
    spoil_polls(FAULT_ALWAYS, EBADF);
    UNTIL(log_lines_with("is slowed down") == 1);
    fault_plan(FAULT_EPOLL_WAIT, 0, 0, 0);
    timers_noted_init(&every);
    if (_i == 0)
        ck_assert_int_eq(loop_submit_after(loop, &every.timer, 0, MS(20)), 0);
    for (int i = 0; i < 200 && log_lines_with("polling for events succeeds again") == 0; i++) {
        PAUSE_MS(50);
        if (_i == 0)
            continue;
        tasks_counted_init(&t);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t.task), 0);
        UNTIL(atomic_load(&t.run) == 1);
    }
    EXPECT_LOG_LINES("polling for events succeeds again", 1);
    loop_runner_stop(loop);
}

static void break_wakeup(void *arg)
{
    int *ends = arg;

    ck_assert_int_ge(dup2(ends[0], loop->wakeup.fd), 0);
    ck_assert_int_eq(backend_rebuild(&loop->backend), 0);
}

/* Somebody has closed the wake-up descriptor, and its number is now a pipe that has ended. */
TEST(fail, wakeup_descriptor_that_stays_readable_does_not_make_the_loop_spin)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    close(ends[1]);
    loop_runner_call(loop, break_wakeup, ends);
    UNTIL(log_lines_with("does not help; the loop is slowed down") == 1);
    EXPECT_LOG_LINES("its wake-up descriptor stays readable", 2);
    ck_assert_uint_le(polls_meanwhile(), PACED_MAX);
    expect_tasks_run();
    timers_expect_run(loop);
    close(ends[0]);
}

TEST_EACH(fail, loop_can_be_stopped_while_polls_fail, ARRAY_LEN(endless_errors))
{
    struct timers_noted t;
    int64_t began_at_ns;

    timers_noted_init(&t);
    ck_assert_int_eq(loop_submit_after(loop, &t.timer, 30 * NS_PER_S, 0), 0);
    spoil_polls(FAULT_ALWAYS, endless_errors[_i]);
    UNTIL(log_lines_with("is slowed down") == 1);
    began_at_ns = clock_now_ns();
    loop_stop(loop, MS(50), 10 * NS_PER_S);
    loop_runner_join(loop);
    ck_assert_int_lt(since_ms(began_at_ns), 9000);
    ck_assert_uint_eq(atomic_load(&t.dropped), 1);
}

/* ---- polls that end too early ---- */

GROUP(early, setup, teardown);

TEST(early, series_of_early_polls_causes_one_rebuild)
{
    struct bell bell;

    bell_open(&bell, loop, NULL);
    spoil_polls(THRESHOLD, 0);
    UNTIL(observe_stats(loop).rebuilds == 1);
    ck_assert_uint_le(polls_meanwhile(), 5);
    ck_assert_uint_eq(observe_stats(loop).rebuilds, 1);
    EXPECT_LOG_LINES("epoll_wait returns early without events; its epoll "
                     "instance is rebuilt",
                     1);
    expect_all_well(&bell);
    PAUSE_MS(1100); /* BACKEND_CURE_NS: now another row is a new story */
    spoil_polls(THRESHOLD, 0);
    UNTIL(observe_stats(loop).rebuilds == 2);
    ck_assert_uint_le(polls_meanwhile(), 5);
    ck_assert_uint_eq(observe_stats(loop).rebuilds, 2);
    ck_assert_uint_eq(log_lines_with("is slowed down"), 0);
    expect_all_well(&bell);
    bell_close(&bell);
}

TEST(early, tasks_and_timers_that_end_polls_cause_no_rebuild)
{
    struct tasks_counted t;
    struct timers_noted every;

    teardown();
    setup_with(3);
    timers_noted_init(&every);
    ck_assert_int_eq(loop_submit_after(loop, &every.timer, 0, 50 * NS_PER_US), 0);
    for (int i = 0; i < 2000; i++) {
        tasks_counted_init(&t);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t.task), 0);
        UNTIL(atomic_load(&t.run) == 1);
    }
    loop_runner_stop(loop);
    ck_assert_uint_eq(observe_stats(loop).rebuilds, 0);
    ck_assert_uint_eq(log_lines_with(""), 0);
}

static atomic_uint n_signals;
static pthread_t its_thread;

static void on_signal(int signo)
{
    (void)signo;
    atomic_fetch_add(&n_signals, 1);
}

static void note_thread(void *arg)
{
    (void)arg;
    its_thread = pthread_self();
}

#define SIGNALS IF_SANITIZED(1000, 10000)

TEST(early, signals_that_end_polls_cause_no_rebuild)
{
    struct sigaction action = {.sa_handler = on_signal};

    teardown();
    setup_with(3);
    sigaction(SIGUSR1, &action, NULL);
    loop_runner_call(loop, note_thread, NULL);
    observe_until_asleep(loop);
    for (unsigned i = 1; i <= SIGNALS; i++) {
        pthread_kill(its_thread, SIGUSR1);
        while (atomic_load(&n_signals) < i)
            sched_yield(); /* two at a time would be one */
    }
    expect_tasks_run();
    ck_assert_uint_ge(observe_stats(loop).turns,
                      SIGNALS / 10); /* some end a poll, some come between two */
    ck_assert_uint_eq(observe_stats(loop).rebuilds, 0);
    ck_assert_uint_eq(log_lines_with(""), 0);
}
