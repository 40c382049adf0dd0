/* stats/counters: sums that agree at any moment, and how they look in the log. */
#include <pthread.h>

#include "base/clock.h"
#include "base/must.h"
#include "stats/counters.h"
#include "stats/figure.h"
#include "stats/figure_log.h"
#include "support/log_lines.h"
#include "support/suite.h"

static struct counters c;
static struct counters_connects connects;

static const struct figure_object front = {.subject = FIGURE_LISTENER, .name = "front"};
static const struct figure_object a = {.subject = FIGURE_SERVER, .name = "a", .owner = "back"};
static const struct figure_object longest = {.subject = FIGURE_SERVER,
                                             .name = "a-server-of-32-letters-012345678",
                                             .owner = "an-upstream-of-32-letters-0123456"};

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    c = (struct counters){.began = 0};
    connects = (struct counters_connects){.failed = 0};
}

GROUP(counters, setup, NULL);

TEST(counters, open_sessions_are_begun_minus_ended)
{
    struct counters_view v;

    for (int i = 0; i < 5; i++)
        counters_began(&c);
    counters_ended(&c, SESSION_CLIENT_FIN, 10, 20);
    counters_ended(&c, SESSION_CLIENT_FIN, 1, 2);
    counters_ended(&c, SESSION_ERROR, 0, 0);
    counters_read(&c, &v);
    ck_assert_uint_eq(v.began, 5);
    ck_assert_uint_eq(v.open, 2);
    ck_assert_uint_eq(v.bytes_in, 11);
    ck_assert_uint_eq(v.bytes_out, 22);
    ck_assert_uint_eq(v.ended[SESSION_CLIENT_FIN], 2);
    ck_assert_uint_eq(v.ended[SESSION_ERROR], 1);
    ck_assert_uint_eq(v.ended[SESSION_IDLE], 0);
}

#define ROUNDS 100000

static void *begin_and_end(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        counters_began(&c);
        counters_ended(&c, (enum session_reason)(SESSION_CLIENT_FIN + i % 14), 3, 5);
    }
    return NULL;
}

TEST(counters, a_reader_never_sees_an_end_without_its_beginning_or_its_bytes)
{
    pthread_t threads[2];
    struct counters_view v = {.began = 0};

    for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, begin_and_end, NULL), 0);
    while (v.began < ARRAY_LEN(threads) * ROUNDS) {
        uint64_t ended = 0;

        counters_read(&c, &v);
        for (unsigned i = 0; i < SESSION_REASONS; i++)
            ended += v.ended[i];
        ck_assert_uint_le(ended, v.began);
        ck_assert_uint_eq(v.open, v.began - ended);
        ck_assert_uint_ge(v.bytes_in, 3 * ended);
        ck_assert_uint_ge(v.bytes_out, 5 * ended);
    }
    for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    counters_read(&c, &v);
    ck_assert_uint_eq(v.open, 0);
    ck_assert_uint_eq(v.bytes_in, 3 * v.began);
}

TEST(counters, the_log_has_the_reasons_that_occurred)
{
    for (int i = 0; i < 3; i++)
        counters_began(&c);
    counters_ended(&c, SESSION_CONNECT_REFUSED, 1, 2);
    counters_ended(&c, SESSION_LIFETIME, 3, 4);
    counters_figures(&c, &front, figure_log());
    EXPECT_LOG_LINES("stats listen front sessions=1 sessions_total=3 bytes_in=4 "
                     "bytes_out=6 connect_refused=1 lifetime=1",
                     1);
    ck_assert_uint_eq(log_lines_with("idle"), 0);
}

TEST(counters, largest_counts_fit_into_one_line)
{
    atomic_store(&c.began, UINT64_MAX);
    atomic_store(&c.bytes_in, UINT64_MAX);
    atomic_store(&c.bytes_out, UINT64_MAX);
    for (unsigned i = SESSION_CLIENT_FIN; i < SESSION_REASONS; i++)
        atomic_store(&c.ended[i], UINT64_MAX);
    counters_figures(&c, &longest, figure_log());
    EXPECT_LOG_LINES("killed=18446744073709551615 error=18446744073709551615", 1);
    ck_assert_uint_eq(log_lines_with("..."), 0);
}

TEST(counters, durations_are_counted_but_not_in_the_log)
{
    struct counters_view v;

    counters_began(&c);
    counters_lasted(&c, 3 * NS_PER_MS);
    counters_ended(&c, SESSION_CLIENT_FIN, 1, 2);
    counters_read(&c, &v);
    ck_assert_uint_eq(v.duration.count, 1);
    ck_assert_uint_eq(v.duration.ns, 3 * NS_PER_MS);
    ck_assert_uint_eq(v.duration.bucket[histogram_bucket(3 * NS_PER_MS)], 1);
    counters_figures(&c, &front, figure_log());
    ck_assert_uint_eq(log_lines_with("under_"), 0);
}

TEST(counters, connects_are_counted_with_their_duration)
{
    counters_connected(&connects, 100 * NS_PER_US);
    counters_connected(&connects, 300 * NS_PER_US);
    counters_connect_failed(&connects);
    counters_connects_figures(&connects, &a, figure_log());
    EXPECT_LOG_LINES("stats server back/a connects=2 connect_failures=1 "
                     "connect_ms_average=0.200 under_128us=1 under_512us=1",
                     1);
}

TEST(counters, server_without_connects_has_no_average)
{
    counters_connects_figures(&connects, &a, figure_log());
    EXPECT_LOG_LINES("connects=0 connect_failures=0 connect_ms_average=0.000", 1);
}

TEST(counters, endless_connect_is_in_the_last_bucket)
{
    counters_connected(&connects, 3600 * NS_PER_S);
    counters_connects_figures(&connects, &a, figure_log());
    EXPECT_LOG_LINES("connect_ms_average=3600000.000 longer=1", 1);
}
