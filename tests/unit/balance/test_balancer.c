/*
 * balance/balancer: what all kinds promise: fit ones only, each once, none over its limit, backups
 * last.
 */
#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/hash.h"
#include "support/endpoints.h"
#include "support/sanitized.h"
#include "support/suite.h"

#define KINDS (BALANCER_FIRST + 1)

static struct endpoints es;
static struct balancer *b;

static void teardown(void)
{
    balancer_destroy(b);
    endpoints_close(&es);
}

static void open_many(enum balancer_kind kind, unsigned n)
{
    endpoints_open(&es, n);
    b = endpoints_balancer(&es, kind);
}

/* How often each of ${picked} is picked by so many sessions that end at once. */
static void count(unsigned *picked, unsigned sessions)
{
    for (unsigned i = 0; i < sessions; i++) {
        int at = endpoints_touch(&es, b, hash_mix(i));

        ck_assert_int_ge(at, 0);
        picked[at]++;
    }
}

/* ---- what can be balanced ---- */

GROUP(picking, NULL, teardown);

TEST_EACH(picking, pick_without_endpoints_finds_none, KINDS)
{
    open_many(_i, 0);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -ENOENT);
    ck_assert(!balancer_panics(b));
}

TEST_EACH(picking, single_endpoint_is_the_only_choice, KINDS)
{
    struct balancer_pick_state pick;

    open_many(_i, 1);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(endpoints_touch(&es, b, i), 0);
    balancer_begin(&pick, 7);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
}

/* As the next configuration has them, while this one is still in use. */
TEST_EACH(picking, configured_shares_override_weights_and_limits_of_endpoints, KINDS)
{
    static const struct balancer_share shares[] = {
        {.weight = 0}, {.weight = 3, .level = 1}, {.weight = 2, .max_connections = 1}};

    endpoints_open(&es, 3);
    es.conf.shares = shares;
    b = endpoints_balancer(&es, _i);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), 2);
    ck_assert_int_eq(endpoints_pick(&es, b, 2), -EBUSY);
    endpoint_set_flag(&es.all[2], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(endpoints_pick(&es, b, i), 1);
    es.all[2].max_connections = 1;
    endpoints_leave_all(&es);
}

TEST_EACH(picking, weights_and_numbers_beyond_the_maximum_are_refused, KINDS)
{
    endpoints_open(&es, 2);
    es.conf = (struct balancer_conf){.kind = _i, .endpoints = es.list, .n_endpoints = 2};
    es.all[1].weight = BALANCER_MAX_WEIGHT + 1;
    ck_assert_int_eq(balancer_create(&b, &es.conf), -EINVAL);
    es.all[1].weight = BALANCER_MAX_WEIGHT;
    es.conf.n_endpoints = BALANCER_MAX_ENDPOINTS + 1;
    ck_assert_int_eq(balancer_create(&b, &es.conf), -EINVAL);
    ck_assert_ptr_null(b);
}

static const unsigned some_zero[] = {0, 1, 0, 3, 0};

static void open_some_zero(enum balancer_kind kind)
{
    endpoints_open(&es, 5);
    endpoints_weights(&es, some_zero);
    es.conf.panic_threshold = 60;
    b = endpoints_balancer(&es, kind);
}

GROUP(weight_0, NULL, teardown);

TEST_EACH(weight_0, an_endpoint_of_weight_0_is_never_picked, KINDS)
{
    struct balancer_pick_state pick;

    open_some_zero(_i);
    for (unsigned key = 0; key < 200; key++) {
        balancer_begin(&pick, key);
        for (unsigned i = 0; i < 2; i++) {
            int at = endpoints_next(&es, b, &pick);

            ck_assert(at == 1 || at == 3);
        }
        ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
    }
}

TEST_EACH(weight_0, endpoint_of_weight_0_is_not_picked_in_panic_or_when_others_are_ejected_or_full,
          KINDS)
{
    open_some_zero(_i);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert(balancer_panics(b)); /* one of two is fewer than 60 % */
    for (unsigned key = 0; key < 200; key++) {
        int at = endpoints_touch(&es, b, key);

        ck_assert(at == 1 || at == 3);
    }
    endpoint_set_flag(&es.all[3], ENDPOINT_ABSENT);
    endpoint_set_flag(&es.all[1], ENDPOINT_ABSENT);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -ENOENT);
    endpoint_clear_flag(&es.all[1], ENDPOINT_ABSENT);
    endpoint_clear_flag(&es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[1], ENDPOINT_EJECTED);
    for (unsigned key = 0; key < 200; key++)
        ck_assert_int_eq(endpoints_touch(&es, b, key), 1);
}

