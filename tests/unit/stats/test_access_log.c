/*
 * stats/access_log: no line is lost or torn while there is room, and what is lost is counted and
 * said.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "stats/access_log.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "support/until.h"

#define BUFFER_BYTES (128 << 10)

/* A sink that keeps what it takes, and fails as it is told. */
static struct {
    pthread_mutex_t lock;
    char *text;
    size_t len, room;
    unsigned calls;
    size_t at_once;    /* takes no more in a call; 0: all */
    atomic_int error;  /* returns that, if not 0 */
    atomic_bool hangs; /* does not return before it is false */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct access_log *al;

static ssize_t sink_write(void *cookie, const char *lines, size_t len)
{
    (void)cookie;
    while (atomic_load(&sink.hangs))
        PAUSE_MS(1);
    if (atomic_load(&sink.error) != 0)
        return atomic_load(&sink.error);
    pthread_mutex_lock(&sink.lock);
    if (sink.at_once > 0 && len > sink.at_once)
        len = sink.at_once;
    if (sink.len + len > sink.room) {
        sink.room = 2 * (sink.len + len);
        sink.text = realloc(sink.text, sink.room + 1);
        ck_assert_ptr_nonnull(sink.text);
    }
    memcpy(sink.text + sink.len, lines, len);
    sink.len += len;
    sink.text[sink.len] = '\0';
    sink.calls++;
    pthread_mutex_unlock(&sink.lock);
    return (ssize_t)len;
}

static size_t sink_len(void)
{
    size_t len;

    pthread_mutex_lock(&sink.lock);
    len = sink.len;
    pthread_mutex_unlock(&sink.lock);
    return len;
}

static struct access_log_stats stats(void)
{
    struct access_log_stats s;

    access_log_stats(al, &s);
    return s;
}

static void setup(void)
{
    const struct access_log_conf conf = {
        .name = "x", .sink = {.write = sink_write}, .pool = 5, .max_bytes = BUFFER_BYTES};

    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(access_log_create(&al, &conf), 0);
}

static void finish(void)
{
    ck_assert_int_eq(access_log_finish(al, clock_now_ns() + 10 * NS_PER_S), 0);
}

static void teardown(void)
{
    access_log_destroy(al);
    free(sink.text);
}

static void put(const char *line)
{
    access_log_put(al, line, strlen(line));
}

/* ---- what is taken ---- */

GROUP(taken, setup, teardown);

TEST(taken, line_is_written_soon)
{
    put("one\n");
    UNTIL(sink_len() == 4);
    put("two\n");
    UNTIL(sink_len() == 8);
    ck_assert_str_eq(sink.text, "one\ntwo\n");
    UNTIL(stats().lines == 2);
    ck_assert_uint_eq(stats().waiting_bytes, 0);
    finish();
}

static int64_t cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * NS_PER_S + used.tv_nsec;
}

TEST(taken, a_writer_without_lines_sleeps)
{
    int64_t before_ns;

    put("one\n");
    UNTIL(stats().lines == 1);
    before_ns = cpu_ns();
    PAUSE_MS(200);
    ck_assert_int_lt(cpu_ns() - before_ns, 20 * NS_PER_MS);
    finish();
}

TEST(taken, lines_put_together_are_written_together)
{
    for (unsigned i = 0; i < 500; i++)
        put("a line of some length, as they are\n");
    finish();
    ck_assert_uint_eq(stats().lines, 500);
    ck_assert_uint_le(sink.calls, 50); /* one, but the test may be interrupted for long */
}

TEST(taken, finish_writes_pending_lines)
{
    for (unsigned i = 0; i < 100; i++)
        put("line\n");
    finish();
    ck_assert_uint_eq(sink.len, 500);
    ck_assert_uint_eq(stats().lines, 100);
    ck_assert_uint_eq(stats().dropped, 0);
    ck_assert_uint_eq(log_lines_with("dropped"), 0);
}

/* As when other logs have used up the time. */
TEST(taken, finish_past_its_deadline_does_not_take_an_idle_thread_as_hanging)
{
    put("one\n");
    UNTIL(sink_len() == 4);
    ck_assert_int_eq(access_log_finish(al, clock_now_ns() - NS_PER_S), 0);
}

TEST(taken, log_without_lines_starts_no_thread)
{
    finish();
    ck_assert_uint_eq(sink.calls, 0);
}

TEST(taken, connections_are_numbered_from_1)
{
    ck_assert_uint_eq(access_log_number(al), 1);
    ck_assert_uint_eq(access_log_number(al), 2);
}

