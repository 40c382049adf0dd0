/* balance/balancer: where keys belong, and which of them move. */
#include <stdlib.h>
#include <string.h>

#include "balance/balancer_internal.h"
#include "base/clock.h"
#include "base/hash.h"
#include "support/endpoints.h"
#include "support/suite.h"

#define KEYS 100000

/* The keyed kinds, by the number of a loop test. */
static const enum balancer_kind kinds[] = {BALANCER_SOURCE_HASH, BALANCER_MAGLEV};

static struct endpoints es;
static struct balancer *b;
static int *before, *after; /* whose each key is */

static void setup(void)
{
    before = calloc(KEYS, sizeof(*before));
    after = calloc(KEYS, sizeof(*after));
}

static void teardown(void)
{
    free(before);
    free(after);
    balancer_destroy(b);
    endpoints_close(&es);
}

static void open_many(enum balancer_kind kind, unsigned n)
{
    endpoints_open(&es, n);
    b = endpoints_balancer(&es, kind);
}

/*
 * Asserted once and not for each key: check writes down every assertion, which takes longer than a
 * pick.
 */
static void look_up(int *owners)
{
    unsigned lost = 0;

    for (unsigned i = 0; i < KEYS; i++) {
        owners[i] = endpoints_touch(&es, b, hash_mix(i));
        lost += owners[i] < 0;
    }
    ck_assert_uint_eq(lost, 0);
}

static unsigned count_moved(void)
{
    unsigned moved = 0;

    for (unsigned i = 0; i < KEYS; i++)
        moved += before[i] != after[i];
    return moved;
}

static void remake(enum balancer_kind kind)
{
    balancer_destroy(b);
    b = endpoints_balancer(&es, kind);
}

GROUP(keys, setup, teardown);

TEST_EACH(keys, key_is_always_mapped_to_the_same_endpoint, 2)
{
    open_many(kinds[_i], 10);
    look_up(before);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
}

TEST_EACH(keys, keys_are_mapped_to_the_same_endpoints_after_a_restart, 2)
{
    open_many(kinds[_i], 10);
    look_up(before);
    remake(kinds[_i]);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
}

TEST_EACH(keys, order_of_the_configuration_does_not_change_the_mapping, 2)
{
    endpoints_open(&es, 10);
    for (unsigned i = 0; i < es.n; i++)
        es.all[i].weight = 1 + i % 3;
    b = endpoints_balancer(&es, kinds[_i]);
    look_up(before);
    for (unsigned i = 0; i < es.n; i++)
        es.list[i] = &es.all[(7 * i + 3) % es.n];
    remake(kinds[_i]);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
}

TEST_EACH(keys, endpoints_known_by_address_have_the_same_keys_under_other_names, 2)
{
    endpoints_open(&es, 10);
    es.conf.by_address = true;
    for (unsigned i = 0; i < es.n; i++)
        es.all[i].address_hash = hash_mix(i);
    b = endpoints_balancer(&es, kinds[_i]);
    look_up(before);
    for (unsigned i = 0; i < es.n; i++)
        es.all[i].hash = hash_mix(1000 + i);
    remake(kinds[_i]);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
    es.conf.by_address = false;
    remake(kinds[_i]);
    look_up(after);
    ck_assert_uint_gt(count_moved(), KEYS / 2);
}

/* A warming endpoint takes a part of its keys: which, all processes agree on. */
TEST_EACH(keys, keys_of_a_warming_endpoint_known_by_address_do_not_depend_on_its_name, 2)
{
    endpoints_open(&es, 4);
    es.conf.by_address = true;
    es.conf.slow_start_ns = INT64_MAX / 2;
    for (unsigned i = 0; i < es.n; i++)
        es.all[i].address_hash = hash_mix(i);
    es.all[0].warming_since_ns = clock_now_ns() - es.conf.slow_start_ns / 2;
    endpoint_set_flag(&es.all[0], ENDPOINT_WARMING);
    b = endpoints_balancer(&es, kinds[_i]);
    look_up(before);
    es.all[0].hash = hash_mix(1000);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
}

/* Two processes that agree on the names agree on every key: this value must never change. */
TEST_EACH(keys, mapping_of_keys_is_the_same_in_every_version, 2)
{
    uint64_t digest = 0;

    open_many(kinds[_i], 10);
    look_up(before);
    for (unsigned i = 0; i < KEYS; i++)
        digest = hash_mix(digest ^ (uint64_t)before[i]);
    ck_assert_uint_eq(digest,
                      _i == 0 ? UINT64_C(0xa8456e588a139fe4) : UINT64_C(0x1549e287eca71837));
}