TEST_EACH(weight_0, endpoints_of_weight_0_do_not_count_for_panic, KINDS)
{
    open_some_zero(_i);
    ck_assert(!balancer_panics(b)); /* two of two are fit, not two of five */
    for (unsigned i = 0; i < 5; i++)
        if (some_zero[i] == 0)
            endpoint_set_flag(&es.all[i], ENDPOINT_DOWN);
    ck_assert(!balancer_panics(b));
}

TEST_EACH(weight_0, endpoints_of_weight_0_only_are_no_choice, KINDS)
{
    static const unsigned weights[] = {0, 0};

    endpoints_open(&es, 2);
    endpoints_weights(&es, weights);
    b = endpoints_balancer(&es, _i);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -ENOENT);
    ck_assert(!balancer_panics(b));
}

TEST_EACH(weight_0, a_backup_is_used_at_once_when_all_others_have_weight_0, KINDS)
{
    static const unsigned weights[] = {0, 1};

    endpoints_open(&es, 2);
    endpoints_weights(&es, weights);
    es.all[1].level = BALANCER_LEVELS - 1;
    es.conf.panic_threshold = 100;
    b = endpoints_balancer(&es, _i);
    ck_assert(!balancer_panics(b));
    for (unsigned key = 0; key < 20; key++)
        ck_assert_int_eq(endpoints_touch(&es, b, key), 1);
}

static const unsigned sizes[] = {1000, IF_SANITIZED(8192, BALANCER_MAX_ENDPOINTS)};

static void pick_from_many(enum balancer_kind kind, unsigned n)
{
    unsigned last = n - 1;

    endpoints_open(&es, n);
    for (unsigned i = 0; i < n; i++)
        es.all[i].weight = 1 + i % 3;
    b = endpoints_balancer(&es, kind);
    for (unsigned i = 0; i < 2000; i++)
        ck_assert_int_ge(endpoints_touch(&es, b, i), 0);
    for (unsigned i = 0; i < last; i++)
        endpoint_set_flag(&es.all[i], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(endpoints_touch(&es, b, i), (int)last);
    endpoint_set_flag(&es.all[last], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&es, b, 1), -ENOENT);
}

GROUP_WITHIN(largest, NULL, teardown, 5 * SUITE_CASE_SECONDS);

TEST_EACH(largest, each_of_very_many_endpoints_can_be_picked, 2 * KINDS)
{
    pick_from_many(_i % KINDS, sizes[_i / KINDS]);
}

/* Of the kinds whose tables grow with the weights. */
TEST_EACH(largest, the_largest_tables_can_be_built, 2)
{
    endpoints_open(&es, BALANCER_MAX_ENDPOINTS);
    for (unsigned i = 0; i < es.n; i++)
        es.all[i].weight = i % 256 < 2 ? 1 + i % 256 : 256;
    b = endpoints_balancer(&es, _i == 0 ? BALANCER_ROUND_ROBIN : BALANCER_SOURCE_HASH);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_ge(endpoints_touch(&es, b, i), 0);
}

/* ---- one session's way ---- */

TEST_EACH(picking, session_tries_each_endpoint_once, KINDS)
{
    struct balancer_pick_state pick;

    open_many(_i % KINDS, 10);
    for (unsigned key = 0; key < 50; key++) {
        bool tried[10] = {false};

        balancer_begin(&pick, key);
        for (int i = 0; i < 10; i++) {
            int at = endpoints_next(&es, b, &pick);

            ck_assert_int_ge(at, 0);
            ck_assert(!tried[at]);
            tried[at] = true;
            endpoint_leave(&es.all[at]);
        }
        ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
        ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
    }
}

