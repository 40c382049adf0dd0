/* engine/wakeup: one system call a sleep at most, and none for a loop that is awake. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "engine/wakeup.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/until.h"

static struct wakeup w;

static void setup(void)
{
    ck_assert_int_eq(wakeup_open(&w), 0);
}

static void teardown(void)
{
    wakeup_close(&w);
}

static bool readable(void)
{
    struct pollfd p = {.fd = w.fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

GROUP(wakeup, setup, teardown);

TEST(wakeup, waking_an_awake_loop_costs_no_system_call)
{
    wakeup_send(&w);
    ck_assert_uint_eq(atomic_load(&w.sent), 0);
    ck_assert(!readable());
}

TEST(wakeup, waking_a_sleeping_loop_costs_one_system_call_for_any_number_of_senders)
{
    wakeup_prepare(&w, CLOCK_NEVER);
    for (int i = 0; i < 100; i++)
        wakeup_send(&w);
    ck_assert_uint_eq(atomic_load(&w.sent), 1);
    ck_assert(readable());
}

/* Each has looked before the first one wrote. */
TEST(wakeup, concurrent_producers_pay_one_system_call)
{
    wakeup_prepare(&w, CLOCK_NEVER);
    for (int i = 0; i < 3; i++)
        wakeup_end_sleep(&w);
    ck_assert_uint_eq(atomic_load(&w.sent), 1);
}

TEST(wakeup, every_sleep_can_be_ended)
{
    for (unsigned i = 1; i <= 5; i++) {
        wakeup_prepare(&w, CLOCK_NEVER);
        wakeup_send(&w);
        ck_assert(readable());
        wakeup_done(&w);
        wakeup_clear(&w);
        ck_assert(!readable());
        ck_assert_uint_eq(atomic_load(&w.sent), i);
    }
}

static const int errors[] = {EINTR, EAGAIN, ENOMEM, EIO};

TEST_EACH(wakeup, write_that_fails_once_still_wakes_the_loop, ARRAY_LEN(errors))
{
    wakeup_prepare(&w, CLOCK_NEVER);
    fault_plan(FAULT_WRITE, 0, 1, errors[_i]);
    wakeup_send(&w);
    ck_assert(readable());
}

TEST_EACH(wakeup, a_loop_that_could_not_be_woken_is_woken_by_the_next_producer, ARRAY_LEN(errors))
{
    log_lines_capture(LOG_LEVEL_ERROR);
    wakeup_prepare(&w, CLOCK_NEVER);
    fault_plan(FAULT_WRITE, 0, FAULT_ALWAYS, errors[_i]);
    wakeup_send(&w);
    fault_plan(FAULT_WRITE, 0, 0, 0);
    ck_assert(!readable());
    EXPECT_LOG_LINES("an event late", 1);
    wakeup_send(&w);
    ck_assert(readable());
}

TEST(wakeup, sleep_with_a_deadline_can_be_ended)
{
    wakeup_prepare(&w, 0);
    wakeup_send(&w);
    ck_assert(readable());
}

TEST(wakeup, loop_that_woke_by_itself_needs_no_system_call)
{
    wakeup_prepare(&w, CLOCK_NEVER);
    wakeup_done(&w);
    wakeup_send(&w);
    ck_assert_uint_eq(atomic_load(&w.sent), 0);
}

TEST(wakeup, clearing_without_a_sent_wakeup_does_not_block)
{
    wakeup_clear(&w);
    ck_assert(!readable());
}

TEST(wakeup, loop_that_wakes_up_in_time_needs_no_system_call)
{
    wakeup_prepare(&w, 1000);
    wakeup_send_before(&w, 1000);
    wakeup_send_before(&w, 1001);
    wakeup_send_before(&w, CLOCK_NEVER);
    ck_assert_uint_eq(atomic_load(&w.sent), 0);
    ck_assert(!readable());
    wakeup_send(&w); /* it still counts as asleep */
    ck_assert_uint_eq(atomic_load(&w.sent), 1);
}

TEST(wakeup, sleep_beyond_an_instant_is_ended_once)
{
    wakeup_prepare(&w, 1000);
    wakeup_send_before(&w, 999);
    wakeup_send_before(&w, 1);
    ck_assert_uint_eq(atomic_load(&w.sent), 1);
    ck_assert(readable());
}

TEST(wakeup, endless_sleep_is_too_long_for_every_instant_but_never)
{
    wakeup_prepare(&w, CLOCK_NEVER);
    wakeup_send_before(&w, CLOCK_NEVER);
    ck_assert_uint_eq(atomic_load(&w.sent), 0);
    wakeup_send_before(&w, CLOCK_NEVER - 1);
    ck_assert_uint_eq(atomic_load(&w.sent), 1);
}

