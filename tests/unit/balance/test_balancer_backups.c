/* balance/balancer: backups, levels of priority, and the last resort. */
#include <errno.h>

#include "support/endpoints.h"
#include "support/picks.h"
#include "support/suite.h"

GROUP(marks, NULL, picks_teardown);

/* ---- backups ---- */

/* a and c; b and d are backups. */
static void open_with_backups(enum balancer_kind kind, unsigned threshold)
{
    endpoints_open(&picks.es, 4);
    picks.es.all[1].level = 7;
    picks.es.all[3].level = 7;
    picks.es.all[1].weight = 200;
    picks.es.conf.panic_threshold = threshold;
    picks.b = endpoints_balancer(&picks.es, kind);
}

TEST_EACH(marks, backups_are_picked_only_when_no_other_endpoint_is_fit, KINDS)
{
    unsigned picked[4] = {0};

    open_with_backups(_i, 0);
    picks_count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 0);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    picks_count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 0);
    endpoint_set_flag(&picks.es.all[2], ENDPOINT_DOWN);
    picks_count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 1000);
    endpoint_clear_flag(&picks.es.all[0], ENDPOINT_DOWN);
    picks_count(picked, 1000);
    ck_assert_uint_eq(picked[1] + picked[3], 1000);
}

TEST_EACH(marks, session_that_tries_all_endpoints_tries_backups_last, KINDS)
{
    struct balancer_pick_state pick;

    open_with_backups(_i, 0);
    balancer_begin(&pick, 4);
    for (int i = 0; i < 4; i++) {
        int at = endpoints_next(&picks.es, picks.b, &pick);

        ck_assert_int_ge(at, 0);
        ck_assert_int_eq(at % 2, i / 2);
    }
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
}

TEST_EACH(marks, busy_endpoints_do_not_spill_to_backups, KINDS)
{
    open_with_backups(_i, 0);
    balancer_destroy(picks.b);
    picks.es.all[0].max_connections = 1;
    picks.es.all[2].max_connections = 1;
    picks.b = endpoints_balancer(&picks.es, _i);
    ck_assert_int_ge(endpoints_pick(&picks.es, picks.b, 1), 0);
    ck_assert_int_ge(endpoints_pick(&picks.es, picks.b, 1), 0);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -EBUSY);
}

/* The primary servers come first; when all are full, the pick fails with -EBUSY. */
TEST_EACH(marks, full_endpoints_spill_to_backups_if_configured, KINDS)
{
    struct balancer_pick_state pick;

    open_with_backups(_i, 0);
    balancer_destroy(picks.b);
    picks.es.conf.spills = true;
    for (unsigned i = 0; i < 4; i++)
        picks.es.all[i].max_connections = 1;
    picks.b = endpoints_balancer(&picks.es, _i);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1) % 2, i / 2);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -EBUSY);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[3], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1), -EBUSY); /* it waits for a and c */
    endpoint_leave(&picks.es.all[2]);
    balancer_begin(&pick, 1);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), 2);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -EBUSY); /* a is untried */
}

TEST_EACH(marks, backups_in_use_are_no_panic, KINDS)
{
    open_with_backups(_i, 50);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[2], ENDPOINT_DOWN);
    ck_assert(!balancer_panics(picks.b));
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 1) % 2, 1);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[3], ENDPOINT_DOWN);
    ck_assert(balancer_panics(picks.b));
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 1) % 2, 0);
}

/* Four, of which one is fit, and four backups; ${ups} of those are fit. */
static void open_one_of_four(enum balancer_kind kind, unsigned ups)
{
    endpoints_open(&picks.es, 8);
    for (unsigned i = 4; i < 8; i++)
        picks.es.all[i].level = i < 6 ? 3 : 7;
    picks.es.conf.panic_threshold = 50;
    picks.b = endpoints_balancer(&picks.es, kind);
    for (unsigned i = 1; i < 8; i++)
        if (i < 4 || i >= 4 + ups)
            endpoint_set_flag(&picks.es.all[i], ENDPOINT_DOWN);
}

TEST_EACH(marks, fit_backups_share_the_sessions_before_there_is_panic, KINDS)
{
    unsigned picked[8] = {0};

    open_one_of_four(_i, 4);
    ck_assert(!balancer_panics(picks.b));
    picks_count(picked, 3000);
    ck_assert_uint_eq(picked[1] + picked[2] + picked[3], 0);
    ck_assert_uint_eq(picked[6] + picked[7], 0); /* with the two of level 3 there are enough */
    ck_assert_uint_ge(picked[0], 800);
    ck_assert_uint_le(picked[0], 1200);
    ck_assert_uint_eq(picked[0] + picked[4] + picked[5], 3000);
    if (_i != BALANCER_FIRST)
        ck_assert_uint_ge(picked[5], 300); /* a ring may be uneven */
    endpoint_clear_flag(&picks.es.all[1], ENDPOINT_DOWN);
    picks_count(picked, 1);
    ck_assert_uint_eq(picked[0] + picked[1] + picked[4] + picked[5], 3001);
    picked[4] = picked[5] = 0;
    picks_count(picked, 1000);
    ck_assert_uint_eq(picked[4] + picked[5], 0); /* half of the four is enough */
}