TEST(taken, sink_that_takes_parts_gets_all_lines_in_order)
{
    char wanted[4096] = "", line[16];

    sink.at_once = 3;
    for (unsigned i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "line %u\n", i);
        strcat(wanted, line);
        put(line);
    }
    finish();
    ck_assert_str_eq(sink.text, wanted);
    ck_assert_uint_eq(stats().lines, 100);
}

TEST(taken, bytes_refused_with_eagain_are_retried)
{
    atomic_store(&sink.error, -EAGAIN);
    put("kept\n");
    PAUSE_MS(60);
    put("too\n");
    ck_assert_uint_eq(sink_len(), 0);
    atomic_store(&sink.error, 0);
    UNTIL(sink_len() == 9);
    ck_assert_str_eq(sink.text, "kept\ntoo\n");
    ck_assert_uint_eq(stats().dropped, 0);
    finish();
}

#define PRODUCERS 4
#define EACH      20000

static void *produce(void *arg)
{
    for (unsigned i = 0; i < EACH; i++) {
        char line[32];

        access_log_put(
            al, line, (size_t)snprintf(line, sizeof(line), "%u %u\n", (unsigned)(uintptr_t)arg, i));
        if (i % 100 == 99)
            PAUSE_MS(1);
    }
    return NULL;
}

/* Each producer's lines are whole and in order; how many there are. */
static unsigned expect_order(void)
{
    unsigned next[PRODUCERS] = {0}, n = 0, who, number;
    int len;

    for (const char *at = sink.text; *at != '\0'; at += len, n++) {
        ck_assert_int_eq(sscanf(at, "%u %u\n%n", &who, &number, &len), 2);
        ck_assert(who < PRODUCERS && number >= next[who] && number < EACH);
        next[who] = number + 1;
    }
    return n;
}

