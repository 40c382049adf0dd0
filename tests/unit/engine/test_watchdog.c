/*
 * engine/watchdog: a loop that hangs in a turn, and one that sleeps though it should not, are told
 * once and by name.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "engine/watchdog.h"
#include "support/bell.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define MS(n)     ((n)*NS_PER_MS)
#define THRESHOLD MS(300)

/* ---- the clock ---- */

static _Atomic int64_t ahead_ns;

/* In front of the C library's: what the program takes for the time. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    int64_t ns = out->tv_nsec + atomic_load(&ahead_ns);

    if (rc < 0 || clock != CLOCK_MONOTONIC)
        return rc;
    out->tv_sec += ns / NS_PER_S;
    out->tv_nsec = ns % NS_PER_S;
    return 0;
}

static void clock_ahead(int64_t ns)
{
    atomic_fetch_add(&ahead_ns, ns);
}

static struct watchdog *w;
static struct loop *loop, *other, *third;
static struct tasks_block block, other_block;

static struct loop *create(const char *name)
{
    struct loop_conf conf = {
        .name = name, .budget = {.io_ratio = 50, .quantum_ns = 1}, .max_pending_tasks = 64};
    struct loop *l;

    ck_assert_int_eq(loop_create(&l, &conf), 0);
    return l;
}

static void setup_with(int64_t threshold_ns)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    loop = create("one");
    other = create("two");
    third = create("three");
    ck_assert_int_eq(watchdog_create(&w, 4, threshold_ns), 0);
    watchdog_add(w, loop);
    watchdog_add(w, other);
    watchdog_add(w, third);
}

static void setup(void)
{
    setup_with(THRESHOLD);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
    loop_runner_destroy(other);
    loop_runner_destroy(third);
    watchdog_destroy(w);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Look at the loops for ${ms}; how often one did not turn. */
static unsigned bad_checks_in(int64_t ms)
{
    int64_t began_at_ns = clock_now_ns();
    unsigned bad = 0;

    while (since_ms(began_at_ns) < ms) {
        bad += !watchdog_check(w);
        PAUSE_MS(5);
    }
    return bad;
}

GROUP(stall, setup, teardown);

TEST(stall, turning_unstarted_and_ended_loops_do_not_stall)
{
    loop_runner_call(loop, nothing, NULL);
    loop_runner_call(other, nothing, NULL);
    loop_runner_stop(other);
    ck_assert_uint_eq(bad_checks_in(500), 0);
    ck_assert_uint_eq(log_lines_with(""), 0);
    ck_assert_int_eq(loop_state(third), LOOP_NOT_STARTED); /* it has started none */
    ck_assert_uint_le(process_loops(), 1);
}

static struct loop *fourth;

static void *add_fourth(void *arg)
{
    watchdog_add(w, fourth);
    return arg;
}

TEST(stall, loop_added_during_a_check_is_watched)
{
    pthread_t adding;

    fourth = create("four");
    tasks_block_begin(&block, fourth);
    pthread_create(&adding, NULL, add_fourth, NULL);
    UNTIL(!watchdog_check(w));
    pthread_join(adding, NULL);
    EXPECT_LOG_LINES("loop four: stalled: ", 1);
    tasks_block_end(&block);
    UNTIL(watchdog_check(w));
    loop_runner_destroy(fourth);
}

TEST(stall, long_turn_is_logged_once_with_its_task)
{
    tasks_block_begin(&block, other);
    UNTIL(!watchdog_check(w));
    ck_assert_uint_gt(bad_checks_in(50), 0);
    EXPECT_LOG_LINES("loop two: stalled: this turn has lasted ", 1);
    EXPECT_LOG_LINES(" s, now in block", 1);
    EXPECT_LOG_LINES("", 1);
    tasks_block_end(&block);
    UNTIL(watchdog_check(w));
    EXPECT_LOG_LINES("loop two: recovered after a stall of about ", 1);
    ck_assert_uint_eq(bad_checks_in(50), 0);
    EXPECT_LOG_LINES("", 2);
}

TEST(stall, turn_below_the_threshold_is_not_logged)
{
    tasks_block_begin(&block, loop);
    if (watchdog_check(w)) /* on a machine so busy that it is not, there is nothing to see */
        ck_assert_uint_eq(log_lines_with(""), 0);
    tasks_block_end(&block);
}

TEST(stall, every_stall_is_logged)
{
    for (unsigned i = 1; i <= 2; i++) {
        tasks_block_begin(&block, loop);
        UNTIL(!watchdog_check(w));
        tasks_block_end(&block);
        UNTIL(watchdog_check(w));
        EXPECT_LOG_LINES("loop one: stalled: ", i);
        EXPECT_LOG_LINES("loop one: recovered", i);
    }
}