TEST_EACH(picking, session_tries_at_most_sixteen_endpoints, KINDS)
{
    struct balancer_pick_state pick;

    open_many(_i, 40);
    balancer_begin(&pick, 3);
    for (int i = 0; i < BALANCER_TRIES; i++)
        ck_assert_int_ge(endpoints_next(&es, b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
    ck_assert_uint_eq(es.group.load, BALANCER_TRIES);
}

/* ---- marks ---- */

GROUP(marks, NULL, teardown);

TEST_EACH(marks, unfit_endpoint_is_never_picked, KINDS)
{
    unsigned picked[5] = {0};

    open_many(_i, 5);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[2], ENDPOINT_EJECTED);
    endpoint_set_flag(&es.all[4], ENDPOINT_ABSENT);
    count(picked, 10000);
    ck_assert_uint_eq(picked[0] + picked[2] + picked[4], 0);
    ck_assert_uint_gt(picked[1], 0);
}

TEST_EACH(marks, pick_fails_until_an_endpoint_becomes_fit, KINDS)
{
    open_many(_i, 3);
    for (unsigned i = 0; i < 3; i++)
        endpoint_set_flag(&es.all[i], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -ENOENT);
    endpoint_clear_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), 1);
}

/* ---- room ---- */

TEST_EACH(picking, full_endpoints_are_skipped_and_ebusy_is_returned_when_all_are_full, KINDS)
{
    endpoints_open(&es, 3);
    for (unsigned i = 0; i < 3; i++)
        es.all[i].max_connections = 2;
    b = endpoints_balancer(&es, _i);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_ge(endpoints_pick(&es, b, 9), 0);
    ck_assert_int_eq(endpoints_pick(&es, b, 9), -EBUSY);
    ck_assert_uint_eq(es.group.load, 6);
    endpoint_leave(&es.all[2]);
    ck_assert_int_eq(endpoints_pick(&es, b, 9), 2);
}

TEST_EACH(picking, ebusy_is_returned_only_for_fit_endpoints_not_tried_yet, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&es, 2);
    es.all[0].max_connections = 1;
    es.all[1].max_connections = 1;
    b = endpoints_balancer(&es, _i);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    balancer_begin(&pick, 5);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT); /* it was tried */
    ck_assert_int_eq(endpoints_pick(&es, b, 5), -EBUSY);      /* another session has not tried it */
    endpoint_clear_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoint_enter(&es.all[1]), 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -EBUSY);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&es, b, 5), -ENOENT);
}

#define THREADS 4
#define ROUNDS  IF_SANITIZED(100, 300)
#define HELD    12 /* times four is more than there is room for */
#define ROOM    7

static atomic_uint over, refused;

static void *hold_and_leave(void *arg)
{
    uint64_t key = (uint64_t)(uintptr_t)arg;

    for (int round = 0; round < ROUNDS; round++) {
        int held[HELD];

        for (int i = 0; i < HELD; i++) {
            held[i] = endpoints_pick(&es, b, hash_mix(key++));
            refused += held[i] == -EBUSY;
            over += held[i] < 0 && held[i] != -EBUSY;
            over += held[i] >= 0 && endpoint_active(&es.all[held[i]]) > ROOM;
        }
        for (int i = 0; i < HELD; i++)
            if (held[i] >= 0)
                endpoint_leave(&es.all[held[i]]);
    }
    return NULL;
}

TEST_EACH(picking, four_threads_never_exceed_a_limit, KINDS)
{
    pthread_t threads[THREADS];

    endpoints_open(&es, 5);
    for (unsigned i = 0; i < 5; i++)
        es.all[i].max_connections = ROOM;
    b = endpoints_balancer(&es, _i);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hold_and_leave, (void *)(i << 32));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(over, 0);
    ck_assert_uint_eq(es.group.load, 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(endpoint_load(&es.all[i]), 0);
}

static atomic_bool done;

static void *mark_and_unmark(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 3000; i++) {
        endpoint_set_flag(&es.all[i % 4], ENDPOINT_DOWN);
        endpoint_clear_flag(&es.all[(i + 1) % 4], ENDPOINT_DOWN);
    }
    done = true;
    return NULL;
}

static void *pick_until_done(void *arg)
{
    (void)arg;
    for (uint64_t key = 0; !done; key++)
        over += endpoints_touch(&es, b, hash_mix(key)) < 0; /* the fifth is always fit */
    return NULL;
}