#define SLOTS (1u << 19) /* as BALANCER_SLOTS */

/* Change the owner in the table: the next pick goes there. */
TEST(keys, the_owner_of_a_slot_is_computed_once)
{
    unsigned n_known = 0;
    int owner;

    open_many(BALANCER_MAGLEV, 100);
    owner = endpoints_touch(&es, b, 7);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (b->pools[0].owners[slot] > 0) {
            ck_assert_uint_eq(b->pools[0].owners[slot], (unsigned)owner + 1);
            b->pools[0].owners[slot] = (uint16_t)((owner + 1) % 100 + 1);
            n_known++;
        }
    ck_assert_uint_eq(n_known, 1);
    ck_assert_int_eq(endpoints_touch(&es, b, 7), (owner + 1) % 100);
}

/* ---- one of N goes ---- */

static const unsigned sizes[] = {3, 10, 100};

#define GONE 2

/* Of those that were at [gone, gone + n). */
static unsigned count_moved_from(unsigned gone, unsigned n)
{
    unsigned moved = 0;

    for (unsigned i = 0; i < KEYS; i++)
        moved += before[i] != after[i] && (unsigned)before[i] - gone < n;
    return moved;
}

/* 1.2 / N of all keys at most, and none that was elsewhere. */
static void expect_only_its_keys_moved(void)
{
    ck_assert_uint_eq(count_moved(), count_moved_from(GONE, 1));
    ck_assert_uint_le(count_moved(), KEYS * 12 / 10 / es.n);
}

TEST_EACH(keys, endpoint_set_to_weight_0_loses_its_keys_and_no_other_key_moves,
          2 * ARRAY_LEN(sizes))
{
    open_many(kinds[_i % 2], sizes[_i / 2]);
    look_up(before);
    es.all[GONE].weight = 0;
    remake(kinds[_i % 2]);
    look_up(after);
    expect_only_its_keys_moved();
    for (unsigned i = 0; i < KEYS; i++)
        if (after[i] == GONE)
            ck_abort_msg("key %u belongs to it", i);
    es.all[GONE].weight = 1;
    remake(kinds[_i % 2]);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
}

TEST_EACH(keys, only_keys_of_an_unfit_endpoint_move_and_they_return, 6)
{
    open_many(kinds[_i % 2], sizes[_i / 2]);
    look_up(before);
    endpoint_set_flag(&es.all[GONE], ENDPOINT_EJECTED);
    look_up(after);
    expect_only_its_keys_moved();
    endpoint_clear_flag(&es.all[GONE], ENDPOINT_EJECTED);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
}

TEST_EACH(keys, keys_of_an_unfit_endpoint_spread_over_all_others, 2)
{
    unsigned got[10] = {0}, moved;

    open_many(kinds[_i], 10);
    look_up(before);
    endpoint_set_flag(&es.all[GONE], ENDPOINT_DOWN);
    look_up(after);
    moved = count_moved();
    for (unsigned i = 0; i < KEYS; i++)
        if (before[i] != after[i])
            got[after[i]]++;
    for (unsigned i = 0; i < 10; i++)
        if (i != GONE) {
            ck_assert_uint_gt(got[i], moved / 9 / 2);
            ck_assert_uint_lt(got[i], moved / 9 * 2);
        }
}

/* As a name with one address less does it: a balancer without it. */
TEST_EACH(keys, only_keys_of_a_removed_endpoint_move, 6)
{
    open_many(kinds[_i % 2], sizes[_i / 2]);
    look_up(before);
    es.list[GONE] = es.list[--es.n];
    remake(kinds[_i % 2]);
    look_up(after);
    es.n++;
    expect_only_its_keys_moved();
}

/* Half of a hundred, one after the other: each key moves only when the one it is at goes. */
TEST_EACH(keys, only_keys_of_endpoints_that_become_unfit_move, 2)
{
    open_many(kinds[_i], 100);
    look_up(before);
    for (unsigned gone = 0; gone < 50; gone += 5) {
        for (unsigned i = 0; i < 5; i++)
            endpoint_set_flag(&es.all[gone + i], ENDPOINT_DOWN);
        look_up(after);
        ck_assert_uint_eq(count_moved(), count_moved_from(gone, 5));
        memcpy(before, after, KEYS * sizeof(*before));
    }
}

