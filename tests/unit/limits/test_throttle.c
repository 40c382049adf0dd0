/*
 * limits/throttle: grants and what becomes of them; how fast real bytes go is in
 * integration/test_bandwidth.py.
 */
#include <unistd.h>

#include "base/clock.h"
#include "limits/throttle.h"
#include "net/channel.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct loop *loop;
static struct netloop *net;
static struct channel ch;
static struct throttle_plan plan;
static struct throttle_shared shared;
static struct throttle *throttle;
static int peer;
static size_t asked;

static void call(void (*function)(void *arg))
{
    loop_runner_call(loop, function, NULL);
}

static void make(void *arg)
{
    int ours;

    (void)arg;
    sockets_tcp(&ours, &peer);
    channel_init(&ch, net, ours);
    ck_assert_int_eq(throttle_create(&throttle, &plan, &ch, THROTTLE_IN), 0);
}

static void forget(void *arg)
{
    (void)arg;
    throttle_destroy(throttle);
    throttle = NULL;
}

static void setup(void)
{
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
}

static void teardown(void)
{
    call(forget);
    loop_runner_destroy(loop);
    netloop_destroy(net);
    close(ch.io.fd);
    close(peer);
}

static void begin(unsigned each_in, unsigned all_in)
{
    ck_assert(throttle_plan_init(
        &plan, &(struct throttle_conf){.each_in = each_in, .all_in = all_in}, &shared));
    call(make);
}

/* Take what there is, as a reader of a full socket does. */
static void take_all(void *arg)
{
    size_t n;

    (void)arg;
    asked = 0;
    while ((n = throttle_allow(throttle, 1000000)) > 0) {
        asked += n;
        throttle_took(throttle, n, false);
    }
}

/* As a reader of which little comes. */
static void take_little(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_gt(throttle_allow(throttle, 1000000), 0);
        throttle_took(throttle, 1, true);
    }
}

GROUP(throttle, setup, teardown);

TEST(throttle, without_a_bandwidth_nothing_is_limited_or_created)
{
    ck_assert(!throttle_plan_init(&plan, &(struct throttle_conf){0}, &shared));
    ck_assert(throttle_plan_init(&plan, &(struct throttle_conf){.each_out = 5000}, &shared));
    call(make);
    ck_assert_ptr_null(throttle);
}

TEST(throttle, smallest_bandwidth_of_either_direction_is_a_limit)
{
    ck_assert(throttle_plan_init(&plan, &(struct throttle_conf){.each_in = 1}, &shared));
    ck_assert(throttle_plan_init(&plan, &(struct throttle_conf){.each_out = 1}, &shared));
}

TEST(throttle, initial_burst_is_a_tenth_of_a_second)
{
    begin(1000000, 0);
    call(take_all);
    ck_assert_uint_ge(asked, 100000);
    ck_assert_uint_le(asked, 100000 + 50000); /* and what came meanwhile, on a slow machine */
}

TEST(throttle, bytes_granted_but_not_read_are_given_back)
{
    begin(100000, 0);
    call(take_little); /* would be 5000000 bytes, were it not */
    call(take_all);
    ck_assert_uint_ge(asked, 5000);
}

/* A read of one byte, behind which there was nothing. */
static void take_one(void *arg)
{
    int64_t *full_at_ns = arg;

    ck_assert_uint_eq(throttle_allow(throttle, 1000000), 1000);
    full_at_ns[0] = shared.of[0].bucket.full_at_ns;
    throttle_took(throttle, 1, true);
    full_at_ns[1] = shared.of[0].bucket.full_at_ns;
}

TEST(throttle, session_that_read_all_leaves_the_rest_of_its_grant_to_others)
{
    int64_t full_at_ns[2];

    begin(0, 256000);
    loop_runner_call(loop, take_one, full_at_ns);
    ck_assert_int_ge(full_at_ns[0] - full_at_ns[1], 999 * NS_PER_S / 256000 - 1);
    loop_runner_call(loop, take_one, full_at_ns); /* and asks for a whole one again */
}