TEST_EACH(marks, fit_endpoints_are_found_while_flags_change, KINDS)
{
    pthread_t threads[3];

    open_many(_i, 5);
    pthread_create(&threads[0], NULL, pick_until_done, NULL);
    pthread_create(&threads[1], NULL, pick_until_done, NULL);
    pthread_create(&threads[2], NULL, mark_and_unmark, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(over, 0);
    ck_assert_uint_eq(es.group.load, 0);
}

/* ---- panic ---- */

static void open_with_panic(enum balancer_kind kind, unsigned n, unsigned threshold)
{
    endpoints_open(&es, n);
    es.conf.panic_threshold = threshold;
    b = endpoints_balancer(&es, kind);
}

/*
 * Does a session get to each of those that are not ABSENT, and to no other, before there is none?
 */
static void expect_walk(unsigned n)
{
    struct balancer_pick_state pick;

    balancer_begin(&pick, 1);
    for (unsigned i = 0; i < n; i++) {
        int at = endpoints_next(&es, b, &pick);

        ck_assert_int_ge(at, 0);
        ck_assert(!(endpoint_load(&es.all[at]) & ENDPOINT_ABSENT));
        endpoint_leave(&es.all[at]);
    }
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
}

TEST_EACH(marks, with_too_few_fit_endpoints_flags_are_ignored, KINDS)
{
    open_with_panic(_i, 10, 50);
    for (unsigned i = 0; i < 5; i++)
        endpoint_set_flag(&es.all[i], i % 2 ? ENDPOINT_DOWN : ENDPOINT_DOWN | ENDPOINT_EJECTED);
    ck_assert(!balancer_panics(b)); /* half is enough */
    expect_walk(5);
    endpoint_set_flag(&es.all[5], ENDPOINT_DOWN);
    ck_assert(balancer_panics(b));
    expect_walk(10);
    endpoint_clear_flag(&es.all[0], ENDPOINT_DOWN | ENDPOINT_EJECTED);
    ck_assert(!balancer_panics(b));
    expect_walk(5);
}

TEST_EACH(marks, absent_endpoint_is_not_picked_in_panic, KINDS)
{
    open_with_panic(_i, 4, 100);
    endpoint_set_flag(&es.all[0], ENDPOINT_ABSENT);
    ck_assert(!balancer_panics(b)); /* it is no longer one of them */
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert(balancer_panics(b));
    expect_walk(3);
    for (unsigned i = 1; i < 4; i++)
        endpoint_set_flag(&es.all[i], ENDPOINT_ABSENT);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -ENOENT);
}

TEST_EACH(marks, a_threshold_of_zero_never_panics, KINDS)
{
    open_with_panic(_i, 2, 0);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert(!balancer_panics(b));
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -ENOENT);
}

/* ---- backups ---- */

/* a and c; b and d are backups. */
static void open_with_backups(enum balancer_kind kind, unsigned threshold)
{
    endpoints_open(&es, 4);
    es.all[1].level = 7;
    es.all[3].level = 7;
    es.all[1].weight = 200;
    es.conf.panic_threshold = threshold;
    b = endpoints_balancer(&es, kind);
}

TEST_EACH(marks, backups_are_picked_only_when_no_other_endpoint_is_fit, KINDS)
{
    unsigned picked[4] = {0};

    open_with_backups(_i, 0);
    count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 0);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 0);
    endpoint_set_flag(&es.all[2], ENDPOINT_DOWN);
    count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 1000);
    endpoint_clear_flag(&es.all[0], ENDPOINT_DOWN);
    count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 1000);
}

TEST_EACH(marks, session_that_tries_all_endpoints_tries_backups_last, KINDS)
{
    struct balancer_pick_state pick;

    open_with_backups(_i, 0);
    balancer_begin(&pick, 4);
    for (int i = 0; i < 4; i++) {
        int at = endpoints_next(&es, b, &pick);

        ck_assert_int_ge(at, 0);
        ck_assert_int_eq(at % 2, i / 2);
    }
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
}

TEST_EACH(marks, busy_endpoints_do_not_spill_to_backups, KINDS)
{
    open_with_backups(_i, 0);
    balancer_destroy(b);
    es.all[0].max_connections = 1;
    es.all[2].max_connections = 1;
    b = endpoints_balancer(&es, _i);
    ck_assert_int_ge(endpoints_pick(&es, b, 1), 0);
    ck_assert_int_ge(endpoints_pick(&es, b, 1), 0);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -EBUSY);
}

