/*
 * balance/ejection: who is left out, for how long, how many at a time, and that each one comes
 * back once.
 */
#include <pthread.h>
#include <sched.h>

#include "balance/ejection.h"
#include "base/clock.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/until.h"

#define ENDPOINTS 8
#define HOUR_NS   (3600 * NS_PER_S)

#define RACES IF_SANITIZED(500, 3000)

static struct ejection_conf conf;
static struct ejection_group group;
static struct ejection ejections[ENDPOINTS];
static struct endpoint endpoints[ENDPOINTS];
static struct endpoint_group endpoint_group;
static _Atomic uint32_t loads[ENDPOINTS];

static void setup(void)
{
    conf = (struct ejection_conf){
        .failures = 3, .time_ns = 10 * NS_PER_S, .time_max_ns = 25 * NS_PER_S, .max_percent = 100};
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        atomic_store(&loads[i], i); /* sessions are no part of this */
        endpoints[i].load = &loads[i];
        endpoints[i].group = &endpoint_group;
    }
}

static void open_group(unsigned n)
{
    ejection_group_init(&group, &conf, n);
}

static int64_t fail_at(unsigned i, int64_t now_ns)
{
    return ejection_failed(&group, &ejections[i], &endpoints[i], now_ns, true);
}

/* Let endpoint ${i} fail until it is out, or has failed as often as that takes. */
static int64_t fail_enough(unsigned i, int64_t now_ns)
{
    int64_t out_ns = 0;

    for (unsigned n = 0; n < conf.failures && out_ns == 0; n++)
        out_ns = fail_at(i, now_ns);
    return out_ns;
}

static bool is_out(unsigned i)
{
    ck_assert_uint_eq(endpoint_active(&endpoints[i]), i);
    return (endpoint_load(&endpoints[i]) & ENDPOINT_EJECTED) != 0;
}

static unsigned n_out(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < group.n_endpoints; i++)
        n += is_out(i);
    return n;
}

/* How many come back. */
static unsigned sweep(int64_t now_ns)
{
    unsigned n = 0;

    if (!ejection_due(&group, now_ns))
        return 0;
    ejection_sweep_begin(&group);
    for (unsigned i = 0; i < group.n_endpoints; i++)
        n += ejection_return(&group, &ejections[i], &endpoints[i], now_ns);
    return n;
}

static void check_none_out(void)
{
    ck_assert_uint_eq(n_out(), 0);
    ck_assert_uint_eq(atomic_load(&group.n_out), 0);
    ck_assert(!ejection_some_out(&group));
    ck_assert_int_eq(atomic_load(&group.next_return_at_ns), CLOCK_NEVER);
}

/* ---- when ---- */

GROUP(ejection, setup, NULL);

TEST(ejection, consecutive_failures_eject_an_endpoint)
{
    open_group(2);
    ck_assert_int_eq(fail_at(0, NS_PER_S), 0);
    ck_assert_int_eq(fail_at(0, NS_PER_S), 0);
    check_none_out();
    ck_assert_int_eq(fail_at(0, NS_PER_S), conf.time_ns);
    ck_assert(is_out(0));
    ck_assert(!is_out(1));
    ck_assert(ejection_some_out(&group));
}

TEST(ejection, success_restarts_the_count_of_failures)
{
    open_group(2);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(fail_at(0, NS_PER_S), 0);
        ck_assert_int_eq(fail_at(0, NS_PER_S), 0);
        ejection_worked(&ejections[0]);
    }
    check_none_out();
    ck_assert_int_gt(fail_enough(0, NS_PER_S), 0);
}

TEST(ejection, each_endpoint_has_its_own_count_of_failures)
{
    open_group(3);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(fail_at(i % 3, NS_PER_S), 0);
    ejection_worked(&ejections[1]);
    ck_assert_int_gt(fail_at(0, NS_PER_S), 0);
    ck_assert_int_eq(fail_at(1, NS_PER_S), 0);
    ck_assert_int_gt(fail_at(2, NS_PER_S), 0);
}