TEST(wakeup, an_awake_loop_is_not_woken_for_an_instant)
{
    wakeup_send_before(&w, 0);
    wakeup_send_before(&w, clock_now_ns());
    ck_assert_uint_eq(atomic_load(&w.sent), 0);
    ck_assert(!readable());
}

TEST(wakeup, wait_lasts_exactly_until_its_instant)
{
    int64_t at_ns = clock_now_ns() + 30 * NS_PER_MS;

    wakeup_wait(&w, at_ns);
    ck_assert_int_ge(clock_now_ns(), at_ns);
    ck_assert_int_lt(since_ms(at_ns), 5000);
}

TEST(wakeup, wait_for_a_past_instant_does_not_block)
{
    int64_t began_at_ns = clock_now_ns();

    for (int i = 0; i < 100; i++) {
        wakeup_wait(&w, began_at_ns);
        wakeup_wait(&w, 0);
    }
    ck_assert_int_lt(since_ms(began_at_ns), 5000);
}

TEST(wakeup, wait_ends_with_a_wakeup_sent_before_it)
{
    int64_t began_at_ns = clock_now_ns();

    wakeup_prepare(&w, CLOCK_NEVER);
    wakeup_send(&w);
    wakeup_wait(&w, CLOCK_NEVER);
    ck_assert_int_lt(since_ms(began_at_ns), 5000);
    ck_assert(!readable()); /* and the next wait lasts again */
}

static void *send_later(void *arg)
{
    PAUSE_MS(30);
    wakeup_send(&w);
    return arg;
}

TEST(wakeup, wait_ends_when_another_thread_sends)
{
    int64_t began_at_ns = clock_now_ns();
    pthread_t sender;

    wakeup_prepare(&w, CLOCK_NEVER);
    pthread_create(&sender, NULL, send_later, NULL);
    wakeup_wait(&w, began_at_ns + 20 * NS_PER_S);
    ck_assert_int_lt(since_ms(began_at_ns), 10000);
    pthread_join(sender, NULL);
    ck_assert(!readable());
}

/* Fewer if they take long: threads that take turns on one processor need a time slice for each. */
#define SLEEPS    100000
#define SLEEPS_NS (3 * NS_PER_S)

static atomic_uint sleep_no, other_sent_no, last_sleep_no;

static void await_no(atomic_uint *no, unsigned i)
{
    for (unsigned spin = 1; atomic_load(no) < i; spin++)
        if (spin % 256 == 0)
            sched_yield();
}

static void *send_each_sleep(void *arg)
{
    for (unsigned i = 1; i <= atomic_load(&last_sleep_no); i++) {
        await_no(&sleep_no, i);
        wakeup_send(&w);
        atomic_store(&other_sent_no, i);
    }
    return arg;
}

/* The other thread sees the sleep a little later than this one does: how much, differs. */
TEST(wakeup, one_of_two_threads_that_send_at_the_same_moment_pays)
{
    int64_t until_ns = clock_now_ns() + SLEEPS_NS;
    pthread_t other;

    atomic_store(&last_sleep_no, SLEEPS);
    pthread_create(&other, NULL, send_each_sleep, NULL);
    for (unsigned i = 1; i <= atomic_load(&last_sleep_no); i++) {
        if (clock_now_ns() > until_ns)
            atomic_store(&last_sleep_no, i);
        wakeup_prepare(&w, CLOCK_NEVER);
        atomic_store(&sleep_no, i);
        for (unsigned spin = 0; spin < i % 64; spin++)
            (void)atomic_load_explicit(&other_sent_no, memory_order_relaxed);
        wakeup_send(&w);
        await_no(&other_sent_no, i);
        if (atomic_load(&w.sent) != i)
            ck_abort_msg("sleep %u was paid for twice", i);
        wakeup_clear(&w);
    }
    pthread_join(other, NULL);
}

TEST(wakeup, the_descriptor_is_not_inherited_and_does_not_block)
{
    ck_assert_int_ne(fcntl(w.fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(w.fd, F_GETFL) & O_NONBLOCK, 0);
}

TEST(wakeup, opening_without_descriptors_fails)
{
    struct wakeup other;

    process_allow_descriptors(0);
    ck_assert_int_eq(wakeup_open(&other), -EMFILE);
}

TEST(wakeup, closing_gives_the_descriptor_back)
{
    unsigned before = process_descriptors();
    struct wakeup other;

    ck_assert_int_eq(wakeup_open(&other), 0);
    wakeup_close(&other);
    ck_assert_uint_eq(process_descriptors(), before);
}