/* The primary servers come first; when all are full, the pick fails with -EBUSY. */
TEST_EACH(marks, full_endpoints_spill_to_backups_if_configured, KINDS)
{
    struct balancer_pick_state pick;

    open_with_backups(_i, 0);
    balancer_destroy(b);
    es.conf.spills = true;
    for (unsigned i = 0; i < 4; i++)
        es.all[i].max_connections = 1;
    b = endpoints_balancer(&es, _i);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(endpoints_pick(&es, b, 1) % 2, i / 2);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -EBUSY);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[3], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -EBUSY); /* it waits for a and c */
    endpoint_leave(&es.all[2]);
    balancer_begin(&pick, 1);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), 2);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -EBUSY); /* a is untried */
}

TEST_EACH(marks, backups_in_use_are_no_panic, KINDS)
{
    open_with_backups(_i, 50);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[2], ENDPOINT_DOWN);
    ck_assert(!balancer_panics(b));
    ck_assert_int_eq(endpoints_touch(&es, b, 1) % 2, 1);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[3], ENDPOINT_DOWN);
    ck_assert(balancer_panics(b));
    ck_assert_int_eq(endpoints_touch(&es, b, 1) % 2, 0);
}

/* Four, of which one is fit, and four backups; ${ups} of those are fit. */
static void open_one_of_four(enum balancer_kind kind, unsigned ups)
{
    endpoints_open(&es, 8);
    for (unsigned i = 4; i < 8; i++)
        es.all[i].level = i < 6 ? 3 : 7;
    es.conf.panic_threshold = 50;
    b = endpoints_balancer(&es, kind);
    for (unsigned i = 1; i < 8; i++)
        if (i < 4 || i >= 4 + ups)
            endpoint_set_flag(&es.all[i], ENDPOINT_DOWN);
}

TEST_EACH(marks, fit_backups_share_the_sessions_before_there_is_panic, KINDS)
{
    unsigned picked[8] = {0};

    open_one_of_four(_i, 4);
    ck_assert(!balancer_panics(b));
    count(picked, 3000);
    ck_assert_uint_eq(picked[1] + picked[2] + picked[3], 0);
    ck_assert_uint_eq(picked[6] + picked[7], 0); /* with the two of level 3 there are enough */
    ck_assert_uint_ge(picked[0], 800);
    ck_assert_uint_le(picked[0], 1200);
    ck_assert_uint_eq(picked[0] + picked[4] + picked[5], 3000);
    if (_i != BALANCER_FIRST)
        ck_assert_uint_ge(picked[5], 300); /* a ring may be uneven */
    endpoint_clear_flag(&es.all[1], ENDPOINT_DOWN);
    count(picked, 1);
    ck_assert_uint_eq(picked[0] + picked[1] + picked[4] + picked[5], 3001);
    picked[4] = picked[5] = 0;
    count(picked, 1000);
    ck_assert_uint_eq(picked[4] + picked[5], 0); /* half of the four is enough */
}

TEST_EACH(marks, session_tries_the_sharing_endpoints_before_the_others, KINDS)
{
    struct balancer_pick_state pick;

    open_one_of_four(_i, 4);
    balancer_begin(&pick, 9);
    for (unsigned i = 0; i < 5; i++) {
        int at = endpoints_next(&es, b, &pick);

        ck_assert(at == 0 || at >= 4);
        ck_assert(i < 3 ? at < 6 : at >= 6);
        endpoint_leave(&es.all[at]);
    }
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
}

TEST_EACH(marks, with_too_few_backups_there_is_panic, KINDS)
{
    unsigned picked[8] = {0};

    open_one_of_four(_i, 0);
    ck_assert(balancer_panics(b));
    count(picked, 1000);
    ck_assert_uint_eq(picked[0] + picked[1] + picked[2] + picked[3], 1000);
    endpoint_clear_flag(&es.all[7], ENDPOINT_DOWN); /* two of four, as configured */
    ck_assert(!balancer_panics(b));
    count(picked, 1000);
    ck_assert_uint_ge(picked[7], 400);
}