TEST(stall, loops_that_stall_together_are_each_logged)
{
    tasks_block_begin(&block, loop);
    tasks_block_begin(&other_block, other);
    loop_runner_call(third, nothing, NULL);
    UNTIL((watchdog_check(w), log_lines_with("stalled: ") == 2));
    tasks_block_end(&block);
    UNTIL((watchdog_check(w), log_lines_with("loop one: recovered") == 1));
    ck_assert(!watchdog_check(w)); /* there is still the other one */
    tasks_block_end(&other_block);
    UNTIL(watchdog_check(w));
    EXPECT_LOG_LINES("loop two: recovered", 1);
    ck_assert_uint_eq(log_lines_with("loop three"), 0);
}

static sem_t released;

static void hang(struct bell *b)
{
    if (b->loop == other)
        loop_set_activity(other, "counting sheep");
    while (sem_wait(&released) < 0)
        ;
}

TEST_EACH(stall, stalled_callback_is_logged_as_io_or_by_its_name, 2)
{
    struct bell bell;

    sem_init(&released, 0, 0);
    bell_open(&bell, _i ? other : loop, hang);
    bell_ring(&bell);
    UNTIL(!watchdog_check(w));
    sem_post(&released);
    UNTIL(watchdog_check(w));
    EXPECT_LOG_LINES(_i ? "now in counting sheep" : "now in I/O", 1);
    bell_close(&bell);
}

/* Takes its time, but not the processor's. */
static void nap_run(struct task *t)
{
    (void)t;
    PAUSE_MS(20);
}

TEST(stall, many_turns_below_the_threshold_are_no_stall)
{
    static const struct task_type type = {.name = "nap", .run = nap_run};
    struct task naps[45]; /* 900 ms */
    struct loop_stats stats;

    for (size_t i = 0; i < ARRAY_LEN(naps); i++) {
        naps[i].type = &type;
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &naps[i]), 0);
    }
    UNTIL((watchdog_check(w), loop_stats(loop, &stats), stats.tasks_pending == 0));
    loop_runner_stop(loop);
    loop_stats(loop, &stats);
    if (histogram_quantile_ns(&stats.turn, 1000) <
        THRESHOLD) /* on a very busy machine one was not */
        ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(stall, without_a_threshold_no_loop_stalls)
{
    teardown();
    setup_with(0);
    tasks_block_begin(&block, loop);
    ck_assert_uint_eq(bad_checks_in(100), 0);
    tasks_block_end(&block);
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(stall, loop_that_ends_after_a_stall_is_healthy)
{
    tasks_block_begin(&block, loop);
    UNTIL(!watchdog_check(w));
    loop_stop(loop, 0, 0);
    ck_assert(!watchdog_check(w));
    tasks_block_end(&block);
    loop_runner_join(loop);
    ck_assert(watchdog_check(w));
}

struct interval {
    int64_t threshold_ns, interval_ns;
};

static const struct interval intervals[] = {
    {0, WATCHDOG_BEAT_NS},
    {MS(100), MS(50)},
    {MS(1000), MS(500)},
    {MS(60000), WATCHDOG_LOOK_MAX_NS},
};

TEST_EACH(stall, check_interval_is_half_the_threshold_up_to_a_maximum, ARRAY_LEN(intervals))
{
    teardown();
    setup_with(intervals[_i].threshold_ns);
    ck_assert_int_eq(watchdog_interval_ns(w), intervals[_i].interval_ns);
}

TEST_ABORTS(stall, adding_more_loops_than_the_maximum_is_a_bug)
{
    watchdog_add(w, loop);
    watchdog_add(w, loop);
}

TEST(stall, destroying_null_is_allowed)
{
    watchdog_destroy(NULL);
}

/* ---- beats ---- */

GROUP(beat, setup, teardown);

TEST(beat, beat_is_a_periodic_control_task)
{
    struct loop_stats stats;

    loop_runner_call(loop, nothing, NULL);
    ck_assert(watchdog_check(w));
    UNTIL((loop_stats(loop, &stats), stats.tasks_run == 2));
    ck_assert_uint_eq(bad_checks_in(100), 0);
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.tasks_run + stats.tasks_pending, 2); /* the next is due in 5 s */
}

TEST(beat, beat_dropped_by_the_end_of_its_loop_is_not_missed)
{
    tasks_block_begin(&block, loop);
    ck_assert(watchdog_check(w)); /* sends it */
    loop_stop(loop, 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loop);
    ck_assert(watchdog_check(w));
    ck_assert_uint_eq(log_lines_with("runs no tasks"), 0);
}

TEST(beat, loop_that_shuts_down_gets_no_beat_that_would_extend_its_quiet_period)
{
    struct loop_stats stats;

    loop_runner_call(loop, nothing, NULL);
    loop_stop(loop, MS(400), 20 * NS_PER_S);
    ck_assert(watchdog_check(w));
    loop_runner_join(loop);
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.tasks_run, 1);
}