TEST_EACH(keys, key_mapped_to_a_warming_endpoint_stays_mapped, 2)
{
    unsigned at[3] = {0};

    endpoints_open(&es, 4);
    es.conf.slow_start_ns = INT64_C(1000000000000);
    b = endpoints_balancer(&es, kinds[_i]);
    endpoint_set_flag(&es.all[GONE], ENDPOINT_WARMING);
    for (int stage = 0; stage < 3; stage++) {
        es.all[GONE].warming_since_ns = clock_now_ns() - stage * es.conf.slow_start_ns / 3;
        look_up(after);
        for (unsigned i = 0; i < KEYS; i++)
            at[stage] += after[i] == GONE;
        if (stage > 0)
            ck_assert_uint_eq(count_moved_from(GONE, 1), 0);
        memcpy(before, after, KEYS * sizeof(*before));
    }
    ck_assert_uint_gt(at[1], 2 * at[0]);
    ck_assert_uint_gt(at[2], at[1] * 3 / 2);
}

/* ---- bounded load ---- */

/* A bound below so many sessions is none. */
#define LEAST_BOUND 8

/* Of so many percent of its share. */
static void expect_bounded(unsigned percent, unsigned sessions)
{
    unsigned total = 0;

    for (unsigned i = 0; i < es.n; i++)
        total += es.all[i].weight;
    for (unsigned i = 0; i < es.n; i++) {
        unsigned most = percent * sessions * es.all[i].weight / (100 * total) + 1;

        ck_assert_uint_le(endpoint_active(&es.all[i]), most > LEAST_BOUND ? most : LEAST_BOUND);
    }
}

GROUP(bounded_load, setup, teardown);

TEST_EACH(bounded_load, no_endpoint_exceeds_the_bounded_load, 2)
{
    endpoints_open(&es, 10);
    for (unsigned i = 0; i < es.n; i++)
        es.all[i].weight = 1 + i % 4;
    es.conf.hash_balance_factor = 125;
    b = endpoints_balancer(&es, kinds[_i]);
    for (unsigned i = 1; i <= 5000;
         i++) { /* a few keys only, so that most would be at a few endpoints */
        ck_assert_int_ge(endpoints_pick(&es, b, hash_mix(i % 7)), 0);
        expect_bounded(125, i);
    }
}

TEST_EACH(bounded_load, load_of_an_unfit_endpoint_raises_the_bound_of_the_others, 2)
{
    open_many(kinds[_i], 4);
    es.conf.hash_balance_factor = 100;
    remake(kinds[_i]);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 300; i++)
        ck_assert_int_ge(endpoints_pick(&es, b, 1), 0);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_uint_eq(endpoint_active(&es.all[i]), 100);
}

TEST_EACH(bounded_load, below_the_bound_a_key_stays_at_its_endpoint, 2)
{
    int owner;

    open_many(kinds[_i], 10);
    look_up(before);
    es.conf.hash_balance_factor = 150;
    remake(kinds[_i]);
    for (unsigned i = 0; i < es.n; i++)
        for (int j = 0; j < 100; j++)
            ck_assert_int_eq(endpoint_enter(&es.all[i]), 0);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
    owner = before[0];
    for (int j = 0; j < 60; j++)
        ck_assert_int_eq(endpoint_enter(&es.all[owner]), 0);
    ck_assert_int_ne(endpoints_touch(&es, b, hash_mix(0)), owner);
}

/*
 * A second visit to a group that is all but idle: the few sessions of others are no reason to move.
 */
TEST_EACH(bounded_load, few_sessions_do_not_reach_the_bound, 2)
{
    open_many(kinds[_i], 8);
    es.conf.hash_balance_factor = 125;
    remake(kinds[_i]);
    look_up(before);
    for (unsigned i = 0; i < es.n; i += 2)
        for (int j = 0; j < LEAST_BOUND - 1; j++)
            ck_assert_int_eq(endpoint_enter(&es.all[i]), 0);
    look_up(after);
    ck_assert_uint_eq(count_moved(), 0);
}

TEST_EACH(bounded_load, without_a_factor_a_key_stays_at_its_endpoint_under_any_load, 2)
{
    int owner;

    open_many(kinds[_i], 10);
    owner = endpoints_touch(&es, b, 1);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(endpoints_pick(&es, b, 1), owner);
}
