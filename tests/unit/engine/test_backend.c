/*
 * engine/backend: what a poll says went wrong, when that is too much, and what is done about it. No
 * loop around it.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/backend.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/until.h"

#define THRESHOLD 512

static struct backend b;
static struct ev_io nudge, other;
static int nudge_fd, other_fd;
static unsigned n_ready, n_errors;

static void on_ready(struct ev_loop *ev, struct ev_io *w, int revents)
{
    uint64_t count;

    (void)ev;
    if (revents & EV_ERROR)
        n_errors++;
    else
        n_ready += read(w->fd, &count, sizeof(count)) == sizeof(count) && w == &other;
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_DEBUG);
    nudge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    other_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ck_assert_int_eq(backend_open(&b, "test", nudge_fd, THRESHOLD), 0);
    ev_io_init(&nudge, on_ready, nudge_fd, EV_READ);
    ev_io_init(&other, on_ready, other_fd, EV_READ);
    ev_io_start(b.ev, &nudge);
}

static void teardown(void)
{
    backend_close(&b);
    close(nudge_fd);
    close(other_fd);
}

static void ring(int fd)
{
    uint64_t one = 1;

    ck_assert_int_eq(write(fd, &one, sizeof(one)), sizeof(one));
}

/* A second (BACKEND_CURE_NS) goes by. */
static void let_time_pass(void)
{
    b.rebuilt_at_ns -= BACKEND_CURE_NS;
    b.bad_at_ns -= BACKEND_CURE_NS;
}

static bool judge(enum backend_poll poll)
{
    return backend_judge(&b, poll, "something is wrong");
}

/* Judge ${poll} ${n} times; how often that had it rebuilt. */
static unsigned judge_times(unsigned n, enum backend_poll poll)
{
    unsigned rebuilt = 0;

    while (n-- > 0)
        rebuilt += judge(poll);
    return rebuilt;
}

/* ---- the poll ---- */

static const int poll_errors[] = {EBADF, EINVAL, EFAULT, ENOMEM, EINTR};

GROUP(poll, setup, teardown);

TEST_EACH(poll, poll_error_is_reported_and_cleared_by_the_next_poll, ARRAY_LEN(poll_errors))
{
    backend_poll(&b, false);
    ck_assert_int_eq(b.error, 0);
    errno = EPIPE; /* of somebody else, earlier */
    backend_poll(&b, false);
    ck_assert_int_eq(b.error, 0);
    fault_plan(FAULT_EPOLL_WAIT, 0, 1, poll_errors[_i]);
    backend_poll(&b, false);
    ck_assert_int_eq(b.error, poll_errors[_i]);
    backend_poll(&b, false);
    ck_assert_int_eq(b.error, 0);
}

TEST(poll, callback_error_is_not_reported_as_a_poll_error)
{
    ev_io_start(b.ev, &other);
    ring(other_fd);
    close(dup(other_fd));
    errno = EIO;
    backend_poll(&b, true);
    ck_assert_uint_eq(n_ready, 1);
    ck_assert_int_eq(b.error, 0);
}

TEST(poll, the_first_poll_does_not_block)
{
    int64_t began_at_ns = clock_now_ns();

    backend_poll(&b, true);
    ck_assert_int_lt(since_ms(began_at_ns), 20000); /* libev would sleep for a minute */
}

TEST_EACH(poll, descriptor_that_cannot_be_watched_ends_the_poll_and_is_reported, 2)
{
    int64_t began_at_ns;

    backend_poll(&b, true);
    ev_io_start(b.ev, &other);
    fault_plan(FAULT_EPOLL_CTL, 0, 1, _i ? ENOSPC : ENOMEM);
    began_at_ns = clock_now_ns();
    backend_poll(&b, true);
    ck_assert_int_lt(since_ms(began_at_ns), 20000);
    ck_assert_uint_eq(n_errors, 1);
    ck_assert(!ev_is_active(&other));
    ck_assert_int_eq(b.error, 0);
    ev_io_set(&other, other_fd, EV_READ); /* or libev takes it for registered */
    ev_io_start(b.ev, &other);
    ring(other_fd);
    backend_poll(&b, true);
    ck_assert_uint_eq(n_ready, 1);
}

