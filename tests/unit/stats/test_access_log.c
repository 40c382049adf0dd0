/* stats/access_log: no line is lost or torn while there is room. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "stats/access_log.h"
#include "support/log_lines.h"
#include "support/sinks.h"
#include "support/suite.h"
#include "support/until.h"

/* ---- what is taken ---- */

GROUP(taken, sinks_setup, sinks_teardown);

TEST(taken, line_is_written_soon)
{
    sinks_put("one\n");
    UNTIL(sinks_len() == 4);
    sinks_put("two\n");
    UNTIL(sinks_len() == 8);
    ck_assert_str_eq(sinks.taken.text, "one\ntwo\n");
    UNTIL(sinks_stats().lines == 2);
    ck_assert_uint_eq(sinks_stats().waiting_bytes, 0);
    sinks_finish();
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

    sinks_put("one\n");
    UNTIL(sinks_stats().lines == 1);
    before_ns = cpu_ns();
    PAUSE_MS(200);
    ck_assert_int_lt(cpu_ns() - before_ns, 20 * NS_PER_MS);
    sinks_finish();
}

TEST(taken, lines_put_together_are_written_together)
{
    for (unsigned i = 0; i < 500; i++)
        sinks_put("a line of some length, as they are\n");
    sinks_finish();
    ck_assert_uint_eq(sinks_stats().lines, 500);
    ck_assert_uint_le(sinks.taken.calls, 50); /* one, but the test may be interrupted for long */
}

TEST(taken, finish_writes_pending_lines)
{
    for (unsigned i = 0; i < 100; i++)
        sinks_put("line\n");
    sinks_finish();
    ck_assert_uint_eq(sinks.taken.len, 500);
    ck_assert_uint_eq(sinks_stats().lines, 100);
    ck_assert_uint_eq(sinks_stats().dropped, 0);
    ck_assert_uint_eq(log_lines_with("dropped"), 0);
}

/* As when other logs have used up the time. */
TEST(taken, finish_past_its_deadline_does_not_take_an_idle_thread_as_hanging)
{
    sinks_put("one\n");
    UNTIL(sinks_len() == 4);
    ck_assert_int_eq(access_log_finish(sinks.log, clock_now_ns() - NS_PER_S), 0);
}

TEST(taken, log_without_lines_starts_no_thread)
{
    sinks_finish();
    ck_assert_uint_eq(sinks.taken.calls, 0);
}

TEST(taken, connections_are_numbered_from_1)
{
    ck_assert_uint_eq(access_log_number(sinks.log), 1);
    ck_assert_uint_eq(access_log_number(sinks.log), 2);
}

TEST(taken, sink_that_takes_parts_gets_all_lines_in_order)
{
    char wanted[4096] = "", line[16];

    sinks.taken.at_once = 3;
    for (unsigned i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "line %u\n", i);
        strcat(wanted, line);
        sinks_put(line);
    }
    sinks_finish();
    ck_assert_str_eq(sinks.taken.text, wanted);
    ck_assert_uint_eq(sinks_stats().lines, 100);
}

TEST(taken, bytes_refused_with_eagain_are_retried)
{
    atomic_store(&sinks.taken.error, -EAGAIN);
    sinks_put("kept\n");
    PAUSE_MS(60);
    sinks_put("too\n");
    ck_assert_uint_eq(sinks_len(), 0);
    atomic_store(&sinks.taken.error, 0);
    UNTIL(sinks_len() == 9);
    ck_assert_str_eq(sinks.taken.text, "kept\ntoo\n");
    ck_assert_uint_eq(sinks_stats().dropped, 0);
    sinks_finish();
}

#define PRODUCERS 4
#define EACH      20000

static void *produce(void *arg)
{
    for (unsigned i = 0; i < EACH; i++) {
        char line[32];

        access_log_put(
            sinks.log, line,
            (size_t)snprintf(line, sizeof(line), "%u %u\n", (unsigned)(uintptr_t)arg, i));
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

    for (const char *at = sinks.taken.text; *at != '\0'; at += len, n++) {
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
    sinks_finish();
    ck_assert_uint_eq(expect_order(), sinks_stats().lines);
    ck_assert_uint_eq(sinks_stats().lines + sinks_stats().dropped, PRODUCERS * EACH);
    ck_assert_uint_eq(sinks_stats().waiting_bytes, 0);
}
