/*
 * check/health: which checks in a row change the state, and how long it is until the next one.
 */
#include "base/clock.h"
#include "check/health.h"
#include "support/suite.h"

#define INTERVAL_NS (2 * NS_PER_S)

static struct health_conf conf;
static struct health h;
static int64_t now_ns;

static void setup(void)
{
    conf = (struct health_conf){
        .rise = 2, .fall = 3, .interval_ns = INTERVAL_NS, .jitter_percent = 10};
    now_ns = 100;
    health_init(&h, &conf, HEALTH_STARTS_KNOWN_UP, 1, now_ns);
}

/*
 * Each character is a check: '+' one that passes, '-' one that fails. All but the last change
 * nothing.
 */
static enum health_change diagnostics(const char *checks)
{
    enum health_change change = HEALTH_SAME;

    for (; *checks; checks++) {
        ck_assert_int_eq(change, HEALTH_SAME);
        change = health_report(&h, *checks == '+', ++now_ns);
    }
    return change;
}

GROUP(health, setup, NULL);

TEST(health, server_starts_up)
{
    ck_assert(h.is_up);
    ck_assert_int_eq(h.since_at_ns, 100);
    ck_assert_int_eq(diagnostics("++++"), HEALTH_SAME);
    ck_assert_int_eq(h.since_at_ns, 100);
}

TEST(health, first_failed_check_takes_an_unchecked_server_down)
{
    health_init(&h, &conf, HEALTH_STARTS_UP, 1, now_ns);
    ck_assert(h.is_up);
    ck_assert_int_eq(diagnostics("-"), HEALTH_WENT_DOWN);
    ck_assert_int_eq(diagnostics("+"), HEALTH_SAME); /* not rise yet */
    ck_assert_int_eq(diagnostics("+"), HEALTH_CAME_UP);
    ck_assert_int_eq(diagnostics("--"), HEALTH_SAME);
    ck_assert_int_eq(diagnostics("-"), HEALTH_WENT_DOWN);
}

TEST(health, after_a_first_success_fall_failures_are_needed)
{
    health_init(&h, &conf, HEALTH_STARTS_UP, 1, now_ns);
    ck_assert_int_eq(diagnostics("+--"), HEALTH_SAME);
    ck_assert_int_eq(diagnostics("-"), HEALTH_WENT_DOWN);
}

TEST(health, fall_failures_take_the_server_down)
{
    ck_assert_int_eq(diagnostics("--"), HEALTH_SAME);
    ck_assert(h.is_up);
    ck_assert_int_eq(diagnostics("-"), HEALTH_WENT_DOWN);
    ck_assert(!h.is_up);
    ck_assert_int_eq(h.since_at_ns, now_ns);
    ck_assert_int_eq(diagnostics("-----"), HEALTH_SAME);
}

TEST(health, rise_successes_bring_the_server_up)
{
    ck_assert_int_eq(diagnostics("---"), HEALTH_WENT_DOWN);
    ck_assert_int_eq(diagnostics("+"), HEALTH_SAME);
    ck_assert(!h.is_up);
    ck_assert_int_eq(diagnostics("+"), HEALTH_CAME_UP);
    ck_assert(h.is_up);
    ck_assert_int_eq(h.since_at_ns, now_ns);
}

TEST(health, success_restarts_the_count_of_failures_and_the_other_way_round)
{
    ck_assert_int_eq(diagnostics("--+--+--+"), HEALTH_SAME);
    ck_assert(h.is_up);
    ck_assert_int_eq(diagnostics("---"), HEALTH_WENT_DOWN);
    ck_assert_int_eq(diagnostics("+-+-+-"), HEALTH_SAME);
    ck_assert(!h.is_up);
}

TEST(health, rise_and_fall_may_be_one)
{
    conf.rise = conf.fall = 1;
    ck_assert_int_eq(diagnostics("-"), HEALTH_WENT_DOWN);
    ck_assert_int_eq(diagnostics("+"), HEALTH_CAME_UP);
    ck_assert_int_eq(diagnostics("-"), HEALTH_WENT_DOWN);
}

static int64_t least_ns, most_ns;

/* The shortest and the longest of many intervals. */
static void draw(void)
{
    least_ns = INT64_MAX;
    most_ns = 0;
    for (unsigned i = 0; i < 10000; i++) {
        int64_t ns = health_interval_ns(&h);

        least_ns = ns < least_ns ? ns : least_ns;
        most_ns = ns > most_ns ? ns : most_ns;
    }
}

TEST(health, jitter_lengthens_the_interval_up_to_its_maximum)
{
    draw();
    ck_assert_int_ge(least_ns, INTERVAL_NS);
    ck_assert_int_lt(least_ns, INTERVAL_NS + INTERVAL_NS / 1000);
    ck_assert_int_le(most_ns, INTERVAL_NS + INTERVAL_NS / 10);
    ck_assert_int_gt(most_ns, INTERVAL_NS + INTERVAL_NS / 10 - INTERVAL_NS / 1000);
}

TEST(health, jitter_is_evenly_distributed)
{
    unsigned tenths[10] = {0};

    for (unsigned i = 0; i < 10000; i++)
        tenths[(health_interval_ns(&h) - INTERVAL_NS) * 10 / (INTERVAL_NS / 10)]++;
    for (unsigned i = 0; i < 10; i++) { /* 1,000 are expected, with a deviation of 30 */
        ck_assert_uint_gt(tenths[i], 800);
        ck_assert_uint_lt(tenths[i], 1200);
    }
}

