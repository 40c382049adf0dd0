/*
 * limits/token_bucket: the rate holds over any time, with a clock of our own; and what threads take
 * together is exact.
 */
#include <pthread.h>

#include "base/clock.h"
#include "base/must.h"
#include "limits/token_bucket.h"
#include "support/suite.h"

static struct token_bucket b;
static int64_t now_ns;

static void setup(void)
{
    b = (struct token_bucket){0};
    now_ns = 1000 * NS_PER_S;
}

/* How many single tokens can be had in ${ns} by asking each ${step_ns}. */
static unsigned taken(const struct token_bucket_conf *conf, int64_t ns, int64_t step_ns)
{
    int64_t end_ns = now_ns + ns;
    unsigned n = 0;

    for (; now_ns < end_ns; now_ns += step_ns)
        while (token_bucket_take(&b, conf, 1, now_ns))
            n++;
    return n;
}

static const struct token_bucket_conf rates[] = {
    {500, NS_PER_S, 50}, {1, NS_PER_S, 1}, {10, 60 * NS_PER_S, 3}, {1000000, NS_PER_S, 100000}};

GROUP(token_bucket, setup, NULL);

TEST_EACH(token_bucket, a_rate_holds_within_five_percent, ARRAY_LEN(rates))
{
    const struct token_bucket_conf *conf = &rates[_i];
    int64_t long_ns = 1000 * conf->period_ns / (int64_t)conf->tokens;
    unsigned n = taken(conf, long_ns, long_ns / 50021); /* with a burst of 1 each step is lost */

    ck_assert_uint_ge(n, 970);
    ck_assert_uint_le(n, 1001 + (unsigned)conf->burst);
}

TEST(token_bucket, five_hundred_a_second_are_five_thousand_in_ten)
{
    unsigned n = taken(&rates[0], 10 * NS_PER_S, 700 * NS_PER_US);

    ck_assert_uint_ge(n, 4995);
    ck_assert_uint_le(n, 5050);
}

TEST(token_bucket, after_a_pause_one_burst_is_available_at_once)
{
    unsigned n = 0;

    (void)taken(&rates[0], NS_PER_S, NS_PER_MS);
    now_ns += 3600 * NS_PER_S;
    while (token_bucket_take(&b, &rates[0], 1, now_ns))
        n++;
    ck_assert_uint_eq(n, 50);
    ck_assert_int_eq(token_bucket_wait_ns(&b, &rates[0], 1, now_ns), 2 * NS_PER_MS);
}

TEST(token_bucket, take_succeeds_exactly_after_the_returned_wait)
{
    const struct token_bucket_conf conf = {3, NS_PER_S, 2}; /* a third of a second: no whole ns */
    int64_t wait_ns;

    ck_assert(token_bucket_take(&b, &conf, 2, now_ns));
    wait_ns = token_bucket_wait_ns(&b, &conf, 1, now_ns);
    ck_assert(!token_bucket_take(&b, &conf, 1, now_ns + wait_ns - 1));
    ck_assert(token_bucket_take(&b, &conf, 1, now_ns + wait_ns));
}

TEST(token_bucket, tokens_that_take_no_whole_ns_do_not_exceed_the_rate)
{
    const struct token_bucket_conf conf = {3, NS_PER_S, 1};
    int64_t wait_ns = 0;

    for (int i = 0; i < 4; i++)
        wait_ns = token_bucket_reserve(&b, &conf, 1, now_ns);
    ck_assert_int_ge(wait_ns, NS_PER_S); /* the fourth is three after the first */
}

TEST(token_bucket, more_tokens_than_the_burst_are_never_taken)
{
    ck_assert(!token_bucket_take(&b, &rates[0], 51, now_ns));
    ck_assert(token_bucket_take(&b, &rates[0], 50, now_ns));
}

TEST(token_bucket, reservations_are_granted_in_order)
{
    ck_assert_int_eq(token_bucket_reserve(&b, &rates[0], 50, now_ns), 0);
    ck_assert_int_eq(token_bucket_reserve(&b, &rates[0], 500, now_ns), NS_PER_S);
    ck_assert_int_eq(token_bucket_reserve(&b, &rates[0], 500, now_ns), 2 * NS_PER_S);
    ck_assert_int_eq(token_bucket_wait_ns(&b, &rates[0], 50, now_ns), 1050 * 2 * NS_PER_MS);
    ck_assert(!token_bucket_take(&b, &rates[0], 1, now_ns + 2 * NS_PER_S));
    ck_assert(token_bucket_take(&b, &rates[0], 1, now_ns + 2002 * NS_PER_MS));
}

