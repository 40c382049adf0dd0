/* stats/access_log: what is lost is counted and said. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "stats/access_log.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/sinks.h"
#include "support/suite.h"
#include "support/until.h"

/* ---- what is lost ---- */

GROUP(lost, sinks_setup, sinks_teardown);

TEST(lost, full_buffer_drops_lines_and_logs_the_beginning_and_the_end)
{
    atomic_store(&sinks.taken.error, -EAGAIN);
    for (unsigned i = 0; i < 20000; i++)
        sinks_put("a line of some length, as they are\n");
    ck_assert_uint_gt(sinks_stats().dropped, 10000);
    ck_assert_uint_le(sinks_stats().waiting_bytes, BUFFER_BYTES);
    EXPECT_LOG_LINES("access log x: lines are dropped", 1);
    PAUSE_MS(100);
    atomic_store(&sinks.taken.error, 0);
    UNTIL(log_lines_with("takes lines again; lines dropped: ") == 1);
    EXPECT_LOG_LINES("dropped", 2);
    ck_assert_uint_eq(sinks_stats().lines + sinks_stats().dropped, 20000);
    sinks_finish();
    EXPECT_LOG_LINES("dropped", 2);
}

TEST(lost, each_episode_logs_its_own_number_of_lines)
{
    for (unsigned i = 1; i <= 2; i++) {
        atomic_store(&sinks.taken.error, -ENOSPC);
        sinks_put("lost\n");
        UNTIL(sinks_stats().dropped == i);
        atomic_store(&sinks.taken.error, 0);
        UNTIL(log_lines_with("takes lines again; lines dropped: 1") == i);
    }
    atomic_store(&sinks.taken.error, -ENOSPC);
    sinks_put("lost\n");
    UNTIL(sinks_stats().dropped == 3);
    sinks_finish();
    EXPECT_LOG_LINES("closed, not all lines are written; lines dropped: 1", 1);
}

static bool recovered(void *cookie)
{
    return atomic_load((atomic_bool *)cookie);
}

TEST(lost, losses_end_when_the_sink_has_recovered_not_when_no_line_comes)
{
    atomic_bool has_recovered = false;
    const struct access_log_conf conf = {
        .name = "y",
        .sink = {.write = sinks_write, .recovered = recovered, .cookie = &has_recovered},
        .pool = 5,
        .max_bytes = BUFFER_BYTES};

    sinks_finish();
    access_log_destroy(sinks.log);
    ck_assert_int_eq(access_log_create(&sinks.log, &conf), 0);
    atomic_store(&sinks.taken.error, -ENOENT);
    sinks_put("lost\n");
    UNTIL(sinks_stats().dropped == 1);
    PAUSE_MS(1500);
    ck_assert_uint_eq(log_lines_with("takes lines again"), 0);
    atomic_store(&has_recovered, true);
    UNTIL(log_lines_with("access log y: takes lines again; lines dropped: 1") == 1);
    sinks_finish();
}

TEST(lost, line_without_memory_is_counted_and_takes_no_buffer)
{
    fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    sinks_put("lost\n");
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    ck_assert_uint_eq(sinks_stats().dropped, 1);
    ck_assert_uint_eq(sinks_stats().waiting_bytes, 0);
    EXPECT_LOG_LINES("access log x: lines are dropped: out of memory", 1);
    sinks_put("kept\n");
    sinks_finish();
    ck_assert_str_eq(sinks.taken.text, "kept\n");
}

TEST(lost, failing_sink_loses_only_the_lines_given_to_it)
{
    atomic_store(&sinks.taken.error, -ENOSPC);
    sinks_put("lost\n");
    UNTIL(sinks_stats().dropped == 1);
    UNTIL(log_lines_with("lines are dropped: No space left on device") == 1);
    sinks_put("lost\n");
    UNTIL(sinks_stats().dropped == 2);
    atomic_store(&sinks.taken.error, 0);
    sinks_put("kept\n");
    UNTIL(sinks_len() > 0);
    ck_assert_str_eq(sinks.taken.text, "kept\n");
    sinks_finish();
    EXPECT_LOG_LINES("lines dropped: 2", 1);
}

TEST(lost, sink_that_hangs_for_a_while_loses_nothing)
{
    sinks.taken.at_once = 3;
    atomic_store(&sinks.taken.hangs, true);
    sinks_put("abcdef\n");
    sinks_put("lost\n");
    PAUSE_MS(40); /* the writer has both, and hangs in its first call */
    atomic_store(&sinks.taken.hangs, false);
    UNTIL(sinks_len() >= 3);
    sinks_finish();
    ck_assert_str_eq(sinks.taken.text, "abcdef\nlost\n");
}

/* Takes three bytes, and then fails: as a disk that has become full. */
static ssize_t tear(void *cookie, const char *lines, size_t len)
{
    unsigned *calls = cookie;

    switch ((*calls)++) {
    case 0: return sinks_write(NULL, lines, 3);
    case 1: return -ENOSPC;
    default: return sinks_write(NULL, lines, len);
    }
}