TEST(ejection, failure_count_of_zero_disables_ejection)
{
    conf.failures = 0;
    open_group(2);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(fail_at(0, NS_PER_S), 0);
    check_none_out();
}

TEST(ejection, failures_of_an_ejected_endpoint_do_not_eject_it_again)
{
    open_group(2);
    ck_assert_int_gt(fail_enough(0, NS_PER_S), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(fail_at(0, 2 * NS_PER_S), 0);
    ck_assert_uint_eq(atomic_load(&group.n_out), 1);
    ck_assert_uint_eq(sweep(NS_PER_S + conf.time_ns), 1); /* not later for that */
    check_none_out();
}

/* Sessions that were on their way when it was left out fail a moment later. */
TEST(ejection, failures_of_an_ejected_endpoint_do_not_count_after_its_return)
{
    open_group(2);
    ck_assert_int_gt(fail_enough(0, NS_PER_S), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(fail_at(0, 2 * NS_PER_S), 0);
    ck_assert_uint_eq(sweep(20 * NS_PER_S), 1);
    ck_assert_int_eq(fail_at(0, 21 * NS_PER_S), 0);
    ck_assert_int_eq(fail_at(0, 21 * NS_PER_S), 0);
    check_none_out();
    ck_assert_int_gt(fail_at(0, 21 * NS_PER_S), 0);
}

/* ---- for how long ---- */

TEST(ejection, ejected_endpoint_returns_exactly_when_its_time_is_over)
{
    int64_t back_at_ns = 5 * NS_PER_S + conf.time_ns;

    open_group(2);
    ck_assert_int_gt(fail_enough(0, 5 * NS_PER_S), 0);
    ck_assert(!ejection_due(&group, back_at_ns - 1));
    ck_assert_uint_eq(sweep(back_at_ns - 1), 0);
    ck_assert(is_out(0));
    ck_assert(ejection_due(&group, back_at_ns));
    ck_assert_uint_eq(sweep(back_at_ns), 1);
    check_none_out();
    ck_assert_uint_eq(sweep(back_at_ns), 0);
}

TEST(ejection, each_endpoint_returns_at_its_own_time)
{
    open_group(4);
    for (unsigned i = 0; i < 4; i++) /* the third first, and so on */
        ck_assert_int_gt(fail_enough((i + 2) % 4, i * NS_PER_S), 0);
    for (unsigned i = 0; i < 4; i++) {
        int64_t back_at_ns = i * NS_PER_S + conf.time_ns;

        ck_assert_uint_eq(sweep(back_at_ns - 1), 0);
        ck_assert_uint_eq(sweep(back_at_ns), 1);
        ck_assert(!is_out((i + 2) % 4));
        ck_assert_uint_eq(atomic_load(&group.n_out), 3 - i);
    }
    check_none_out();
}

TEST(ejection, repeated_ejections_grow_up_to_the_maximum_time)
{
    static const int64_t times_s[] = {10, 20, 25, 25, 25};
    int64_t now_ns = NS_PER_S;

    open_group(2);
    for (unsigned i = 0; i < ARRAY_LEN(times_s); i++) {
        ck_assert_int_eq(fail_enough(0, now_ns), times_s[i] * NS_PER_S);
        now_ns += times_s[i] * NS_PER_S;
        ck_assert_uint_eq(sweep(now_ns - 1), 0);
        ck_assert_uint_eq(sweep(now_ns), 1);
        now_ns += conf.time_max_ns - 1; /* a moment less than would forgive it */
    }
}

TEST(ejection, ejection_time_is_reset_after_the_maximum_time_without_failures)
{
    int64_t now_ns = NS_PER_S;

    open_group(2);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(fail_enough(0, now_ns), conf.time_ns);
        now_ns += conf.time_ns;
        ck_assert_uint_eq(sweep(now_ns), 1);
        now_ns += conf.time_max_ns;
    }
}

TEST(ejection, the_longest_times_do_not_overflow)
{
    conf.time_ns = CLOCK_NEVER / 2;
    conf.time_max_ns = CLOCK_NEVER;
    open_group(2);
    for (int64_t i = 0; i < 3; i++) {
        int64_t out_ns = fail_enough(0, NS_PER_S);

        ck_assert_int_eq(out_ns, i == 0   ? CLOCK_NEVER / 2
                                 : i == 1 ? 2 * (CLOCK_NEVER / 2)
                                          : CLOCK_NEVER);
        ck_assert_uint_eq(sweep(CLOCK_NEVER), 1);
    }
}

/* ---- how many ---- */

static const struct {
    unsigned endpoints, max_percent, out;
} shares[] = {{8, 50, 4}, {8, 49, 3}, {8, 100, 8}, {8, 13, 1}, {8, 12, 1}, {3, 50, 1}, {3, 10, 1},
              {2, 50, 1}, {2, 1, 1},  {2, 100, 2}, {8, 0, 0},  {2, 0, 0},  {1, 50, 0}, {1, 100, 0}};

TEST_EACH(ejection, ejected_endpoints_never_exceed_the_maximum_share, ARRAY_LEN(shares))
{
    unsigned out = 0;

    conf.max_percent = shares[_i].max_percent;
    open_group(shares[_i].endpoints);
    for (unsigned i = 0; i < shares[_i].endpoints; i++)
        out += fail_enough(i, NS_PER_S) > 0;
    ck_assert_uint_eq(out, shares[_i].out);
    ck_assert_uint_eq(n_out(), out);
    ck_assert_uint_eq(atomic_load(&group.n_out), out);
}

TEST(ejection, returning_endpoint_makes_the_next_failing_endpoint_ejectable)
{
    conf.max_percent = 50;
    open_group(2);
    ck_assert_int_gt(fail_enough(0, NS_PER_S), 0);
    ck_assert_int_eq(fail_enough(1, NS_PER_S), 0);
    ck_assert_int_eq(fail_at(1, 2 * NS_PER_S), 0);
    ck_assert_uint_eq(sweep(20 * NS_PER_S), 1);
    ck_assert_int_gt(fail_at(1, 20 * NS_PER_S), 0); /* it had failed often enough already */
    ck_assert(is_out(1));
}

/* ---- many threads ---- */

#define THREADS 4

static atomic_uint arrived, returned, ejected, races_over;
static int64_t races_end_at_ns;

/* Let ${n} threads go on at the same time, again and again: ${round} counts from 1. */
static void meet(unsigned round, unsigned n)
{
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < round * n)
        sched_yield();
}

