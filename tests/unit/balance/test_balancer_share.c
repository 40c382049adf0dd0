/* balance/balancer: who gets how much, kind by kind. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "support/endpoints.h"
#include "support/sanitized.h"
#include "support/suite.h"

#define THREADS    4
#define PICKS_EACH 100000
#define MAX_SHOWN  100

static struct endpoints es;
static struct balancer *b;

static void open_with(enum balancer_kind kind, const unsigned *weights, unsigned n)
{
    endpoints_open(&es, n);
    endpoints_weights(&es, weights);
    b = endpoints_balancer(&es, kind);
}

static void teardown(void)
{
    balancer_destroy(b);
    endpoints_close(&es);
}

static void expect_picks(const char *letters)
{
    for (; *letters; letters++)
        ck_assert_int_eq('a' + endpoints_touch(&es, b, 0), *letters);
}

/* ---- many threads ---- */

struct counter {
    pthread_t thread;
    uint64_t first_key;
    unsigned picked[MAX_SHOWN];
};

static void *pick_many(void *arg)
{
    struct counter *c = arg;

    for (uint64_t i = 0; i < PICKS_EACH; i++)
        c->picked[endpoints_touch(&es, b, hash_mix(c->first_key + i))]++;
    return NULL;
}

/* The picks of four threads, 100,000 each, every one with another key. */
static void count_picks(unsigned *picked)
{
    struct counter counters[THREADS] = {0};

    for (unsigned i = 0; i < THREADS; i++) {
        counters[i].first_key = (uint64_t)i * PICKS_EACH;
        pthread_create(&counters[i].thread, NULL, pick_many, &counters[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(counters[i].thread, NULL);
        for (unsigned j = 0; j < es.n; j++)
            picked[j] += counters[i].picked[j];
    }
}

/* Each has its share, give or take so much of all picks. */
static void expect_shares(const unsigned *weights, const unsigned *picked, double tolerance)
{
    unsigned total = 0, all = 0;

    for (unsigned i = 0; i < es.n; i++) {
        total += weights[i];
        all += picked[i];
    }
    for (unsigned i = 0; i < es.n; i++) {
        double share = (double)picked[i] / all, expected = (double)weights[i] / total;

        ck_assert_double_le(share, expected + tolerance);
        ck_assert_double_ge(share, expected - tolerance);
    }
}

/* ---- round robin ---- */

/* Equals take turns; a weight of two is not in a row; the order of 5, 1 and 1 is nginx's. */
static const struct {
    enum balancer_kind kind;
    unsigned n, weights[3];
    const char *picks;
} orders[] = {
    {BALANCER_ROUND_ROBIN, 3, {1, 1, 1}, "abcabcabc"},
    {BALANCER_LEAST_CONNECTIONS, 3, {1, 1, 1}, "abcabcabc"},
    {BALANCER_ROUND_ROBIN, 2, {2, 1}, "abaaba"},
    {BALANCER_ROUND_ROBIN, 3, {5, 1, 1}, "aabacaaaabacaa"},
};

GROUP(turns, NULL, teardown);

TEST_EACH(turns, equal_endpoints_take_turns_and_weights_are_interleaved, ARRAY_LEN(orders))
{
    open_with(orders[_i].kind, orders[_i].weights, orders[_i].n);
    expect_picks(orders[_i].picks);
}

/* nginx's rule as it is written, over 40 endpoints with the heaviest first. */
TEST_EACH(turns, the_order_is_nginxs_whatever_the_weights_are, 4)
{
    enum { N = 40 };
    unsigned weights[N];
    int credit[N] = {0}, total = 0;

    for (unsigned i = 0; i < N; i++) {
        weights[i] = 12 - i * 12 / N + (unsigned)_i;
        total += (int)weights[i];
    }
    open_with(BALANCER_ROUND_ROBIN, weights, N);
    for (int step = 0; step < 3 * total; step++) {
        unsigned best = 0;

        for (unsigned i = 0; i < N; i++) {
            credit[i] += (int)weights[i];
            if (credit[i] > credit[best])
                best = i;
        }
        credit[best] -= total;
        ck_assert_int_eq(endpoints_touch(&es, b, 0), (int)best);
    }
}

TEST(turns, over_a_cycle_each_endpoint_gets_exactly_its_weight)
{
    static const unsigned weights[] = {3, 256, 97, 1};
    unsigned picked[4] = {0};

    open_with(BALANCER_ROUND_ROBIN, weights, 4);
    for (unsigned i = 0; i < 3 * (256 + 3 + 97 + 1); i++)
        picked[endpoints_touch(&es, b, 0)]++;
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(picked[i], 3 * weights[i]);
}

TEST(turns, four_threads_together_keep_the_turns_exact)
{
    static const unsigned weights[] = {4, 3, 2, 1};
    unsigned picked[4] = {0};

    open_with(BALANCER_ROUND_ROBIN, weights, 4);
    count_picks(picked);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(picked[i], THREADS * PICKS_EACH / 10 * weights[i]);
}

TEST(turns, turns_of_an_unfit_endpoint_go_to_the_others_by_weight)
{
    unsigned picked[4] = {0};

    open_with(BALANCER_ROUND_ROBIN, (unsigned[]){6, 3, 1, 1}, 4);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 5000; i++)
        picked[endpoints_touch(&es, b, 0)]++;
    ck_assert_uint_eq(picked[0], 0);
    ck_assert_uint_eq(picked[1], 3000);
    ck_assert_uint_eq(picked[2], 1000);
    ck_assert_uint_eq(picked[3], 1000);
}

TEST_RANGE(turns, two_fit_endpoints_of_a_thousand_share_the_sessions, BALANCER_ROUND_ROBIN,
           BALANCER_FIRST)
{
    endpoints_open(&es, 1000);
    b = endpoints_balancer(&es, _i);
    for (unsigned i = 0; i < 1000; i++)
        if (i != 500 && i != 501) /* side by side */
            endpoint_set_flag(&es.all[i], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 2000; i++)
        ck_assert_int_ge(endpoints_pick(&es, b, i), 0);
    ck_assert_uint_ge(endpoint_active(&es.all[500]), 800);
    ck_assert_uint_ge(endpoint_active(&es.all[501]), 800);
}

/* ---- random ---- */

GROUP(load, NULL, teardown);

TEST(load, random_follows_the_weights)
{
    static const unsigned weights[] = {1, 2, 3, 4};
    unsigned picked[4] = {0};

    open_with(BALANCER_RANDOM, weights, 4);
    for (uint64_t i = 0; i < PICKS_EACH; i++)
        picked[endpoints_touch(&es, b, 0)]++;
    expect_shares(weights, picked, 0.01);
}

TEST(load, random_takes_the_less_busy_of_two)
{
    unsigned picked[2] = {0};

    open_with(BALANCER_RANDOM, (unsigned[]){1, 1}, 2);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(endpoint_enter(&es.all[0]), 0);
    for (int i = 0; i < 20000; i++)
        picked[endpoints_touch(&es, b, 0)]++;
    ck_assert_uint_eq(picked[0], 0);
}

/* Also the light one, which is hardly ever drawn beside the heavy one. */
TEST(load, random_prefers_a_light_free_endpoint_to_a_heavy_loaded_one)
{
    open_with(BALANCER_RANDOM, (unsigned[]){256, 1}, 2);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(endpoint_enter(&es.all[0]), 0);
    for (int i = 0; i < 2000; i++)
        ck_assert_int_eq(endpoints_touch(&es, b, 0), 1);
}

TEST(load, random_picks_the_only_fit_endpoint)
{
    open_with(BALANCER_RANDOM, (unsigned[]){1, 1, 1}, 3);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[2], ENDPOINT_DOWN);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(endpoints_pick(&es, b, 0), 1);
}