TEST_EACH(marks, full_endpoints_of_the_level_in_use_do_not_spill, KINDS)
{
    endpoints_open(&es, 4);
    es.all[2].level = 3;
    es.all[3].level = 7;
    es.all[0].max_connections = es.all[2].max_connections = 1;
    es.conf.panic_threshold = 100;
    b = endpoints_balancer(&es, _i);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&es, b, 1) + endpoints_pick(&es, b, 2), 2);
    ck_assert_int_eq(endpoints_pick(&es, b, 3), -EBUSY);
}

TEST_EACH(marks, backups_only_are_treated_as_normal_endpoints, KINDS)
{
    endpoints_open(&es, 3);
    for (unsigned i = 0; i < 3; i++)
        es.all[i].level = 7;
    es.conf.panic_threshold = 50;
    b = endpoints_balancer(&es, _i);
    ck_assert(!balancer_panics(b));
    expect_walk(3);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert(balancer_panics(b));
}

/* ---- levels ---- */

TEST_EACH(marks, each_level_is_the_backup_of_the_levels_below, KINDS)
{
    static const unsigned levels[] = {5, 2, 7, 2, 0}, order[] = {4, 1, 1, 0, 2};
    struct balancer_pick_state pick;

    endpoints_open(&es, 5);
    for (unsigned i = 0; i < 5; i++)
        es.all[i].level = levels[i];
    b = endpoints_balancer(&es, _i);
    balancer_begin(&pick, 4);
    for (unsigned i = 0; i < 5; i++) {
        int at = endpoints_next(&es, b, &pick);

        ck_assert_int_ge(at, 0);
        ck_assert_uint_eq(levels[at], levels[order[i]]);
        endpoint_leave(&es.all[at]);
    }
    endpoint_set_flag(&es.all[4], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&es, b, 4), 3);
    endpoint_set_flag(&es.all[3], ENDPOINT_EJECTED);
    ck_assert_int_eq(endpoints_touch(&es, b, 4), 0);
}

/* ---- the last resort ---- */

TEST_EACH(marks, ejected_endpoint_is_the_last_resort, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&es, 4);
    es.all[3].level = 1;
    b = endpoints_balancer(&es, _i);
    endpoint_set_flag(&es.all[0], ENDPOINT_EJECTED);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[2], ENDPOINT_ABSENT | ENDPOINT_EJECTED);
    balancer_begin(&pick, 1);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), 3);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
    endpoint_set_flag(&es.all[3], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&es, b, 1), 0);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&es, b, 1), -ENOENT);
}

TEST_EACH(marks, full_last_resort_is_waited_for, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&es, 2);
    es.all[0].max_connections = 1;
    b = endpoints_balancer(&es, _i);
    endpoint_set_flag(&es.all[0], ENDPOINT_EJECTED);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    balancer_begin(&pick, 1);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT); /* it was tried */
    ck_assert_int_eq(endpoints_pick(&es, b, 2), -EBUSY);
    endpoint_leave(&es.all[0]);
    ck_assert_int_eq(endpoints_pick(&es, b, 2), 0);
}

/* ---- another balancer ---- */

