/*
 * balance/balancer: what all kinds promise: fit ones only, each once, none over its limit, backups
 * last.
 */
#include <errno.h>
#include <pthread.h>

#include "base/hash.h"
#include "support/endpoints.h"
#include "support/picks.h"
#include "support/sanitized.h"
#include "support/suite.h"

static void open_many(enum balancer_kind kind, unsigned n)
{
    endpoints_open(&picks.es, n);
    picks.b = endpoints_balancer(&picks.es, kind);
}

/* ---- what can be balanced ---- */

GROUP(picking, NULL, picks_teardown);

TEST_EACH(picking, pick_without_endpoints_finds_none, KINDS)
{
    open_many(_i, 0);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -ENOENT);
    ck_assert(!balancer_panics(picks.b));
}

TEST_EACH(picking, single_endpoint_is_the_only_choice, KINDS)
{
    struct balancer_pick_state pick;

    open_many(_i, 1);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, i), 0);
    balancer_begin(&pick, 7);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
}

/* As the next configuration has them, while this one is still in use. */
TEST_EACH(picking, configured_shares_override_weights_and_limits_of_endpoints, KINDS)
{
    static const struct balancer_share shares[] = {
        {.weight = 0}, {.weight = 3, .level = 1}, {.weight = 2, .max_connections = 1}};

    endpoints_open(&picks.es, 3);
    picks.es.conf.shares = shares;
    picks.b = endpoints_balancer(&picks.es, _i);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), 2);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 2), -EBUSY);
    endpoint_set_flag(&picks.es.all[2], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, i), 1);
    picks.es.all[2].max_connections = 1;
    endpoints_leave_all(&picks.es);
}

TEST_EACH(picking, weights_and_numbers_beyond_the_maximum_are_refused, KINDS)
{
    endpoints_open(&picks.es, 2);
    picks.es.conf =
        (struct balancer_conf){.kind = _i, .endpoints = picks.es.list, .n_endpoints = 2};
    picks.es.all[1].weight = BALANCER_MAX_WEIGHT + 1;
    ck_assert_int_eq(balancer_create(&picks.b, &picks.es.conf), -EINVAL);
    picks.es.all[1].weight = BALANCER_MAX_WEIGHT;
    picks.es.conf.n_endpoints = BALANCER_MAX_ENDPOINTS + 1;
    ck_assert_int_eq(balancer_create(&picks.b, &picks.es.conf), -EINVAL);
    ck_assert_ptr_null(picks.b);
}

static const unsigned some_zero[] = {0, 1, 0, 3, 0};

static void open_some_zero(enum balancer_kind kind)
{
    endpoints_open(&picks.es, 5);
    endpoints_weights(&picks.es, some_zero);
    picks.es.conf.panic_threshold = 60;
    picks.b = endpoints_balancer(&picks.es, kind);
}

GROUP(weight_0, NULL, picks_teardown);

TEST_EACH(weight_0, an_endpoint_of_weight_0_is_never_picked, KINDS)
{
    struct balancer_pick_state pick;

    open_some_zero(_i);
    for (unsigned key = 0; key < 200; key++) {
        balancer_begin(&pick, key);
        for (unsigned i = 0; i < 2; i++) {
            int at = endpoints_next(&picks.es, picks.b, &pick);

            ck_assert(at == 1 || at == 3);
        }
        ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
    }
}

TEST_EACH(weight_0, endpoint_of_weight_0_is_not_picked_in_panic_or_when_others_are_ejected_or_full,
          KINDS)
{
    open_some_zero(_i);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert(balancer_panics(picks.b)); /* one of two is fewer than 60 % */
    for (unsigned key = 0; key < 200; key++) {
        int at = endpoints_touch(&picks.es, picks.b, key);

        ck_assert(at == 1 || at == 3);
    }
    endpoint_set_flag(&picks.es.all[3], ENDPOINT_ABSENT);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_ABSENT);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -ENOENT);
    endpoint_clear_flag(&picks.es.all[1], ENDPOINT_ABSENT);
    endpoint_clear_flag(&picks.es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_EJECTED);
    for (unsigned key = 0; key < 200; key++)
        ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, key), 1);
}

TEST_EACH(weight_0, endpoints_of_weight_0_do_not_count_for_panic, KINDS)
{
    open_some_zero(_i);
    ck_assert(!balancer_panics(picks.b)); /* two of two are fit, not two of five */
    for (unsigned i = 0; i < 5; i++)
        if (some_zero[i] == 0)
            endpoint_set_flag(&picks.es.all[i], ENDPOINT_DOWN);
    ck_assert(!balancer_panics(picks.b));
}

