/* engine/histogram: which bucket a duration belongs to, and what the counts say about quantiles. */
#include <pthread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/must.h"
#include "engine/histogram.h"
#include "support/suite.h"

#define LAST  (HISTOGRAM_BUCKETS - 1)
#define COUNT 200000

static struct histogram h;
static struct histogram_view v;

static void setup(void)
{
    h = (struct histogram){0};
}

static void count(int64_t ns, unsigned times)
{
    while (times-- > 0)
        histogram_count(&h, ns);
    histogram_read(&h, &v);
}

struct placed {
    int64_t ns;
    unsigned bucket;
};

static const struct placed places[] = {
    {INT64_MIN, 0},
    {-1, 0},
    {0, 0},
    {999, 0},
    {1000, 1},
    {1999, 1},
    {2000, 2},
    {3999, 2},
    {4000, 3},
    {NS_PER_MS - 1, 10},
    {NS_PER_MS, 10},
    {1024 * NS_PER_US, 11},
    {NS_PER_S, 20},
    {16777216 * NS_PER_US - 1, 24},
    {16777216 * NS_PER_US, LAST},
    {INT64_MAX, LAST},
};

GROUP(histogram, setup, NULL);

TEST_EACH(histogram, a_duration_has_its_bucket, ARRAY_LEN(places))
{
    ck_assert_uint_eq(histogram_bucket(places[_i].ns), places[_i].bucket);
}

TEST(histogram, each_bucket_begins_at_the_end_of_the_previous)
{
    for (unsigned i = 0; i < LAST; i++) {
        ck_assert_uint_eq(histogram_bucket(histogram_limit_ns(i) - 1), i);
        ck_assert_uint_eq(histogram_bucket(histogram_limit_ns(i)), i + 1);
    }
    ck_assert_int_eq(histogram_limit_ns(0), NS_PER_US);
    ck_assert_int_eq(histogram_limit_ns(LAST), CLOCK_NEVER);
}

TEST_ABORTS(histogram, limit_of_a_bucket_out_of_range_is_a_bug)
{
    histogram_limit_ns(HISTOGRAM_BUCKETS);
}

TEST(histogram, value_between_the_limits_of_its_bucket)
{
    count(600 * NS_PER_US, 4); /* in the bucket from 512 us to 1024 us */
    ck_assert_int_eq(histogram_between_ns(&v, 250), 640 * NS_PER_US);
    ck_assert_int_eq(histogram_between_ns(&v, 1000), 1024 * NS_PER_US);
    count(INT64_MAX / 4, 1);
    ck_assert_int_eq(histogram_between_ns(&v, 1000), CLOCK_NEVER);
    ck_assert_int_eq(histogram_between_ns(&(struct histogram_view){.count = 0}, 990), 0);
}

TEST(histogram, what_was_counted_between_two_views)
{
    struct histogram_view before, since;

    count(500, 3);
    before = v;
    count(500, 2);
    count(NS_PER_MS, 1);
    since = histogram_since(&v, &before);
    ck_assert_uint_eq(since.count, 3);
    ck_assert_uint_eq(since.bucket[0], 2);
    ck_assert_uint_eq(since.bucket[10], 1);
    ck_assert_uint_eq(since.ns, NS_PER_MS + 1000);
}

TEST(histogram, new_histogram_is_empty)
{
    histogram_read(&h, &v);
    ck_assert_uint_eq(v.count, 0);
    ck_assert_int_eq(histogram_quantile_ns(&v, 1), 0);
    ck_assert_int_eq(histogram_quantile_ns(&v, 1000), 0);
}

TEST(histogram, counted_values_are_read)
{
    count(500, 3);
    count(NS_PER_MS, 2);
    count(-NS_PER_S, 1);
    count(CLOCK_NEVER, 4);
    ck_assert_uint_eq(v.count, 10);
    ck_assert_uint_eq(v.bucket[0], 4);
    ck_assert_uint_eq(v.bucket[10], 2);
    ck_assert_uint_eq(v.bucket[LAST], 4);
}

TEST(histogram, median_of_three_values_is_the_second)
{
    count(500, 1);
    count(3 * NS_PER_US, 1);
    count(1 * NS_PER_MS, 1);
    ck_assert_int_eq(histogram_quantile_ns(&v, 1), 1 * NS_PER_US);
    ck_assert_int_eq(histogram_quantile_ns(&v, 333), 1 * NS_PER_US);
    ck_assert_int_eq(histogram_quantile_ns(&v, 334), 4 * NS_PER_US);
    ck_assert_int_eq(histogram_quantile_ns(&v, 500), 4 * NS_PER_US);
    ck_assert_int_eq(histogram_quantile_ns(&v, 667), 1024 * NS_PER_US);
    ck_assert_int_eq(histogram_quantile_ns(&v, 1000), 1024 * NS_PER_US);
}

TEST(histogram, one_slow_value_in_a_thousand_is_the_last_permille)
{
    count(500, 999);
    count(NS_PER_S, 1);
    ck_assert_int_eq(histogram_quantile_ns(&v, 999), 1 * NS_PER_US);
    ck_assert_int_eq(histogram_quantile_ns(&v, 1000), histogram_limit_ns(20));
}

TEST(histogram, value_beyond_the_last_limit_has_an_unbounded_quantile)
{
    count(60 * NS_PER_S, 1);
    ck_assert_int_eq(histogram_quantile_ns(&v, 1), CLOCK_NEVER);
    ck_assert_int_eq(histogram_quantile_ns(&v, 1000), CLOCK_NEVER);
}

TEST(histogram, counts_near_the_end_of_the_numbers_do_not_overflow)
{
    v = (struct histogram_view){.bucket = {[3] = UINT64_MAX / 2, [5] = UINT64_MAX / 2}};
    v.count = v.bucket[3] + v.bucket[5];
    ck_assert_int_eq(histogram_quantile_ns(&v, 500), histogram_limit_ns(3));
    ck_assert_int_eq(histogram_quantile_ns(&v, 501), histogram_limit_ns(5));
    ck_assert_int_eq(histogram_quantile_ns(&v, 1000), histogram_limit_ns(5));
}

static const unsigned no_permilles[] = {0, 1001};

TEST_EACH_ABORTS(histogram, a_permille_outside_its_range_is_a_bug, ARRAY_LEN(no_permilles))
{
    count(500, 1);
    histogram_quantile_ns(&v, no_permilles[_i]);
}

static void *count_many(void *arg)
{
    for (unsigned i = 0; i < COUNT; i++)
        histogram_count(&h, (int64_t)(i % 4) * NS_PER_US);
    return arg;
}

TEST(histogram, concurrent_reads_never_decrease)
{
    struct histogram_view last = {.count = 0};
    pthread_t counter;

    pthread_create(&counter, NULL, count_many, NULL);
    do {
        histogram_read(&h, &v);
        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
            ck_assert_uint_ge(v.bucket[i], last.bucket[i]);
        last = v;
    } while (v.count < COUNT);
    pthread_join(counter, NULL);
    ck_assert_uint_eq(v.count, COUNT);
    ck_assert_uint_eq(v.bucket[2], COUNT / 2);
}