TEST(poll, creating_without_descriptors_fails)
{
    unsigned before = process_descriptors();
    struct backend none;

    process_allow_descriptors(0);
    ck_assert_int_eq(backend_open(&none, "none", nudge_fd, 0), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
    fault_plan(FAULT_EPOLL_CREATE1, 0, 1, ENOMEM);
    ck_assert_int_eq(backend_open(&none, "none", nudge_fd, 0), -ENOMEM);
}

/* ---- rebuilding ---- */

GROUP(rebuild, setup, teardown);

TEST(rebuild, rebuilt_backend_polls_without_blocking_first_and_keeps_its_watchers)
{
    unsigned before = process_descriptors();
    int64_t began_at_ns;

    ev_io_start(b.ev, &other);
    backend_poll(&b, true);
    for (unsigned i = 1; i <= 20; i++) {
        ring(other_fd); /* ready before it is rebuilt */
        ck_assert_int_eq(backend_rebuild(&b), 0);
        backend_poll(&b, true);
        ck_assert_uint_eq(n_ready, i);
    }
    ck_assert_int_eq(backend_rebuild(&b), 0);
    began_at_ns = clock_now_ns();
    backend_poll(&b, true);
    ck_assert_int_lt(since_ms(began_at_ns), 20000);
    ck_assert_uint_eq(process_descriptors(), before);
}

static const int create_errors[] = {EMFILE, ENFILE, ENOMEM};

TEST_EACH(rebuild, failed_rebuild_keeps_the_old_instance, ARRAY_LEN(create_errors))
{
    ev_io_start(b.ev, &other);
    backend_poll(&b, true);
    fault_plan(FAULT_EPOLL_CREATE1, 0, 1, create_errors[_i]);
    ck_assert_int_eq(backend_rebuild(&b), -create_errors[_i]);
    ring(other_fd);
    backend_poll(&b, true);
    ck_assert_uint_eq(n_ready, 1);
}

/* Somebody else took the descriptor that was free a moment ago. */
TEST(rebuild, library_retries_a_failed_epoll_instance_and_logs_once)
{
    ev_io_start(b.ev, &other);
    backend_poll(&b, true);
    fault_plan(FAULT_EPOLL_CREATE1, 1, 5, EMFILE);
    ck_assert_int_eq(backend_rebuild(&b), 0);
    ring(other_fd);
    backend_poll(&b, true);
    ck_assert_uint_eq(n_ready, 1);
    ck_assert_int_eq(b.error, 0);
    ck_assert_uint_eq(
        log_lines_with("loop test: cannot create an epoll instance: Too many open files"), 1);
}

/* ---- judging ---- */

GROUP(judge, setup, teardown);

TEST(judge, good_and_neutral_polls_change_nothing)
{
    ck_assert_uint_eq(judge_times(10000, BACKEND_GOOD), 0);
    ck_assert_uint_eq(judge_times(10000, BACKEND_NEUTRAL), 0);
    ck_assert(!b.in_trouble && !b.paced);
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(judge, early_polls_in_a_row_are_too_many_when_the_threshold_is_reached)
{
    ck_assert_uint_eq(judge_times(THRESHOLD - 1, BACKEND_EARLY), 0);
    ck_assert(judge(BACKEND_EARLY));
    EXPECT_LOG_LINES("something is wrong; its epoll instance is rebuilt", 1);
}

TEST(judge, poll_of_another_kind_restarts_the_count)
{
    for (int i = 0; i < 10; i++) {
        ck_assert_uint_eq(judge_times(THRESHOLD - 1, BACKEND_EARLY), 0);
        ck_assert(!judge(i % 2 ? BACKEND_GOOD : BACKEND_NEUTRAL));
    }
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(judge, each_series_of_early_polls_causes_one_rebuild)
{
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(judge_times(THRESHOLD, BACKEND_EARLY), 1);
        let_time_pass();
    }
    EXPECT_LOG_LINES("", 1); /* one episode */
}

TEST(judge, threshold_of_zero_ignores_early_polls)
{
    b.threshold = 0;
    ck_assert_uint_eq(judge_times(100000, BACKEND_EARLY), 0);
    ck_assert(!b.in_trouble && !b.paced);
}

TEST_EACH(judge, failed_poll_exceeds_any_threshold, 2)
{
    b.threshold = _i ? THRESHOLD : 0;
    ck_assert(judge(BACKEND_FAILED));
    EXPECT_LOG_LINES("something is wrong; its epoll instance is rebuilt", 1);
}

TEST(judge, failure_that_a_rebuild_does_not_cure_slows_the_loop_down)
{
    ck_assert(judge(BACKEND_FAILED));
    ck_assert(!b.paced);
    ck_assert(!judge(BACKEND_FAILED));
    ck_assert(b.paced);
    ck_assert_uint_eq(judge_times(100, BACKEND_FAILED), 0);
    EXPECT_LOG_LINES("does not help; the loop is slowed down", 1);
}

TEST(judge, second_series_of_early_polls_slows_the_loop_down)
{
    ck_assert_uint_eq(judge_times(2 * THRESHOLD - 1, BACKEND_EARLY), 1);
    ck_assert(!b.paced);
    ck_assert(!judge(BACKEND_EARLY));
    ck_assert(b.paced);
}

TEST(judge, rebuild_is_retried_once_a_second_without_a_log_line)
{
    judge_times(2, BACKEND_FAILED);
    ck_assert(b.paced);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(judge_times(50, BACKEND_FAILED), 0);
        let_time_pass();
        ck_assert(judge(BACKEND_FAILED));
    }
    EXPECT_LOG_LINES("", 2); /* rebuilt; does not help */
}

TEST(judge, good_polls_between_failures_are_no_recovery)
{
    judge_times(2, BACKEND_FAILED);
    judge_times(1000, BACKEND_GOOD);
    ck_assert(b.paced && b.in_trouble);
    ck_assert_uint_eq(log_lines_with("polling for events succeeds again"), 0);
}

TEST(judge, recovery_without_a_slowdown_is_not_logged)
{
    ck_assert(judge(BACKEND_FAILED));
    let_time_pass();
    ck_assert(!judge(BACKEND_GOOD));
    ck_assert(!b.in_trouble);
    EXPECT_LOG_LINES("", 1);
}

TEST(judge, each_episode_is_logged)
{
    for (unsigned i = 1; i <= 3; i++) {
        judge_times(2, BACKEND_FAILED);
        let_time_pass();
        ck_assert(!judge(BACKEND_GOOD));
        EXPECT_LOG_LINES("is rebuilt", i);
        EXPECT_LOG_LINES("does not help", i);
        EXPECT_LOG_LINES("polling for events succeeds again", i);
    }
}

TEST(judge, rebuild_without_descriptors_is_logged_once_and_retried)
{
    fault_plan(FAULT_EPOLL_CREATE1, 0, FAULT_ALWAYS, EMFILE);
    ck_assert_uint_eq(judge_times(100, BACKEND_FAILED), 0);
    let_time_pass();
    ck_assert_uint_eq(judge_times(100, BACKEND_FAILED), 0);
    EXPECT_LOG_LINES("cannot be rebuilt: Too many open files", 1);
    fault_plan(FAULT_EPOLL_CREATE1, 0, 0, 0);
    let_time_pass();
    ck_assert_uint_eq(judge_times(100, BACKEND_FAILED), 1);
}
