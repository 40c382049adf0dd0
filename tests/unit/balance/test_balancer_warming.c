/* balance/balancer: slow start of an endpoint. */
#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "support/endpoints.h"
#include "support/picks.h"
#include "support/suite.h"

/* ---- warming up ---- */

#define SLOW_START_NS (1000 * NS_PER_S)

static void warm_up(unsigned i, int64_t for_ns)
{
    picks.es.all[i].warming_since_ns = clock_now_ns() - for_ns;
    endpoint_set_flag(&picks.es.all[i], ENDPOINT_WARMING);
}

static void open_warming(enum balancer_kind kind, unsigned n, int64_t for_ns)
{
    endpoints_open(&picks.es, n);
    picks.es.conf.slow_start_ns = SLOW_START_NS;
    picks.b = endpoints_balancer(&picks.es, kind);
    warm_up(0, for_ns);
}

/* Of those kinds that share evenly: in percent of the share of another one. */
static const struct {
    int64_t for_ns;
    unsigned percent;
} stages[] = {{0, 10}, {SLOW_START_NS / 2, 55}, {SLOW_START_NS * 9 / 10, 91}};

GROUP(warming_up, NULL, picks_teardown);

TEST_EACH(warming_up, warming_endpoint_gets_a_growing_part_of_its_share, ARRAY_LEN(stages))
{
    unsigned picked[2] = {0}, percent;

    open_warming(BALANCER_ROUND_ROBIN, 2, stages[_i].for_ns);
    picks_count(picked, 40000);
    percent = picked[0] * 100 / picked[1];
    ck_assert_uint_ge(percent, stages[_i].percent - 4);
    ck_assert_uint_le(percent, stages[_i].percent + 4);
    ck_assert_uint_eq(endpoint_load(&picks.es.all[0]), ENDPOINT_WARMING);
}

TEST_EACH(warming_up, warming_endpoint_gets_a_small_share_in_every_method, KINDS)
{
    unsigned picked[10] = {0};

    open_warming(_i, 10, 0);
    picks_count(picked, 20000);
    ck_assert_uint_lt(picked[0], _i == BALANCER_FIRST ? 20000 * 2 / 10 : 20000 * 2 / 10 / 10);
    ck_assert_uint_gt(picked[0], 0);
}

#define LASTING 4000

/* Of twenty, while sessions last; by chance the standard deviation is 4.5 of 20 and 10 of 110. */
static const struct {
    int64_t for_ns;
    unsigned least, most;
} parts[] = {{0, 5, 42}, {SLOW_START_NS / 2, 60, 165}};

TEST_EACH(warming_up, warming_endpoint_holds_its_part_of_the_sessions_in_every_method,
          (int)ARRAY_LEN(parts) * BALANCER_FIRST)
{
    unsigned part = (unsigned)_i / BALANCER_FIRST, active;

    open_warming(_i % BALANCER_FIRST, 20, parts[part].for_ns);
    for (unsigned i = 0; i < LASTING; i++)
        ck_assert_int_ge(endpoints_pick(&picks.es, picks.b, hash_mix(i)), 0);
    active = endpoint_active(&picks.es.all[0]);
    ck_assert_uint_ge(active, parts[part].least);
    ck_assert_uint_le(active, parts[part].most);
}

/* A tenth of what the others have, and no session by chance. */
TEST(warming_up, least_connections_skips_a_warming_endpoint_above_its_part)
{
    open_warming(BALANCER_LEAST_CONNECTIONS, 20, 0);
    for (unsigned i = 0; i < 400; i++)
        ck_assert_int_ge(endpoints_pick(&picks.es, picks.b, 0), 0);
    ck_assert_uint_ge(endpoint_active(&picks.es.all[0]), 1);
    ck_assert_uint_le(endpoint_active(&picks.es.all[0]), 3);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(endpoint_enter(&picks.es.all[0]), 0);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_ne(endpoints_touch(&picks.es, picks.b, 0), 0);
}

TEST_EACH(warming_up, warming_ends_after_the_slow_start_time, KINDS)
{
    unsigned picked[2] = {0};

    open_warming(_i, 2, SLOW_START_NS + 1);
    picks_count(picked, 1000);
    ck_assert_uint_eq(endpoint_load(&picks.es.all[0]), 0);
    ck_assert_uint_ge(picked[0], 300);
}

TEST_EACH(warming_up, without_a_slow_start_no_endpoint_warms_up, KINDS)
{
    unsigned picked[2] = {0};

    endpoints_open(&picks.es, 2);
    picks.b = endpoints_balancer(&picks.es, _i);
    warm_up(0, 0);
    picks_count(picked, 1000);
    ck_assert_uint_eq(endpoint_load(&picks.es.all[0]), 0);
}

TEST_EACH(warming_up, warming_endpoints_are_used_when_no_others_are_left, KINDS)
{
    open_warming(_i, 3, 0);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[2], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, i), 0);
}

TEST_EACH(warming_up, warming_endpoint_is_used_when_the_others_are_full_or_tried, KINDS)
{
    struct balancer_pick_state pick;

    open_warming(_i, 3, 0);
    balancer_destroy(picks.b);
    picks.es.all[1].max_connections = 1;
    picks.b = endpoints_balancer(&picks.es, _i);
    ck_assert_int_eq(endpoint_enter(&picks.es.all[1]), 0);
    for (unsigned key = 0; key < 50; key++) {
        balancer_begin(&pick, key);
        ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick) +
                             endpoints_next(&picks.es, picks.b, &pick),
                         0 + 2);
        ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -EBUSY);
    }
}

TEST_EACH(warming_up, warming_endpoints_only_share_equally, BALANCER_FIRST)
{
    unsigned picked[3] = {0};

    open_warming(_i, 3, 0);
    warm_up(1, SLOW_START_NS / 2);
    warm_up(2, SLOW_START_NS * 9 / 10);
    picks_count(picked, 6000);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_ge(picked[i], 1500);
}