TEST_EACH(weight_0, endpoints_of_weight_0_only_are_no_choice, KINDS)
{
    static const unsigned weights[] = {0, 0};

    endpoints_open(&picks.es, 2);
    endpoints_weights(&picks.es, weights);
    picks.b = endpoints_balancer(&picks.es, _i);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -ENOENT);
    ck_assert(!balancer_panics(picks.b));
}

TEST_EACH(weight_0, a_backup_is_used_at_once_when_all_others_have_weight_0, KINDS)
{
    static const unsigned weights[] = {0, 1};

    endpoints_open(&picks.es, 2);
    endpoints_weights(&picks.es, weights);
    picks.es.all[1].level = BALANCER_LEVELS - 1;
    picks.es.conf.panic_threshold = 100;
    picks.b = endpoints_balancer(&picks.es, _i);
    ck_assert(!balancer_panics(picks.b));
    for (unsigned key = 0; key < 20; key++)
        ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, key), 1);
}

static const unsigned sizes[] = {1000, IF_SANITIZED(8192, BALANCER_MAX_ENDPOINTS)};

static void pick_from_many(enum balancer_kind kind, unsigned n)
{
    unsigned last = n - 1;

    endpoints_open(&picks.es, n);
    for (unsigned i = 0; i < n; i++)
        picks.es.all[i].weight = 1 + i % 3;
    picks.b = endpoints_balancer(&picks.es, kind);
    for (unsigned i = 0; i < 2000; i++)
        ck_assert_int_ge(endpoints_touch(&picks.es, picks.b, i), 0);
    for (unsigned i = 0; i < last; i++)
        endpoint_set_flag(&picks.es.all[i], ENDPOINT_DOWN);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, i), (int)last);
    endpoint_set_flag(&picks.es.all[last], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 1), -ENOENT);
}

GROUP_WITHIN(largest, NULL, picks_teardown, 5 * SUITE_CASE_SECONDS);

TEST_EACH(largest, each_of_very_many_endpoints_can_be_picked, 2 * KINDS)
{
    pick_from_many(_i % KINDS, sizes[_i / KINDS]);
}

/* Of the kinds whose tables grow with the weights. */
TEST_EACH(largest, the_largest_tables_can_be_built, 2)
{
    endpoints_open(&picks.es, BALANCER_MAX_ENDPOINTS);
    for (unsigned i = 0; i < picks.es.n; i++)
        picks.es.all[i].weight = i % 256 < 2 ? 1 + i % 256 : 256;
    picks.b = endpoints_balancer(&picks.es, _i == 0 ? BALANCER_ROUND_ROBIN : BALANCER_SOURCE_HASH);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_ge(endpoints_touch(&picks.es, picks.b, i), 0);
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
            int at = endpoints_next(&picks.es, picks.b, &pick);

            ck_assert_int_ge(at, 0);
            ck_assert(!tried[at]);
            tried[at] = true;
            endpoint_leave(&picks.es.all[at]);
        }
        ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
        ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
    }
}

TEST_EACH(picking, session_tries_at_most_sixteen_endpoints, KINDS)
{
    struct balancer_pick_state pick;

    open_many(_i, 40);
    balancer_begin(&pick, 3);
    for (int i = 0; i < BALANCER_TRIES; i++)
        ck_assert_int_ge(endpoints_next(&picks.es, picks.b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
    ck_assert_uint_eq(picks.es.group.load, BALANCER_TRIES);
}

/* ---- marks ---- */

GROUP(marks, NULL, picks_teardown);

TEST_EACH(marks, unfit_endpoint_is_never_picked, KINDS)
{
    unsigned picked[5] = {0};

    open_many(_i, 5);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[2], ENDPOINT_EJECTED);
    endpoint_set_flag(&picks.es.all[4], ENDPOINT_ABSENT);
    picks_count(picked, 10000);
    ck_assert_uint_eq(picked[0] + picked[2] + picked[4], 0);
    ck_assert_uint_gt(picked[1], 0);
}

TEST_EACH(marks, pick_fails_until_an_endpoint_becomes_fit, KINDS)
{
    open_many(_i, 3);
    for (unsigned i = 0; i < 3; i++)
        endpoint_set_flag(&picks.es.all[i], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -ENOENT);
    endpoint_clear_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), 1);
}

/* ---- room ---- */