static void *hold_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++)
        if (endpoints_pick(&es, b, 0) < 0)
            abort();
    return NULL;
}

static void hold_from_four_threads(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hold_many, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/*
 * Sessions that stay, for one that ends while its thread does not run counts against its endpoint
 * all the time.
 */
TEST(load, random_follows_the_weights_with_four_threads)
{
    static const unsigned weights[] = {1, 2, 3, 4};
    unsigned active[4];

    open_with(BALANCER_RANDOM, weights, 4);
    hold_from_four_threads();
    for (unsigned i = 0; i < 4; i++)
        active[i] = endpoint_active(&es.all[i]);
    expect_shares(weights, active, 0.01);
}

/* ---- least connections ---- */

TEST(load, least_connections_fills_the_emptiest_endpoint)
{
    open_with(BALANCER_LEAST_CONNECTIONS, (unsigned[]){1, 1, 1}, 3);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(endpoint_enter(&es.all[0]), 0);
        ck_assert_int_eq(endpoint_enter(&es.all[2]), 0);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(endpoints_pick(&es, b, 0), 1);
}

TEST(load, least_connections_holds_sessions_in_proportion)
{
    static const unsigned weights[] = {7, 3, 25, 1, 100, 3};
    unsigned total = 0;

    open_with(BALANCER_LEAST_CONNECTIONS, weights, 6);
    for (unsigned i = 0; i < 6; i++)
        total += weights[i];
    for (unsigned i = 0; i < 20 * total; i++)
        ck_assert_int_ge(endpoints_pick(&es, b, 0), 0);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(endpoint_active(&es.all[i]), 20 * weights[i]);
}

/* Every pick is what one finds who looks at all of them, with loads and weights of all sorts. */
TEST(load, least_connections_is_never_beaten)
{
    enum { N = 300 };

    endpoints_open(&es, N);
    for (unsigned i = 0; i < N; i++) {
        es.all[i].weight = 1 + (unsigned)(hash_mix(i) % 20);
        es.all[i].max_connections = (unsigned)(hash_mix(i) >> 32) % 5 == 0 ? 30 : 0;
        es.loads[i] = (uint32_t)(hash_mix(i * 7) % 200);
        if (hash_mix(i * 11) % 4 == 0)
            endpoint_set_flag(&es.all[i], ENDPOINT_EJECTED);
    }
    b = endpoints_balancer(&es, BALANCER_LEAST_CONNECTIONS);
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t least = UINT64_MAX; /* sessions times what all weights divide */
        int picked;

        for (unsigned i = 0; i < N; i++) {
            uint64_t cost =
                (endpoint_active(&es.all[i]) + 1) * UINT64_C(232792560) / es.all[i].weight;
            bool full = es.all[i].max_connections > 0 &&
                        endpoint_active(&es.all[i]) >= es.all[i].max_connections;

            if (!full && !(endpoint_load(&es.all[i]) & ENDPOINT_UNFIT) && cost < least)
                least = cost;
        }
        picked = endpoints_pick(&es, b, 0);
        ck_assert_int_ge(picked, 0);
        ck_assert_uint_eq(
            endpoint_active(&es.all[picked]) * UINT64_C(232792560) / es.all[picked].weight, least);
    }
}