TEST(token_bucket, tokens_given_back_can_be_taken_again)
{
    ck_assert(token_bucket_take(&b, &rates[1], 1, now_ns));
    ck_assert(!token_bucket_take(&b, &rates[1], 1, now_ns));
    token_bucket_give_back(&b, &rates[1], 1);
    ck_assert(token_bucket_take(&b, &rates[1], 1, now_ns));
    ck_assert(!token_bucket_take(&b, &rates[1], 1, now_ns));
}

TEST(token_bucket, without_a_rate_there_is_no_limit)
{
    const struct token_bucket_conf none = {0, NS_PER_S, 1};

    for (int i = 0; i < 100; i++)
        ck_assert(token_bucket_take(&b, &none, UINT64_MAX, now_ns));
    ck_assert_int_eq(token_bucket_reserve(&b, &none, UINT64_MAX, now_ns), 0);
    ck_assert_int_eq(token_bucket_wait_ns(&b, &none, 1, now_ns), 0);
}

TEST(token_bucket, amount_beyond_any_wait_is_refused_without_overflow)
{
    const struct token_bucket_conf slow = {1, 3600 * NS_PER_S, 1000000};

    ck_assert(!token_bucket_take(&b, &slow, UINT64_MAX, now_ns));
    ck_assert(token_bucket_take(&b, &slow, 1, now_ns));
    ck_assert_int_gt(token_bucket_reserve(&b, &slow, UINT64_MAX, now_ns), 3600 * NS_PER_S);
    ck_assert(!token_bucket_take(&b, &slow, 1, now_ns));
}

#define THREADS 4
#define BURST   10000

static const struct token_bucket_conf shared_conf = {1, 3600 * NS_PER_S, BURST};

static void *take_all(void *arg)
{
    unsigned *n = arg;

    while (token_bucket_take(&b, &shared_conf, 1, now_ns))
        ++*n;
    return NULL;
}

TEST(token_bucket, concurrent_threads_take_exactly_the_available_tokens)
{
    pthread_t threads[THREADS];
    unsigned n[THREADS] = {0}, sum = 0;

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_all, &n[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += n[i];
    }
    ck_assert_uint_eq(sum, BURST);
}

/* ---- a rate that changes ---- */

TEST(token_bucket, changed_rate_keeps_the_missing_tokens)
{
    static const struct token_bucket_conf slow = {10, 600 * NS_PER_S, 10},
                                          fast = {100, NS_PER_S, 20};

    for (int i = 0; i < 10; i++)
        ck_assert(token_bucket_take(&b, &slow, 1, now_ns)); /* full in ten minutes */
    token_bucket_convert(&b, &slow, &fast, now_ns);
    for (int i = 0; i < 10; i++)
        ck_assert(token_bucket_take(&b, &fast, 1, now_ns));
    ck_assert(!token_bucket_take(&b, &fast, 1, now_ns));
    ck_assert_int_eq(token_bucket_wait_ns(&b, &fast, 1, now_ns), 10 * NS_PER_MS);
}

TEST(token_bucket, smaller_burst_delays_at_most_once)
{
    static const struct token_bucket_conf wide = {100, NS_PER_S, 100}, tight = {1, NS_PER_S, 1};

    for (int i = 0; i < 100; i++)
        ck_assert(token_bucket_take(&b, &wide, 1, now_ns));
    token_bucket_convert(&b, &wide, &tight, now_ns);
    ck_assert_int_eq(token_bucket_wait_ns(&b, &tight, 1, now_ns), NS_PER_S);
}

TEST(token_bucket, rate_switched_on_begins_with_a_full_bucket)
{
    static const struct token_bucket_conf none = {0, NS_PER_S, 1};

    for (int i = 0; i < 50; i++)
        ck_assert(token_bucket_take(&b, &rates[0], 1, now_ns));
    token_bucket_convert(&b, &rates[0], &none, now_ns);
    token_bucket_convert(&b, &none, &rates[1], now_ns);
    ck_assert(token_bucket_take(&b, &rates[1], 1, now_ns));
    ck_assert(!token_bucket_take(&b, &rates[1], 1, now_ns));
}