TEST(throttle, shared_limit_has_small_grants)
{
    begin(0, 256000);
    ck_assert_uint_eq(plan.limits[0].grant_bytes, 1000);
    throttle_plan_init(&plan, &(struct throttle_conf){.each_in = 20000, .all_in = 256000000},
                       &shared);
    ck_assert_uint_eq(plan.limits[0].grant_bytes, 1000);
    throttle_plan_init(&plan, &(struct throttle_conf){.each_in = UINT32_C(3) << 30}, &shared);
    ck_assert_uint_eq(plan.limits[0].grant_bytes, 65536);
    throttle_plan_init(&plan, &(struct throttle_conf){.all_in = 1024}, &shared);
    ck_assert_uint_eq(plan.limits[0].grant_bytes, 4);
}

TEST(throttle, session_that_ends_while_waiting_returns_its_reservation)
{
    int64_t full_at_ns;

    begin(0, 100000);
    call(take_all);
    full_at_ns = shared.of[0].bucket.full_at_ns;
    call(forget);
    ck_assert_int_lt(shared.of[0].bucket.full_at_ns, full_at_ns);
}

/* Time until ${bytes} have been granted to two connections of ${all} that take turns, in ns. */
static int64_t time_of(const struct throttle_limit *all, uint64_t bytes, int64_t now_ns)
{
    struct token_bucket b = {0};
    int64_t began_at_ns = now_ns;

    for (uint64_t granted = 0; granted < bytes; granted += all->grant_bytes)
        now_ns += token_bucket_reserve(&b, &all->all, all->grant_bytes, now_ns);
    return now_ns - began_at_ns;
}

TEST(throttle, a_rate_of_a_few_bytes_holds_and_starves_nobody)
{
    for (unsigned rate = 1; rate <= 1500; rate++) {
        const struct throttle_limit *all = &plan.limits[0];
        int64_t ns;

        ck_assert(throttle_plan_init(&plan, &(struct throttle_conf){.all_in = rate}, &shared));
        ck_assert_uint_gt(all->grant_bytes, 0);
        ck_assert_uint_le(all->grant_bytes, all->all.burst);
        ns = time_of(all, rate * UINT64_C(60), 1000 * NS_PER_S); /* far more than the burst */
        ck_assert_int_ge(ns, 58 * NS_PER_S);
        ck_assert_int_le(ns, 60 * NS_PER_S);
    }
}

/* ---- limits that change ---- */

static struct throttle_plan *change(unsigned each_in, unsigned all_in)
{
    static struct throttle_plan next;

    throttle_plan_init(&next, &(struct throttle_conf){.each_in = each_in, .all_in = all_in},
                       &shared);
    throttle_plan_begin(&next, &plan, clock_now_ns());
    return &next;
}

static void set(void *arg)
{
    throttle_set(throttle, arg);
}

TEST(throttle, session_waiting_for_a_low_limit_resumes_when_the_limit_is_raised)
{
    begin(1000, 1000);
    call(take_all);
    loop_runner_call(loop, set, change(100000000, 100000000));
    call(take_all);
    ck_assert_uint_ge(asked, 1000000);
}

TEST(throttle, removed_limit_lets_all_bytes_pass)
{
    begin(1000, 0);
    call(take_all);
    loop_runner_call(loop, set, NULL);
    for (int i = 0; i < 2; i++)
        call(take_little);
    loop_runner_call(loop, set, &plan); /* and with one again */
    call(take_all);
    ck_assert_uint_le(asked, 1000);
}

TEST(throttle, a_lowered_limit_does_not_begin_with_the_old_burst)
{
    begin(10000000, 0);
    loop_runner_call(loop, set, change(1000, 0));
    call(take_all);
    ck_assert_uint_le(asked, 200);
}