TEST(lost, rest_of_a_partly_written_line_is_dropped_with_the_lines_behind_it)
{
    unsigned calls = 0;
    const struct access_log_conf conf = {.name = "y",
                                         .sink = {.write = tear, .cookie = &calls},
                                         .pool = 5,
                                         .max_bytes = BUFFER_BYTES};

    sinks_finish();
    access_log_destroy(sinks.log);
    ck_assert_int_eq(access_log_create(&sinks.log, &conf), 0);
    sinks_put("abcdef\n");
    sinks_put("lost\n");
    UNTIL(sinks_stats().dropped == 2);
    sinks_put("whole\n");
    sinks_finish();
    ck_assert_str_eq(sinks.taken.text, "abc\nwhole\n");
    ck_assert_uint_eq(sinks_stats().dropped, 2);
}

/* Takes three bytes, and then nothing three times. */
static ssize_t tear_for_long(void *cookie, const char *lines, size_t len)
{
    unsigned *calls = cookie;

    switch ((*calls)++) {
    case 0: return sinks_write(NULL, lines, 3);
    case 1:
    case 2:
    case 3: return -ENOSPC;
    default: return sinks_write(NULL, lines, len);
    }
}

TEST(lost, no_line_is_appended_to_a_truncated_one_however_long_the_sink_fails)
{
    unsigned calls = 0;
    const struct access_log_conf conf = {.name = "y",
                                         .sink = {.write = tear_for_long, .cookie = &calls},
                                         .pool = 5,
                                         .max_bytes = BUFFER_BYTES};

    sinks_finish();
    access_log_destroy(sinks.log);
    ck_assert_int_eq(access_log_create(&sinks.log, &conf), 0);
    for (unsigned i = 1; i <= 3; i++) {
        sinks_put("abcdef\n");
        UNTIL(sinks_stats().dropped == i);
    }
    sinks_put("whole\n");
    sinks_finish();
    ck_assert_str_eq(sinks.taken.text, "abc\nwhole\n");
    ck_assert_uint_eq(sinks_stats().dropped, 3);
    ck_assert_uint_eq(sinks_stats().lines, 1);
}

/* The file of before a rotation takes three bytes, and then nothing. */
static struct {
    int error;
    unsigned calls;
    atomic_bool has_next;
    bool is_next, was_cut;
} rotation;

static ssize_t rotation_write(void *cookie, const char *lines, size_t len)
{
    (void)cookie;
    if (rotation.is_next)
        return sinks_write(NULL, lines, len);
    return rotation.calls++ == 0 ? 3 : rotation.error;
}

static bool rotation_take(void *cookie, bool cut)
{
    (void)cookie;
    if (!atomic_exchange(&rotation.has_next, false))
        return false;
    rotation.was_cut = cut;
    return rotation.is_next = true;
}

static const int rotation_errors[] = {-EAGAIN, -ENOSPC};

TEST_EACH(lost, truncated_line_does_not_continue_in_the_file_after_a_rotation,
          ARRAY_LEN(rotation_errors))
{
    const struct access_log_conf conf = {.name = "y",
                                         .sink = {.write = rotation_write, .rotate = rotation_take},
                                         .pool = 5,
                                         .max_bytes = BUFFER_BYTES};
    bool is_dropped = rotation_errors[_i] == -ENOSPC;

    sinks_finish();
    access_log_destroy(sinks.log);
    ck_assert_int_eq(access_log_create(&sinks.log, &conf), 0);
    rotation.error = rotation_errors[_i];
    sinks_put("abcdef\n");
    UNTIL(is_dropped ? sinks_stats().dropped == 1 : sinks_stats().waiting_bytes == 0);
    PAUSE_MS(30);
    atomic_store(&rotation.has_next, true);
    access_log_wake(sinks.log);
    UNTIL(!atomic_load(&rotation.has_next));
    sinks_put("whole\n");
    sinks_finish();
    ck_assert(rotation.was_cut);
    ck_assert_str_eq(sinks.taken.text, is_dropped ? "whole\n" : "abcdef\nwhole\n");
    ck_assert_uint_eq(sinks_stats().lines, is_dropped ? 1 : 2);
}

TEST(lost, finish_ends_at_its_deadline_and_counts_unwritten_lines)
{
    int64_t from_ns = clock_now_ns();
    char line[4000];

    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    atomic_store(&sinks.taken.error, -EAGAIN);
    for (unsigned i = 0; i < 20; i++) /* more than one batch */
        access_log_put(sinks.log, line, sizeof(line));
    ck_assert_int_eq(access_log_finish(sinks.log, clock_now_ns() + NS_PER_S), 0);
    ck_assert_int_ge(since_ms(from_ns), 1000);
    ck_assert_uint_eq(sinks_stats().dropped, 20);
    ck_assert_uint_eq(sinks_stats().waiting_bytes, 0);
    EXPECT_LOG_LINES("access log x: closed, not all lines are written; lines dropped: 20", 1);
}

GROUP(hung, sinks_setup, NULL);

TEST(hung, hanging_sink_is_reported)
{
    atomic_store(&sinks.taken.hangs, true);
    sinks_put("line\n");
    PAUSE_MS(40);
    ck_assert_int_eq(access_log_finish(sinks.log, clock_now_ns() + 50 * NS_PER_MS), -ETIMEDOUT);
    EXPECT_LOG_LINES("hangs", 1);
    _exit(0); /* as the daemon does */
}