TEST(taken, lines_of_many_threads_are_whole_in_order_and_written_or_counted)
{
    pthread_t threads[PRODUCERS];

    for (uintptr_t i = 0; i < PRODUCERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    finish();
    ck_assert_uint_eq(expect_order(), stats().lines);
    ck_assert_uint_eq(stats().lines + stats().dropped, PRODUCERS * EACH);
    ck_assert_uint_eq(stats().waiting_bytes, 0);
}

/* ---- what is lost ---- */

GROUP(lost, setup, teardown);

TEST(lost, full_buffer_drops_lines_and_logs_the_beginning_and_the_end)
{
    atomic_store(&sink.error, -EAGAIN);
    for (unsigned i = 0; i < 20000; i++)
        put("a line of some length, as they are\n");
    ck_assert_uint_gt(stats().dropped, 10000);
    ck_assert_uint_le(stats().waiting_bytes, BUFFER_BYTES);
    EXPECT_LOG_LINES("access log x: lines are dropped", 1);
    PAUSE_MS(100);
    atomic_store(&sink.error, 0);
    UNTIL(log_lines_with("takes lines again; lines dropped: ") == 1);
    EXPECT_LOG_LINES("dropped", 2);
    ck_assert_uint_eq(stats().lines + stats().dropped, 20000);
    finish();
    EXPECT_LOG_LINES("dropped", 2);
}

TEST(lost, each_episode_logs_its_own_number_of_lines)
{
    for (unsigned i = 1; i <= 2; i++) {
        atomic_store(&sink.error, -ENOSPC);
        put("lost\n");
        UNTIL(stats().dropped == i);
        atomic_store(&sink.error, 0);
        UNTIL(log_lines_with("takes lines again; lines dropped: 1") == i);
    }
    atomic_store(&sink.error, -ENOSPC);
    put("lost\n");
    UNTIL(stats().dropped == 3);
    finish();
    EXPECT_LOG_LINES("closed, not all lines are written; lines dropped: 1", 1);
}

TEST(lost, line_without_memory_is_counted_and_takes_no_buffer)
{
    fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    put("lost\n");
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    ck_assert_uint_eq(stats().dropped, 1);
    ck_assert_uint_eq(stats().waiting_bytes, 0);
    EXPECT_LOG_LINES("access log x: lines are dropped: out of memory", 1);
    put("kept\n");
    finish();
    ck_assert_str_eq(sink.text, "kept\n");
}

TEST(lost, failing_sink_loses_only_the_lines_given_to_it)
{
    atomic_store(&sink.error, -ENOSPC);
    put("lost\n");
    UNTIL(stats().dropped == 1);
    UNTIL(log_lines_with("lines are dropped: No space left on device") == 1);
    put("lost\n");
    UNTIL(stats().dropped == 2);
    atomic_store(&sink.error, 0);
    put("kept\n");
    UNTIL(sink_len() > 0);
    ck_assert_str_eq(sink.text, "kept\n");
    finish();
    EXPECT_LOG_LINES("lines dropped: 2", 1);
}

TEST(lost, sink_that_hangs_for_a_while_loses_nothing)
{
    sink.at_once = 3;
    atomic_store(&sink.hangs, true);
    put("abcdef\n");
    put("lost\n");
    PAUSE_MS(40); /* the writer has both, and hangs in its first call */
    atomic_store(&sink.hangs, false);
    UNTIL(sink_len() >= 3);
    finish();
    ck_assert_str_eq(sink.text, "abcdef\nlost\n");
}

/* Takes three bytes, and then fails: as a disk that has become full. */
static ssize_t tear(void *cookie, const char *lines, size_t len)
{
    unsigned *calls = cookie;

    switch ((*calls)++) {
    case 0: return sink_write(NULL, lines, 3);
    case 1: return -ENOSPC;
    default: return sink_write(NULL, lines, len);
    }
}

TEST(lost, rest_of_a_partly_written_line_is_dropped_with_the_lines_behind_it)
{
    unsigned calls = 0;
    const struct access_log_conf conf = {.name = "y",
                                         .sink = {.write = tear, .cookie = &calls},
                                         .pool = 5,
                                         .max_bytes = BUFFER_BYTES};

    finish();
    access_log_destroy(al);
    ck_assert_int_eq(access_log_create(&al, &conf), 0);
    put("abcdef\n");
    put("lost\n");
    UNTIL(stats().dropped == 2);
    put("whole\n");
    finish();
    ck_assert_str_eq(sink.text, "abc\nwhole\n");
    ck_assert_uint_eq(stats().dropped, 2);
}

/* Takes three bytes, and then nothing three times. */
static ssize_t tear_for_long(void *cookie, const char *lines, size_t len)
{
    unsigned *calls = cookie;

    switch ((*calls)++) {
    case 0: return sink_write(NULL, lines, 3);
    case 1:
    case 2:
    case 3: return -ENOSPC;
    default: return sink_write(NULL, lines, len);
    }
}

TEST(lost, no_line_is_appended_to_a_truncated_one_however_long_the_sink_fails)
{
    unsigned calls = 0;
    const struct access_log_conf conf = {.name = "y",
                                         .sink = {.write = tear_for_long, .cookie = &calls},
                                         .pool = 5,
                                         .max_bytes = BUFFER_BYTES};

    finish();
    access_log_destroy(al);
    ck_assert_int_eq(access_log_create(&al, &conf), 0);
    for (unsigned i = 1; i <= 3; i++) {
        put("abcdef\n");
        UNTIL(stats().dropped == i);
    }
    put("whole\n");
    finish();
    ck_assert_str_eq(sink.text, "abc\nwhole\n");
    ck_assert_uint_eq(stats().dropped, 3);
    ck_assert_uint_eq(stats().lines, 1);
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
        return sink_write(NULL, lines, len);
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

    finish();
    access_log_destroy(al);
    ck_assert_int_eq(access_log_create(&al, &conf), 0);
    rotation.error = rotation_errors[_i];
    put("abcdef\n");
    UNTIL(is_dropped ? stats().dropped == 1 : stats().waiting_bytes == 0);
    PAUSE_MS(30);
    atomic_store(&rotation.has_next, true);
    access_log_wake(al);
    UNTIL(!atomic_load(&rotation.has_next));
    put("whole\n");
    finish();
    ck_assert(rotation.was_cut);
    ck_assert_str_eq(sink.text, is_dropped ? "whole\n" : "abcdef\nwhole\n");
    ck_assert_uint_eq(stats().lines, is_dropped ? 1 : 2);
}

TEST(lost, finish_ends_at_its_deadline_and_counts_unwritten_lines)
{
    int64_t from_ns = clock_now_ns();
    char line[4000];

    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    atomic_store(&sink.error, -EAGAIN);
    for (unsigned i = 0; i < 20; i++) /* more than one batch */
        access_log_put(al, line, sizeof(line));
    ck_assert_int_eq(access_log_finish(al, clock_now_ns() + NS_PER_S), 0);
    ck_assert_int_ge(since_ms(from_ns), 1000);
    ck_assert_uint_eq(stats().dropped, 20);
    ck_assert_uint_eq(stats().waiting_bytes, 0);
    EXPECT_LOG_LINES("access log x: closed, not all lines are written; lines dropped: 20", 1);
}

GROUP(hung, setup, NULL);

TEST(hung, hanging_sink_is_reported)
{
    atomic_store(&sink.hangs, true);
    put("line\n");
    PAUSE_MS(40);
    ck_assert_int_eq(access_log_finish(al, clock_now_ns() + 50 * NS_PER_MS), -ETIMEDOUT);
    EXPECT_LOG_LINES("hangs", 1);
    _exit(0); /* as the daemon does */
}