TEST(beat, stall_without_a_task_name_is_logged)
{
    loop_runner_call(loop, nothing, NULL);
    PAUSE_MS(50); /* it sleeps */
    TELEMETRY_SET(loop->telemetry.doing, NULL);
    TELEMETRY_SET(loop->telemetry.turn_at_ns, clock_now_ns() - NS_PER_S);
    ck_assert(!watchdog_check(w));
    EXPECT_LOG_LINES("loop one: stalled: ", 1);
    ck_assert_uint_eq(log_lines_with("(null)"), 0);
}

static uint64_t tasks_of(struct loop *l)
{
    struct loop_stats stats;

    loop_stats(l, &stats);
    return stats.tasks_run + stats.tasks_pending;
}

/* The first beat is sent, and run. */
static void begin_beats(void)
{
    struct loop_stats stats;

    loop_runner_call(loop, nothing, NULL);
    ck_assert(watchdog_check(w));
    UNTIL((loop_stats(loop, &stats), stats.tasks_run == 2));
}

TEST(beat, next_beat_is_sent_exactly_when_it_is_due)
{
    begin_beats();
    loop_runner_call(loop, nothing, NULL);
    clock_ahead(WATCHDOG_BEAT_NS * 6 / 10);
    (void)watchdog_check(w);
    ck_assert_uint_eq(tasks_of(loop), 3);
    clock_ahead(WATCHDOG_BEAT_NS * 6 / 10);
    (void)watchdog_check(w);
    UNTIL(tasks_of(loop) == 4);
}

TEST(beat, loop_that_has_not_run_since_its_last_beat_gets_none)
{
    begin_beats();
    loop_runner_call(other, nothing, NULL);
    observe_until_idle(loop);
    observe_until_idle(other);
    clock_ahead(2 * WATCHDOG_BEAT_NS);
    ck_assert(watchdog_check(w));
    UNTIL(tasks_of(other) == 2);
    ck_assert_uint_eq(tasks_of(loop), 2);
}

TEST(beat, higher_threshold_lengthens_the_interval_of_beats)
{
    teardown();
    setup_with(10 * WATCHDOG_BEAT_NS);
    begin_beats();
    loop_runner_call(loop, nothing, NULL);
    clock_ahead(6 * WATCHDOG_BEAT_NS);
    (void)watchdog_check(w);
    ck_assert_uint_eq(tasks_of(loop), 3);
    clock_ahead(6 * WATCHDOG_BEAT_NS);
    (void)watchdog_check(w);
    UNTIL(tasks_of(loop) == 4);
}

/*
 * As if the wake-up of ${l}, which sleeps, were lost: whoever comes believes that somebody else has
 * woken it.
 */
static void make_deaf(struct loop *l)
{
    struct loop_stats now, before = loop_runner_stats(l);

    UNTIL((loop_stats(l, &now), now.polls_blocking > before.polls_blocking));
    PAUSE_MS(50);
    atomic_store(&l->wakeup.sleeps_until_ns, WAKEUP_AWAKE);
}

TEST(beat, loop_that_has_not_run_its_beat_is_logged_once)
{
    uint64_t one = 1;

    teardown();
    setup_with(0);
    loop_runner_call(third, nothing, NULL);
    make_deaf(other);
    tasks_block_begin(&block, loop);
    ck_assert(watchdog_check(w));
    PAUSE_MS(WATCHDOG_BEAT_NS / NS_PER_MS);
    UNTIL(!watchdog_check(w));
    ck_assert_uint_gt(bad_checks_in(50), 0);
    EXPECT_LOG_LINES("loop one: runs no tasks: ", 1);
    EXPECT_LOG_LINES("loop two: runs no tasks: ", 1);
    EXPECT_LOG_LINES("", 2);
    tasks_block_end(&block);
    ck_assert_int_eq(write(other->wakeup.fd, &one, sizeof(one)), sizeof(one));
    UNTIL(watchdog_check(w));
    EXPECT_LOG_LINES("loop one: runs tasks again", 1);
    EXPECT_LOG_LINES("loop two: runs tasks again", 1);
    ck_assert_uint_eq(log_lines_with("loop three"), 0);
}

TEST(beat, beat_may_be_missed_for_as_long_as_the_threshold)
{
    teardown();
    setup_with(3600 * NS_PER_S);
    tasks_block_begin(&block, loop);
    ck_assert(watchdog_check(w));
    PAUSE_MS(WATCHDOG_BEAT_NS / NS_PER_MS + 100);
    ck_assert(watchdog_check(w));
    ck_assert_uint_eq(log_lines_with(""), 0);
    tasks_block_end(&block);
}
