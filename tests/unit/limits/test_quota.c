/* limits/quota: exactly so many, whoever asks at the same time. */
#include <pthread.h>

#include "base/clock.h"
#include "limits/quota.h"
#include "support/suite.h"

static struct quota q;
static const int64_t now_ns = 1000 * NS_PER_S;

static void limit(unsigned connections, unsigned tokens)
{
    quota_init(&q, &(struct quota_conf){.max_connections = connections,
                                        .rate = {tokens, NS_PER_S, tokens ? tokens : 1}});
}

GROUP(quota, NULL, NULL);

TEST(quota, last_connection_is_admitted_once_and_again_after_a_leave)
{
    limit(2, 0);
    ck_assert(quota_is_limited(&q));
    ck_assert(quota_enter(&q, now_ns));
    ck_assert_int_eq(quota_wait_ns(&q, now_ns), 0);
    ck_assert(quota_enter(&q, now_ns));
    ck_assert_int_eq(quota_wait_ns(&q, now_ns), CLOCK_NEVER);
    ck_assert(!quota_enter(&q, now_ns));
    quota_leave(&q);
    ck_assert(quota_enter(&q, now_ns));
}

TEST(quota, leaving_frees_a_connection_and_no_token)
{
    limit(5, 1);
    ck_assert(quota_enter(&q, now_ns));
    quota_leave(&q);
    ck_assert(!quota_enter(&q, now_ns));
    ck_assert_int_eq(quota_wait_ns(&q, now_ns), NS_PER_S);
}

TEST(quota, withdrawing_frees_the_connection_and_the_token)
{
    limit(1, 1);
    for (int i = 0; i < 3; i++) {
        ck_assert(quota_enter(&q, now_ns));
        quota_withdraw(&q);
    }
}

TEST(quota, refusal_at_max_connections_takes_no_token)
{
    limit(1, 2);
    ck_assert(quota_enter(&q, now_ns));
    ck_assert(!quota_enter(&q, now_ns));
    quota_leave(&q);
    ck_assert(quota_enter(&q, now_ns));
}

TEST(quota, without_limits_every_connection_is_admitted)
{
    limit(0, 0);
    ck_assert(!quota_is_limited(&q));
    for (int i = 0; i < 1000; i++)
        ck_assert(quota_enter(&q, now_ns));
    ck_assert_int_eq(quota_wait_ns(&q, now_ns), 0);
    for (int i = 0; i < 1000; i++)
        quota_leave(&q);
}

static void change(unsigned connections, unsigned tokens)
{
    quota_set(&q,
              &(struct quota_conf){.max_connections = connections,
                                   .rate = {tokens, NS_PER_S, tokens ? tokens : 1}},
              now_ns);
}

TEST(quota, maximum_switched_on_counts_connections_that_are_open)
{
    limit(0, 0);
    for (int i = 0; i < 3; i++)
        ck_assert(quota_enter(&q, now_ns));
    change(2, 0);
    ck_assert(quota_is_limited(&q));
    for (int i = 0; i < 2; i++) {
        ck_assert(!quota_enter(&q, now_ns));
        ck_assert_int_eq(quota_wait_ns(&q, now_ns), CLOCK_NEVER);
        quota_leave(&q);
    }
    ck_assert(quota_enter(&q, now_ns));
    ck_assert(!quota_enter(&q, now_ns));
    quota_leave(&q);
    quota_leave(&q);
    ck_assert_uint_eq(atomic_load(&q.open), 0);
}

TEST(quota, maximum_switched_off_admits_every_connection_and_keeps_the_count)
{
    limit(1, 0);
    ck_assert(quota_enter(&q, now_ns));
    change(0, 0);
    ck_assert(!quota_is_limited(&q));
    ck_assert(quota_enter(&q, now_ns));
    quota_leave(&q);
    quota_leave(&q);
    ck_assert_uint_eq(atomic_load(&q.open), 0);
}

TEST(quota, a_rate_that_is_switched_on_begins_with_its_burst)
{
    limit(0, 0);
    ck_assert(quota_enter(&q, now_ns));
    change(0, 2);
    ck_assert(quota_enter(&q, now_ns));
    ck_assert(quota_enter(&q, now_ns));
    ck_assert(!quota_enter(&q, now_ns));
    change(0, 0);
    ck_assert(quota_enter(&q, now_ns));
}

TEST(quota, raised_rate_does_not_wait_for_tokens_of_the_old_rate)
{
    limit(0, 1);
    ck_assert(quota_enter(&q, now_ns));
    ck_assert(!quota_enter(&q, now_ns));
    change(0, 100);
    ck_assert(quota_enter(&q, now_ns));
}

#define THREADS 4
#define ROUNDS  50000
#define PLACES  3

static atomic_uint inside, most;

static void *come_and_go(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned n;

        if (!quota_enter(&q, now_ns))
            continue;
        n = atomic_fetch_add(&inside, 1) + 1;
        if (n > atomic_load(&most))
            atomic_store(&most, n);
        atomic_fetch_sub(&inside, 1);
        quota_leave(&q);
    }
    return NULL;
}

TEST(quota, concurrent_threads_never_exceed_the_maximum)
{
    pthread_t threads[THREADS];

    limit(PLACES, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_le(atomic_load(&most), PLACES);
    ck_assert_uint_eq(atomic_load(&q.open), 0);
}