TEST(health, servers_with_neighbouring_seeds_do_not_stay_in_step)
{
    struct health other;
    unsigned near = 0;

    health_init(&other, &conf, conf.initial, 2, 0);
    for (unsigned i = 0; i < 1000; i++) {
        int64_t apart_ns = health_interval_ns(&h) - health_interval_ns(&other);

        near += apart_ns < INTERVAL_NS / 1000 && apart_ns > -INTERVAL_NS / 1000;
    }
    ck_assert_uint_lt(near, 100); /* 20 are expected */
}

TEST(health, without_jitter_an_interval_is_exact)
{
    conf.jitter_percent = 0;
    draw();
    ck_assert_int_eq(least_ns, INTERVAL_NS);
    ck_assert_int_eq(most_ns, INTERVAL_NS);
}

TEST(health, between_the_states_the_fast_interval_applies)
{
    conf.jitter_percent = 0;
    conf.fast_interval_ns = NS_PER_S / 2;
    ck_assert_int_eq(health_interval_ns(&h), INTERVAL_NS);
    diagnostics("-");
    ck_assert_int_eq(health_interval_ns(&h), NS_PER_S / 2);
    diagnostics("-");
    ck_assert_int_eq(health_interval_ns(&h), NS_PER_S / 2);
    diagnostics("-");
    ck_assert_int_eq(health_interval_ns(&h), INTERVAL_NS); /* down for certain */
    diagnostics("+");
    ck_assert_int_eq(health_interval_ns(&h), NS_PER_S / 2);
    diagnostics("-");
    ck_assert_int_eq(health_interval_ns(&h), INTERVAL_NS);
    diagnostics("+");
    diagnostics("+");
    ck_assert_int_eq(health_interval_ns(&h), INTERVAL_NS);
}

TEST(health, without_a_fast_interval_the_normal_interval_applies)
{
    conf.jitter_percent = 0;
    diagnostics("-");
    ck_assert_int_eq(health_interval_ns(&h), INTERVAL_NS);
}

TEST(health, an_interval_of_centuries_does_not_overflow)
{
    conf.interval_ns = INT64_MAX / 2;
    conf.jitter_percent = 100;
    draw();
    ck_assert_int_ge(least_ns, INT64_MAX / 2);
    conf.interval_ns = INT64_MAX;
    ck_assert_int_eq(health_interval_ns(&h), CLOCK_NEVER);
}

TEST(health, the_first_server_is_checked_at_once)
{
    ck_assert_int_eq(health_first_ns(&conf, 0), 0);
}

/* Each of ${n} equal parts of an interval has its share of the first ${n} times ten checks. */
static void expect_even(unsigned n)
{
    unsigned counts[1000] = {0};

    for (unsigned i = 0; i < 10 * n; i++) {
        int64_t first_ns = health_first_ns(&conf, i);

        ck_assert_int_ge(first_ns, 0);
        ck_assert_int_lt(first_ns, INTERVAL_NS);
        counts[(uint64_t)first_ns * n / INTERVAL_NS]++;
    }
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_ge(counts[i], 8);
        ck_assert_uint_le(counts[i], 12);
    }
}

TEST(health, first_checks_are_spread_evenly)
{
    for (unsigned n = 1; n <= 1000; n = n < 20 ? n + 1 : 2 * n)
        expect_even(n);
}

TEST(health, server_that_starts_down_is_up_after_rise_successes)
{
    struct health_conf c = {
        .initial = HEALTH_STARTS_DOWN, .rise = 2, .fall = 3, .interval_ns = NS_PER_S};
    struct health x;

    health_init(&x, &c, c.initial, 1, 0);
    ck_assert(!x.is_up && x.is_decided);
    ck_assert_int_eq(health_report(&x, true, 1), HEALTH_SAME);
    ck_assert_int_eq(health_report(&x, false, 2), HEALTH_SAME);
    ck_assert_int_eq(health_report(&x, true, 3), HEALTH_SAME);
    ck_assert_int_eq(health_report(&x, true, 4), HEALTH_CAME_UP);
}

/* 0: the first check passes; 1: it fails. */
TEST_EACH(health, first_check_decides_for_a_server_that_is_checked_first, 2)
{
    struct health_conf c = {
        .initial = HEALTH_STARTS_CHECKED, .rise = 2, .fall = 3, .interval_ns = NS_PER_S};
    struct health x;

    health_init(&x, &c, c.initial, 1, 0);
    ck_assert(!x.is_up && !x.is_decided);
    ck_assert_int_eq(health_report(&x, _i == 0, 1), _i == 0 ? HEALTH_CAME_UP : HEALTH_STAYS_DOWN);
    ck_assert(x.is_decided);
    if (_i == 0) {
        ck_assert_int_eq(health_report(&x, false, 2), HEALTH_SAME); /* fall is 3 */
        ck_assert(x.is_up);
    } else {
        ck_assert_int_eq(health_report(&x, true, 2), HEALTH_SAME); /* rise is 2 */
        ck_assert_int_eq(health_report(&x, true, 3), HEALTH_CAME_UP);
    }
}