/*
 * Two that look at the same time may take the same one: so they differ by no more than there are
 * threads.
 */
TEST(load, least_connections_stays_level_with_four_threads)
{
    unsigned least = UINT32_MAX, most = 0;

    open_with(BALANCER_LEAST_CONNECTIONS, (unsigned[]){1, 1, 1, 1, 1, 1, 1}, 7);
    hold_from_four_threads();
    for (unsigned i = 0; i < es.n; i++) {
        unsigned active = endpoint_active(&es.all[i]);

        least = active < least ? active : least;
        most = active > most ? active : most;
    }
    ck_assert_uint_le(most - least, THREADS);
}

/* ---- by key ---- */

static const enum balancer_kind keyed[] = {BALANCER_SOURCE_HASH, BALANCER_MAGLEV};

GROUP(keys, NULL, teardown);

TEST_EACH(keys, keys_follow_the_weights_within_half_a_percent, ARRAY_LEN(keyed))
{
    static const unsigned weights[] = {1, 2, 3, 4};
    unsigned picked[4] = {0};

    open_with(keyed[_i], weights, 4);
    count_picks(picked);
    expect_shares(weights, picked, 0.005);
}

/* Threads that work out the same slots at the same time give each key the same endpoint. */
TEST_EACH(keys, four_threads_spread_keys_as_one_thread_does, ARRAY_LEN(keyed))
{
    enum { N = 100 };
    struct counter one = {.first_key = 0}, *four;

    endpoints_open(&es, N);
    b = endpoints_balancer(&es, keyed[_i]);
    four = calloc(THREADS, sizeof(*four));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&four[i].thread, NULL, pick_many, &four[i]);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(four[i].thread, NULL);
    pick_many(&one);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_mem_eq(four[i].picked, one.picked, sizeof(one.picked));
    free(four);
}

/*
 * By chance alone the standard deviation is the square root of the keys of each; of a thousand by
 * their slots as well, 4.4 %.
 */
static const struct {
    enum balancer_kind kind;
    unsigned n, percent;
} spreads[] = {{BALANCER_SOURCE_HASH, 50, 10},
               {BALANCER_MAGLEV, 50, 10},
               {BALANCER_SOURCE_HASH, 1000, 32},
               {BALANCER_MAGLEV, 1000, 38}};

TEST_EACH(keys, keys_are_spread_evenly_over_many_endpoints, IF_SANITIZED(2, ARRAY_LEN(spreads)))
{
    unsigned n = spreads[_i].n, keys = n == 50 ? 100000 : 200000;
    unsigned *picked = calloc(n, sizeof(*picked));
    unsigned least = UINT32_MAX, most = 0;

    endpoints_open(&es, n);
    b = endpoints_balancer(&es, spreads[_i].kind);
    for (uint64_t i = 0; i < keys; i++)
        picked[endpoints_touch(&es, b, i)]++;
    for (unsigned i = 0; i < n; i++) {
        least = picked[i] < least ? picked[i] : least;
        most = picked[i] > most ? picked[i] : most;
    }
    free(picked);
    ck_assert_uint_gt(least, keys / n * (100 - spreads[_i].percent) / 100);
    ck_assert_uint_lt(most, keys / n * (100 + spreads[_i].percent) / 100);
}

/* ---- first ---- */

TEST(load, first_fills_endpoints_in_the_order_of_the_configuration)
{
    endpoints_open(&es, 3);
    endpoints_weights(&es, (unsigned[]){1, 9, 5});
    for (unsigned i = 0; i < 3; i++)
        es.all[i].max_connections = 2;
    b = endpoints_balancer(&es, BALANCER_FIRST);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(endpoints_pick(&es, b, 0), i / 2);
    ck_assert_int_eq(endpoints_pick(&es, b, 0), -EBUSY);
    endpoint_leave(&es.all[1]);
    ck_assert_int_eq(endpoints_pick(&es, b, 0), 1);
}
