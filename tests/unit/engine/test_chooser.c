/* engine/chooser: whose turn it is. */
#include "engine/chooser.h"
#include "support/loop_runner.h"
#include "support/suite.h"

#define LOOPS 8

static struct loop *loops[LOOPS];
static struct chooser c;

static void setup(void)
{
    for (int i = 0; i < LOOPS; i++)
        loops[i] = loop_runner_create();
    chooser_init(&c, CHOOSER_ROUND_ROBIN);
}

static void teardown(void)
{
    for (int i = 0; i < LOOPS; i++)
        loop_runner_destroy(loops[i]);
}

/* The index of the next pick among the first ${n}; -1: none. */
static int pick(unsigned n)
{
    struct loop *loop = chooser_pick(&c, loops, n);

    for (int i = 0; i < LOOPS; i++)
        if (loops[i] == loop)
            return i;
    ck_assert_ptr_null(loop);
    return -1;
}

static const unsigned sizes[] = {1, 2, 3, 4, 5, 8};

START_TEST(round_robin_begins_at_the_first_and_visits_all_in_order)
{
    unsigned n = sizes[_i];

    for (unsigned i = 0; i < 3 * n; i++)
        ck_assert_int_eq(pick(n), (int)(i % n));
}
END_TEST

START_TEST(round_robin_neither_skips_nor_repeats_where_32_bits_end)
{
    int last;

    atomic_store(&c.next, UINT32_MAX - UINT64_C(5));
    last = pick(3);
    for (int i = 0; i < 12; i++) {
        int next = pick(3);

        ck_assert_int_eq(next, (last + 1) % 3);
        last = next;
    }
}
END_TEST

START_TEST(round_robin_over_a_power_of_two_survives_the_end_of_its_counter)
{
    int last;

    atomic_store(&c.next, UINT64_MAX - 5);
    last = pick(4);
    for (int i = 0; i < 12; i++) {
        int next = pick(4);

        ck_assert_int_eq(next, (last + 1) % 4);
        last = next;
    }
}
END_TEST

START_TEST(a_loop_that_has_ended_is_passed_over)
{
    chooser_init(&c, (enum chooser_kind)_i);
    loop_stop(loops[1], 0, 0);
    for (int i = 0; i < 300; i++)
        ck_assert_int_ne(pick(3), 1);
}
END_TEST

START_TEST(when_all_have_ended_there_is_none)
{
    chooser_init(&c, (enum chooser_kind)_i);
    for (int i = 0; i < 3; i++)
        loop_stop(loops[i], 0, 0);
    ck_assert_int_eq(pick(3), -1);
    ck_assert_int_eq(pick(1), -1);
}
END_TEST

START_TEST(one_loop_is_always_the_choice)
{
    chooser_init(&c, (enum chooser_kind)_i);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(pick(1), 0);
}
END_TEST

START_TEST(least_connections_fills_the_emptiest)
{
    chooser_init(&c, CHOOSER_LEAST_CONNECTIONS);
    for (int i = 0; i < 4; i++)
        loop_load_add(loops[i], 10);
    loop_load_add(loops[2], -4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pick(4), 2);
        loop_load_add(loops[2], 1);
    }
}
END_TEST

START_TEST(least_connections_shares_evenly_among_equals)
{
    unsigned picked[4] = {0};

    chooser_init(&c, CHOOSER_LEAST_CONNECTIONS);
    for (int i = 0; i < 400; i++) /* the loads stay equal */
        picked[pick(4)]++;
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(picked[i], 100);
}
END_TEST

START_TEST(two_choices_refill_a_loop_that_was_emptied)
{
    unsigned spread;

    chooser_init(&c, CHOOSER_P2C);
    for (int i = 1; i < 4; i++)
        loop_load_add(loops[i], 100);
    for (int i = 0; i < 300; i++)
        loop_load_add(loops[pick(4)], 1);
    spread = loop_load(loops[0]);
    ck_assert_uint_gt(spread, 90); /* blind it would have 75, and the others 175 */
}
END_TEST

START_TEST(two_choices_keep_loads_close)
{
    unsigned least = 1000000, most = 0;

    chooser_init(&c, CHOOSER_P2C);
    for (int i = 0; i < 8000; i++)
        loop_load_add(loops[pick(8)], 1);
    for (int i = 0; i < 8; i++) {
        unsigned load = loop_load(loops[i]);

        least = load < least ? load : least;
        most = load > most ? load : most;
    }
    ck_assert_uint_le(most - least, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine/chooser");
    TCase *tc = suite_group(suite, "chooser");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, round_robin_begins_at_the_first_and_visits_all_in_order, 0,
                        (int)ARRAY_LEN(sizes));
    tcase_add_test(tc, round_robin_neither_skips_nor_repeats_where_32_bits_end);
    tcase_add_test(tc, round_robin_over_a_power_of_two_survives_the_end_of_its_counter);
    tcase_add_loop_test(tc, a_loop_that_has_ended_is_passed_over, 0, CHOOSER_P2C + 1);
    tcase_add_loop_test(tc, when_all_have_ended_there_is_none, 0, CHOOSER_P2C + 1);
    tcase_add_loop_test(tc, one_loop_is_always_the_choice, 0, CHOOSER_P2C + 1);
    tcase_add_test(tc, least_connections_fills_the_emptiest);
    tcase_add_test(tc, least_connections_shares_evenly_among_equals);
    tcase_add_test(tc, two_choices_refill_a_loop_that_was_emptied);
    tcase_add_test(tc, two_choices_keep_loads_close);
    return suite_run(suite);
}