/* Places are of one balancer: the same number is somebody else in another. */
TEST_EACH(marks, endpoints_tried_in_another_set_count_only_in_the_total, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&es, 2);
    es.conf.generation = 1;
    b = endpoints_balancer(&es, _i);
    balancer_begin(&pick, 1);
    ck_assert_int_ge(endpoints_next(&es, b, &pick), 0);
    ck_assert_int_ge(endpoints_next(&es, b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
    balancer_destroy(b);
    es.conf.generation = 2;
    b = endpoints_balancer(&es, _i);
    for (unsigned i = pick.n_tried; i < BALANCER_TRIES; i++) {
        ck_assert_int_ge(endpoints_next(&es, b, &pick), 0);
        pick.generation = 0;
    }
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
    endpoints_leave_all(&es);
}

/* ---- warming up ---- */

#define SLOW_START_NS (1000 * NS_PER_S)

static void warm_up(unsigned i, int64_t for_ns)
{
    es.all[i].warming_since_ns = clock_now_ns() - for_ns;
    endpoint_set_flag(&es.all[i], ENDPOINT_WARMING);
}

static void open_warming(enum balancer_kind kind, unsigned n, int64_t for_ns)
{
    endpoints_open(&es, n);
    es.conf.slow_start_ns = SLOW_START_NS;
    b = endpoints_balancer(&es, kind);
    warm_up(0, for_ns);
}

/* Of those kinds that share evenly: in percent of the share of another one. */
static const struct {
    int64_t for_ns;
    unsigned percent;
} stages[] = {{0, 10}, {SLOW_START_NS / 2, 55}, {SLOW_START_NS * 9 / 10, 91}};

GROUP(warming_up, NULL, teardown);

TEST_EACH(warming_up, warming_endpoint_gets_a_growing_part_of_its_share, ARRAY_LEN(stages))
{
    unsigned picked[2] = {0}, percent;

    open_warming(BALANCER_ROUND_ROBIN, 2, stages[_i].for_ns);
    count(picked, 40000);
    percent = picked[0] * 100 / picked[1];
    ck_assert_uint_ge(percent, stages[_i].percent - 4);
    ck_assert_uint_le(percent, stages[_i].percent + 4);
    ck_assert_uint_eq(endpoint_load(&es.all[0]), ENDPOINT_WARMING);
}

TEST_EACH(warming_up, warming_endpoint_gets_a_small_share_in_every_method, KINDS)
{
    unsigned picked[10] = {0};

    open_warming(_i, 10, 0);
    count(picked, 20000);
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
        ck_assert_int_ge(endpoints_pick(&es, b, hash_mix(i)), 0);
    active = endpoint_active(&es.all[0]);
    ck_assert_uint_ge(active, parts[part].least);
    ck_assert_uint_le(active, parts[part].most);
}

/* A tenth of what the others have, and no session by chance. */
TEST(warming_up, least_connections_skips_a_warming_endpoint_above_its_part)
{
    open_warming(BALANCER_LEAST_CONNECTIONS, 20, 0);
    for (unsigned i = 0; i < 400; i++)
        ck_assert_int_ge(endpoints_pick(&es, b, 0), 0);
    ck_assert_uint_ge(endpoint_active(&es.all[0]), 1);
    ck_assert_uint_le(endpoint_active(&es.all[0]), 3);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(endpoint_enter(&es.all[0]), 0);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_ne(endpoints_touch(&es, b, 0), 0);
}

TEST_EACH(warming_up, warming_ends_after_the_slow_start_time, KINDS)
{
    unsigned picked[2] = {0};

    open_warming(_i, 2, SLOW_START_NS + 1);
    count(picked, 1000);
    ck_assert_uint_eq(endpoint_load(&es.all[0]), 0);
    ck_assert_uint_ge(picked[0], 300);
}

TEST_EACH(warming_up, without_a_slow_start_no_endpoint_warms_up, KINDS)
{
    unsigned picked[2] = {0};

    endpoints_open(&es, 2);
    b = endpoints_balancer(&es, _i);
    warm_up(0, 0);
    count(picked, 1000);
    ck_assert_uint_eq(endpoint_load(&es.all[0]), 0);
}

TEST_EACH(warming_up, warming_endpoints_are_used_when_no_others_are_left, KINDS)
{
    open_warming(_i, 3, 0);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[2], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(endpoints_touch(&es, b, i), 0);
}

TEST_EACH(warming_up, warming_endpoint_is_used_when_the_others_are_full_or_tried, KINDS)
{
    struct balancer_pick_state pick;

    open_warming(_i, 3, 0);
    balancer_destroy(b);
    es.all[1].max_connections = 1;
    b = endpoints_balancer(&es, _i);
    ck_assert_int_eq(endpoint_enter(&es.all[1]), 0);
    for (unsigned key = 0; key < 50; key++) {
        balancer_begin(&pick, key);
        ck_assert_int_eq(endpoints_next(&es, b, &pick) + endpoints_next(&es, b, &pick), 0 + 2);
        ck_assert_int_eq(endpoints_next(&es, b, &pick), -EBUSY);
    }
}

TEST_EACH(warming_up, warming_endpoints_only_share_equally, BALANCER_FIRST)
{
    unsigned picked[3] = {0};

    open_warming(_i, 3, 0);
    warm_up(1, SLOW_START_NS / 2);
    warm_up(2, SLOW_START_NS * 9 / 10);
    count(picked, 6000);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_ge(picked[i], 1500);
}

/* To look at 65,535 endpoints for each key takes its time under ThreadSanitizer. */