/* One of them says before each first meeting of a ${round} whether there is one. */
static bool another(unsigned round)
{
    bool goes_on = rounds_go_on(round - 1, RACES, races_end_at_ns);

    atomic_store(&races_over, !goes_on);
    return goes_on;
}

static void run_threads(unsigned n, void *(*function)(void *arg))
{
    pthread_t threads[THREADS];

    races_end_at_ns = clock_now_ns() + ROUNDS_SECONDS * NS_PER_S;
    for (uintptr_t i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, function, (void *)i);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void *eject_the_same(void *arg)
{
    for (unsigned round = 1;; round++) {
        int64_t now_ns = round * 2 * HOUR_NS;

        if (!arg)
            another(round);
        meet(2 * round - 1, 2);
        if (atomic_load(&races_over))
            return NULL;
        atomic_fetch_add(&ejected, fail_at(0, now_ns) > 0);
        meet(2 * round, 2);
        if (arg)
            continue;
        ck_assert_uint_eq(atomic_load(&ejected), round);
        ck_assert_uint_eq(atomic_load(&group.n_out), 1);
        ck_assert_uint_eq(sweep(now_ns + conf.time_ns - 1), 0);
        ck_assert_uint_eq(sweep(now_ns + conf.time_ns), 1); /* the loser did not make it longer */
    }
}

TEST(ejection, two_threads_eject_the_same_endpoint_once)
{
    conf.failures = 1;
    open_group(2);
    run_threads(2, eject_the_same);
    check_none_out();
}

static void *sweep_together(void *arg)
{
    for (unsigned round = 1;; round++) {
        int64_t now_ns = round * HOUR_NS;

        if (!arg && another(round))
            for (unsigned i = 0; i < ENDPOINTS; i++)
                ck_assert_int_gt(fail_enough(i, now_ns), 0);
        meet(3 * round - 2, THREADS);
        if (atomic_load(&races_over))
            return NULL;
        atomic_fetch_add(&returned, sweep(now_ns + conf.time_max_ns));
        meet(3 * round - 1, THREADS);
        if (!arg) {
            check_none_out();
            ck_assert_uint_eq(atomic_load(&returned), round * ENDPOINTS);
        }
        meet(3 * round, THREADS);
    }
}

TEST(ejection, each_return_is_reported_once_by_any_number_of_threads)
{
    open_group(ENDPOINTS);
    run_threads(THREADS, sweep_together);
}

#define STORM_NS (200 * NS_PER_MS)

/* Two fail, two look for who is back; whoever is left out is so for some microseconds. */
static void *storm(void *arg)
{
    uintptr_t self = (uintptr_t)arg;
    int64_t until_ns = clock_now_ns() + STORM_NS;

    for (unsigned n = 0; clock_now_ns() < until_ns; n++) {
        if (self % 2)
            atomic_fetch_add(&returned, sweep(clock_now_ns()));
        else
            atomic_fetch_add(&ejected, fail_at(n % ENDPOINTS, clock_now_ns()) > 0);
    }
    return NULL;
}

TEST_RANGE(ejection, concurrent_ejections_and_returns_lose_no_endpoint, 1, 3)
{
    conf = (struct ejection_conf){.failures = 2,
                                  .time_ns = 3 * NS_PER_US,
                                  .time_max_ns = 20 * NS_PER_US,
                                  .max_percent = 50 * (unsigned)_i};
    open_group(ENDPOINTS);
    run_threads(THREADS, storm);
    ck_assert_uint_gt(atomic_load(&ejected), 0);
    ck_assert_uint_eq(n_out(), atomic_load(&group.n_out));
    ck_assert_uint_eq(atomic_load(&ejected) - atomic_load(&returned), n_out());
    atomic_fetch_add(&returned, sweep(clock_now_ns() + NS_PER_S));
    ck_assert_uint_eq(atomic_load(&ejected), atomic_load(&returned));
    check_none_out();
}

static _Atomic int64_t looking_at_ns;

static void *look_all_the_time(void *arg)
{
    while (!atomic_load(&races_over))
        atomic_fetch_add(&returned, ejection_return(&group, &ejections[0], &endpoints[0],
                                                    atomic_load(&looking_at_ns)));
    return arg;
}

/*
 * The other sees the mark only together with the time that belongs to it, and not with the one
 * before, which is over.
 */
TEST(ejection, endpoint_ejected_during_a_concurrent_sweep_does_not_return_early)
{
    pthread_t looking;

    conf.failures = 1;
    conf.time_ns = conf.time_max_ns = HOUR_NS;
    open_group(2);
    pthread_create(&looking, NULL, look_all_the_time, NULL);
    EACH_ROUND(round, 20 * RACES)
    {
        int64_t now_ns = (round + 1) * 4 * HOUR_NS;

        atomic_store(&looking_at_ns, now_ns);
        ck_assert_int_eq(fail_at(0, now_ns), HOUR_NS);
        while (!ejection_return(&group, &ejections[0], &endpoints[0], now_ns + HOUR_NS))
            ck_assert(is_out(0)); /* the other was just looking */
    }
    atomic_store(&races_over, 1);
    pthread_join(looking, NULL);
    ck_assert_uint_eq(atomic_load(&returned), 0);
}

TEST(ejection, changed_limits_apply_from_the_next_failure)
{
    struct ejection_conf other = conf;

    open_group(2);
    ck_assert_int_eq(fail_at(0, NS_PER_S), 0);
    other.failures = 2;
    other.time_ns = 7 * NS_PER_S;
    ejection_group_use(&group, &other);
    ck_assert_int_eq(fail_at(0, NS_PER_S), 7 * NS_PER_S);
    ck_assert(is_out(0));
}