TEST_EACH(marks, session_tries_the_sharing_endpoints_before_the_others, KINDS)
{
    struct balancer_pick_state pick;

    open_one_of_four(_i, 4);
    balancer_begin(&pick, 9);
    for (unsigned i = 0; i < 5; i++) {
        int at = endpoints_next(&picks.es, picks.b, &pick);

        ck_assert(at == 0 || at >= 4);
        ck_assert(i < 3 ? at < 6 : at >= 6);
        endpoint_leave(&picks.es.all[at]);
    }
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
}

TEST_EACH(marks, with_too_few_backups_there_is_panic, KINDS)
{
    unsigned picked[8] = {0};

    open_one_of_four(_i, 0);
    ck_assert(balancer_panics(picks.b));
    picks_count(picked, 1000);
    ck_assert_uint_eq(picked[0] + picked[1] + picked[2] + picked[3], 1000);
    endpoint_clear_flag(&picks.es.all[7], ENDPOINT_DOWN); /* two of four, as configured */
    ck_assert(!balancer_panics(picks.b));
    picks_count(picked, 1000);
    ck_assert_uint_ge(picked[7], 400);
}

TEST_EACH(marks, full_endpoints_of_the_level_in_use_do_not_spill, KINDS)
{
    endpoints_open(&picks.es, 4);
    picks.es.all[2].level = 3;
    picks.es.all[3].level = 7;
    picks.es.all[0].max_connections = picks.es.all[2].max_connections = 1;
    picks.es.conf.panic_threshold = 100;
    picks.b = endpoints_balancer(&picks.es, _i);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 1) + endpoints_pick(&picks.es, picks.b, 2),
                     2);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 3), -EBUSY);
}

TEST_EACH(marks, backups_only_are_treated_as_normal_endpoints, KINDS)
{
    endpoints_open(&picks.es, 3);
    for (unsigned i = 0; i < 3; i++)
        picks.es.all[i].level = 7;
    picks.es.conf.panic_threshold = 50;
    picks.b = endpoints_balancer(&picks.es, _i);
    ck_assert(!balancer_panics(picks.b));
    picks_expect_walk(3);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert(balancer_panics(picks.b));
}

/* ---- levels ---- */

TEST_EACH(marks, each_level_is_the_backup_of_the_levels_below, KINDS)
{
    static const unsigned levels[] = {5, 2, 7, 2, 0}, order[] = {4, 1, 1, 0, 2};
    struct balancer_pick_state pick;

    endpoints_open(&picks.es, 5);
    for (unsigned i = 0; i < 5; i++)
        picks.es.all[i].level = levels[i];
    picks.b = endpoints_balancer(&picks.es, _i);
    balancer_begin(&pick, 4);
    for (unsigned i = 0; i < 5; i++) {
        int at = endpoints_next(&picks.es, picks.b, &pick);

        ck_assert_int_ge(at, 0);
        ck_assert_uint_eq(levels[at], levels[order[i]]);
        endpoint_leave(&picks.es.all[at]);
    }
    endpoint_set_flag(&picks.es.all[4], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 4), 3);
    endpoint_set_flag(&picks.es.all[3], ENDPOINT_EJECTED);
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 4), 0);
}

/* ---- the last resort ---- */

TEST_EACH(marks, ejected_endpoint_is_the_last_resort, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&picks.es, 4);
    picks.es.all[3].level = 1;
    picks.b = endpoints_balancer(&picks.es, _i);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_EJECTED);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&picks.es.all[2], ENDPOINT_ABSENT | ENDPOINT_EJECTED);
    balancer_begin(&pick, 1);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), 3);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
    endpoint_set_flag(&picks.es.all[3], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 1), 0);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 1), -ENOENT);
}

TEST_EACH(marks, full_last_resort_is_waited_for, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&picks.es, 2);
    picks.es.all[0].max_connections = 1;
    picks.b = endpoints_balancer(&picks.es, _i);
    endpoint_set_flag(&picks.es.all[0], ENDPOINT_EJECTED);
    endpoint_set_flag(&picks.es.all[1], ENDPOINT_DOWN);
    balancer_begin(&pick, 1);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT); /* it was tried */
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 2), -EBUSY);
    endpoint_leave(&picks.es.all[0]);
    ck_assert_int_eq(endpoints_pick(&picks.es, picks.b, 2), 0);
}

/* ---- another balancer ---- */

/* Places are of one balancer: the same number is somebody else in another. */
TEST_EACH(marks, endpoints_tried_in_another_set_count_only_in_the_total, KINDS)
{
    struct balancer_pick_state pick;

    endpoints_open(&picks.es, 2);
    picks.es.conf.generation = 1;
    picks.b = endpoints_balancer(&picks.es, _i);
    balancer_begin(&pick, 1);
    ck_assert_int_ge(endpoints_next(&picks.es, picks.b, &pick), 0);
    ck_assert_int_ge(endpoints_next(&picks.es, picks.b, &pick), 0);
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
    balancer_destroy(picks.b);
    picks.es.conf.generation = 2;
    picks.b = endpoints_balancer(&picks.es, _i);
    for (unsigned i = pick.n_tried; i < BALANCER_TRIES; i++) {
        ck_assert_int_ge(endpoints_next(&picks.es, picks.b, &pick), 0);
        pick.generation = 0;
    }
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
    endpoints_leave_all(&picks.es);
}
