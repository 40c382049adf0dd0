/* engine/gate: counting in and out, the bound, and what a closed gate with nobody inside proves. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "engine/gate.h"
#include "support/suite.h"

#define THREADS  8
#define NO_BOUND (UINT64_MAX >> 1)

static struct gate g;

static void setup(void)
{
    gate_init(&g);
}

START_TEST(those_inside_are_counted)
{
    ck_assert_uint_eq(gate_count(&g), 0);
    ck_assert_int_eq(gate_enter(&g, 10), 0);
    ck_assert_int_eq(gate_enter(&g, 10), 1); /* how many were there before */
    ck_assert_uint_eq(gate_count(&g), 2);
    gate_leave(&g, 0);
    ck_assert_uint_eq(gate_count(&g), 2);
    gate_leave(&g, 2);
    ck_assert_uint_eq(gate_count(&g), 0);
}
END_TEST

START_TEST(a_full_gate_says_try_again)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_ge(gate_enter(&g, 3), 0);
    ck_assert_int_eq(gate_enter(&g, 3), -EAGAIN);
    ck_assert_uint_eq(gate_count(&g), 3);
    gate_leave(&g, 1);
    ck_assert_int_ge(gate_enter(&g, 3), 0);
}
END_TEST

START_TEST(each_caller_has_its_own_bound)
{
    ck_assert_int_ge(gate_enter(&g, 1), 0);
    ck_assert_int_eq(gate_enter(&g, 1), -EAGAIN);
    ck_assert_int_ge(gate_enter(&g, NO_BOUND), 0);
    ck_assert_uint_eq(gate_count(&g), 2);
}
END_TEST

START_TEST(a_closed_gate_lets_out_and_nobody_in)
{
    ck_assert_int_ge(gate_enter(&g, 10), 0);
    gate_close(&g);
    gate_close(&g);
    ck_assert_int_eq(gate_enter(&g, 10), -ESHUTDOWN);
    ck_assert_uint_eq(gate_count(&g), 1);
    gate_leave(&g, 1);
    ck_assert_uint_eq(gate_count(&g), 0);
    ck_assert_int_eq(gate_enter(&g, 10), -ESHUTDOWN);
}
END_TEST

START_TEST(a_gate_that_is_full_and_closed_is_closed)
{
    ck_assert_int_ge(gate_enter(&g, 1), 0);
    gate_close(&g);
    ck_assert_int_eq(gate_enter(&g, 1), -ESHUTDOWN);
}
END_TEST

static atomic_uint accepted;

static void on_all_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *enter_many(void *arg)
{
    for (int i = 0; i < 1000; i++)
        if (gate_enter(&g, 100) >= 0)
            atomic_fetch_add(&accepted, 1);
    return arg;
}

START_TEST(racing_producers_get_exactly_as_many_places_as_there_are)
{
    on_all_threads(enter_many);
    ck_assert_uint_eq(atomic_load(&accepted), 100);
    ck_assert_uint_eq(gate_count(&g), 100);
}
END_TEST

static atomic_uint given[100];

static void *note_places(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        int64_t before = gate_enter(&g, ARRAY_LEN(given));

        if (before >= 0)
            atomic_fetch_add(&given[before], 1);
    }
    return arg;
}

START_TEST(no_two_producers_are_told_the_same_number)
{
    on_all_threads(note_places);
    for (unsigned i = 0; i < ARRAY_LEN(given); i++)
        ck_assert_uint_eq(atomic_load(&given[i]), 1);
}
END_TEST

START_TEST(who_enters_an_empty_gate_is_told_so_each_time)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(gate_enter(&g, 5), 0);
        ck_assert_int_eq(gate_enter(&g, 5), 1);
        gate_leave(&g, 2);
    }
}
END_TEST

START_TEST(a_bound_of_nobody_lets_nobody_in)
{
    ck_assert_int_eq(gate_enter(&g, 0), -EAGAIN);
    ck_assert_uint_eq(gate_count(&g), 0);
}
END_TEST

/* Enter, do something, leave; until the gate is closed. */
static void *enter_until_closed(void *arg)
{
    while (gate_enter(&g, NO_BOUND) >= 0) {
        atomic_fetch_add(&accepted, 1);
        gate_leave(&g, 1);
    }
    return arg;
}

START_TEST(once_closed_and_empty_nobody_is_inside_ever_again)
{
    pthread_t threads[THREADS];
    unsigned final;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, enter_until_closed, NULL);
    while (atomic_load(&accepted) < 1000)
        sched_yield();
    gate_close(&g);
    while (gate_count(&g) > 0)
        sched_yield();
    final = atomic_load(&accepted);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&accepted), final);
    ck_assert_uint_eq(gate_count(&g), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine/gate");
    TCase *tc = suite_group(suite, "gate");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, those_inside_are_counted);
    tcase_add_test(tc, a_full_gate_says_try_again);
    tcase_add_test(tc, each_caller_has_its_own_bound);
    tcase_add_test(tc, a_closed_gate_lets_out_and_nobody_in);
    tcase_add_test(tc, a_gate_that_is_full_and_closed_is_closed);
    tcase_add_test(tc, racing_producers_get_exactly_as_many_places_as_there_are);
    tcase_add_test(tc, no_two_producers_are_told_the_same_number);
    tcase_add_test(tc, who_enters_an_empty_gate_is_told_so_each_time);
    tcase_add_test(tc, a_bound_of_nobody_lets_nobody_in);
    tcase_add_test(tc, once_closed_and_empty_nobody_is_inside_ever_again);
    return suite_run(suite);
}