TEST_EACH(picking, full_endpoints_are_skipped_and_ebusy_is_returned_when_all_are_full, KINDS)
{
    endpoints_open(&picks.es, 3);
    for (unsigned i = 0; i < 3; i++)
        picks.es.all[i].max_connections = 2;
    picks.b = endpoints_balancer(&picks.es, _i);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_ge(endpoints_pick(&picks.es, picks.b, 9), 0);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 9), -EBUSY);
    ck_assert_uint_eq(picks.es.group.load, 6);
    endpoint_leave(&picks.es.all[2]);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 9), 2);
}

TEST_EACH(picking, ebusy_is_returned_only_for_fit_endpoints_not_tried_yet, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&picks.es, 2);
    picks.es.all[0].max_connections = 1;
    picks.es.all[1].max_connections = 1;
    picks.b = endpoints_balancer(&picks.es, _i);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    balancer_begin(&pick, 5);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT); /* it was tried */
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 5),
                     -EBUSY); /* another session has not tried it */
    endpoint_clear_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoint_enter(&picks.es.all[1]), 0);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -EBUSY);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 5), -ENOENT);
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
            held[i] = endpoints_pick(&picks.es, picks.b, hash_mix(key++));
            refused += held[i] == -EBUSY;
            over += held[i] < 0 && held[i] != -EBUSY;
            over += held[i] >= 0 && endpoint_active(&picks.es.all[held[i]]) > ROOM;
        }
        for (int i = 0; i < HELD; i++)
            if (held[i] >= 0)
                endpoint_leave(&picks.es.all[held[i]]);
    }
    return NULL;
}

TEST_EACH(picking, four_threads_never_exceed_a_limit, KINDS)
{
    pthread_t threads[THREADS];

    endpoints_open(&picks.es, 5);
    for (unsigned i = 0; i < 5; i++)
        picks.es.all[i].max_connections = ROOM;
    picks.b = endpoints_balancer(&picks.es, _i);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hold_and_leave, (void *)(i << 32));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(over, 0);
    ck_assert_uint_eq(picks.es.group.load, 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(endpoint_load(&picks.es.all[i]), 0);
}

static atomic_bool done;

static void *mark_and_unmark(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 3000; i++) {
        endpoint_set_flag(&picks.es.all[i % 4], ENDPOINT_DOWN);
        endpoint_clear_flag(&picks.es.all[(i + 1) % 4], ENDPOINT_DOWN);
    }
    done = true;
    return NULL;
}

static void *pick_until_done(void *arg)
{
    (void)arg;
    for (uint64_t key = 0; !done; key++)
        over +=
            endpoints_touch(&picks.es, picks.b, hash_mix(key)) < 0; /* the fifth is always fit */
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
    ck_assert_uint_eq(picks.es.group.load, 0);
}

/* ---- panic ---- */

static void open_with_panic(enum balancer_kind kind, unsigned n, unsigned threshold)
{
    endpoints_open(&picks.es, n);
    picks.es.conf.panic_threshold = threshold;
    picks.b = endpoints_balancer(&picks.es, kind);
}

TEST_EACH(marks, with_too_few_fit_endpoints_flags_are_ignored, KINDS)
{
    open_with_panic(_i, 10, 50);
    for (unsigned i = 0; i < 5; i++)
        endpoint_set_flag(&picks.es.all[i],
                          i % 2 ? ENDPOINT_DOWN : ENDPOINT_DOWN | ENDPOINT_EJECTED);
    ck_assert(!balancer_panics(picks.b)); /* half is enough */
    picks_expect_walk(5);
    endpoint_set_flag(&picks.es.all[5], ENDPOINT_DOWN);
    ck_assert(balancer_panics(picks.b));
    picks_expect_walk(10);
    endpoint_clear_flag(&picks.es.all[0], ENDPOINT_DOWN | ENDPOINT_EJECTED);
    ck_assert(!balancer_panics(picks.b));
    picks_expect_walk(5);
}

TEST_EACH(marks, absent_endpoint_is_not_picked_in_panic, KINDS)
{
    open_with_panic(_i, 4, 100);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_ABSENT);
    ck_assert(!balancer_panics(picks.b)); /* it is no longer one of them */
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert(balancer_panics(picks.b));
    picks_expect_walk(3);
    for (unsigned i = 1; i < 4; i++)
        endpoint_set_flag(&picks.es.all[i], ENDPOINT_ABSENT);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -ENOENT);
}

TEST_EACH(marks, a_threshold_of_zero_never_panics, KINDS)
{
    open_with_panic(_i, 2, 0);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert(!balancer_panics(picks.b));
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -ENOENT);
}
