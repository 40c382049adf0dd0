/*
 * engine/watchdog: while all loops sleep it dozes, and what a loop begins to do ends that.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "engine/watchdog.h"
#include "support/bell.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define MS(n)     ((n)*NS_PER_MS)
#define THRESHOLD MS(300)

/* ---- the clock ---- */

static _Atomic int64_t ahead_ns;
static atomic_uint late_poll; /* when so many polls were struck it is a minute later; 0: never */

/* In front of the C library's: what the program takes for the time. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    int64_t ns = out->tv_nsec + atomic_load(&ahead_ns);
    unsigned late = atomic_load(&late_poll);

    if (rc < 0 || clock != CLOCK_MONOTONIC)
        return rc;
    if (late > 0 && fault_struck(FAULT_EPOLL_WAIT) >= late)
        ns += 60 * NS_PER_S;
    out->tv_sec += ns / NS_PER_S;
    out->tv_nsec = ns % NS_PER_S;
    return 0;
}

static void clock_ahead(int64_t ns)
{
    atomic_fetch_add(&ahead_ns, ns);
}

static struct watchdog *w;
static struct loop *loop, *other;
static struct tasks_block block;

static struct loop *create(const char *name)
{
    struct loop_conf conf = {
        .name = name, .budget = {.io_ratio = 50, .quantum_ns = 1}, .max_pending_tasks = 64};
    struct loop *l;

    ck_assert_int_eq(loop_create(&l, &conf), 0);
    return l;
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    loop = create("one");
    other = create("two");
    ck_assert_int_eq(watchdog_create(&w, 3, THRESHOLD), 0);
    watchdog_add(w, loop);
    watchdog_add(w, other);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
    loop_runner_destroy(other);
    watchdog_destroy(w);
}

static void nothing(void *arg)
{
    (void)arg;
}

static uint64_t tasks_of(struct loop *l)
{
    struct loop_stats stats;

    loop_stats(l, &stats);
    return stats.tasks_run + stats.tasks_pending;
}

static sem_t released;

static void hang(struct bell *b)
{
    (void)b;
    while (sem_wait(&released) < 0)
        ;
}

GROUP(doze, setup, teardown);

static bool is_woken(void)
{
    struct pollfd p = {.fd = watchdog_fd(w), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* The first loop has run and sleeps, and the watchdog dozes. */
static void begin_doze(void)
{
    loop_runner_call(loop, nothing, NULL);
    UNTIL((watchdog_check(w), watchdog_doze(w)));
    ck_assert(!is_woken());
}

TEST(doze, turn_ends_a_doze_before_its_first_task)
{
    begin_doze();
    tasks_block_begin(&block, loop);
    ck_assert(is_woken());
    ck_assert(!watchdog_doze(w));
    UNTIL(!watchdog_check(w));
    EXPECT_LOG_LINES("loop one: stalled: ", 1);
    ck_assert(!watchdog_doze(w));
    tasks_block_end(&block);
    UNTIL((watchdog_check(w), watchdog_doze(w)));
    ck_assert(!is_woken());
}

TEST(doze, input_ends_a_doze)
{
    struct bell bell;

    sem_init(&released, 0, 0);
    bell_open(&bell, loop, hang);
    begin_doze();
    bell_ring(&bell);
    UNTIL(is_woken());
    UNTIL(!watchdog_check(w));
    sem_post(&released);
    UNTIL(watchdog_check(w));
    bell_close(&bell);
}

TEST(doze, first_turn_of_a_new_thread_ends_a_doze)
{
    begin_doze();
    tasks_block_begin(&block, other);
    ck_assert(is_woken());
    ck_assert(!watchdog_doze(w));
    tasks_block_end(&block);
}

TEST(doze, loop_that_is_added_in_a_doze_ends_it)
{
    struct loop *third;

    begin_doze();
    third = create("three");
    tasks_block_begin(&block, third);
    ck_assert(!is_woken());
    watchdog_add(w, third);
    ck_assert(is_woken());
    UNTIL(!watchdog_check(w));
    tasks_block_end(&block);
    loop_runner_destroy(third);
}

/* As many writes to an eventfd fail as one wake-up tries. */
TEST(doze, task_for_a_loop_whose_wakeup_is_lost_ends_a_doze)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    begin_doze();
    UNTIL(atomic_load(&loop->wakeup.sleeps_until_ns) != WAKEUP_AWAKE);
    fault_plan(FAULT_WRITE, 0, 100, EIO);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t.task), 0);
    ck_assert(is_woken());
    ck_assert(!watchdog_doze(w));
    ck_assert_uint_eq(atomic_load(&t.run), 0);
    clock_ahead(2 * WATCHDOG_BEAT_NS);
    ck_assert(watchdog_check(w)); /* its beat wakes the loop */
    UNTIL(atomic_load(&t.run) == 1);
    UNTIL((watchdog_check(w), watchdog_doze(w)));
}

TEST(doze, loop_with_many_turns_prevents_a_doze)
{
    begin_doze();
    for (unsigned i = 0; i <= 2 * WATCHDOG_FEW_TURNS; i++)
        loop_runner_call(loop, nothing, NULL);
    observe_until_idle(loop);
    ck_assert(watchdog_check(w));
    ck_assert(!watchdog_doze(w));
    UNTIL((watchdog_check(w), watchdog_doze(w)));
}

TEST(doze, check_in_a_doze_sends_a_beat_to_a_loop_at_rest)
{
    uint64_t tasks;

    begin_doze();
    tasks = tasks_of(loop);
    clock_ahead(2 * WATCHDOG_BEAT_NS);
    ck_assert(watchdog_check(w));
    UNTIL(tasks_of(loop) == tasks + 1);
    ck_assert(!is_woken());
    UNTIL((watchdog_check(w), watchdog_doze(w)));
    ck_assert_uint_eq(tasks_of(loop), tasks + 1);
}

TEST(doze, poll_that_libev_ends_after_a_minute_is_no_turn)
{
    struct loop_stats before, now;

    loop_runner_call(loop, nothing, NULL);
    observe_until_asleep(loop);
    loop_stats(loop, &before);
    atomic_store(&late_poll, fault_struck(FAULT_EPOLL_WAIT) + 1);
    fault_plan(FAULT_EPOLL_WAIT, 0, 1, 0);
    loop_runner_call(loop, nothing, NULL);
    UNTIL(fault_struck(FAULT_EPOLL_WAIT) == atomic_load(&late_poll));
    loop_runner_call(loop, nothing, NULL);
    observe_until_idle(loop);
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.turns, before.turns + 2); /* those of the two calls */
    ck_assert_uint_eq(now.turns_empty, before.turns_empty);
    ck_assert_int_ge(now.poll_ns - before.poll_ns, 59 * NS_PER_S);
}
