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

GROUP(gate, setup, NULL);

TEST(gate, entered_producers_are_counted)
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

TEST(gate, full_gate_returns_eagain)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_ge(gate_enter(&g, 3), 0);
    ck_assert_int_eq(gate_enter(&g, 3), -EAGAIN);
    ck_assert_uint_eq(gate_count(&g), 3);
    gate_leave(&g, 1);
    ck_assert_int_ge(gate_enter(&g, 3), 0);
}

TEST(gate, each_caller_has_its_own_bound)
{
    ck_assert_int_ge(gate_enter(&g, 1), 0);
    ck_assert_int_eq(gate_enter(&g, 1), -EAGAIN);
    ck_assert_int_ge(gate_enter(&g, NO_BOUND), 0);
    ck_assert_uint_eq(gate_count(&g), 2);
}

TEST(gate, closed_gate_refuses_entry_and_allows_leaving)
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

TEST(gate, a_gate_that_is_full_and_closed_is_closed)
{
    ck_assert_int_ge(gate_enter(&g, 1), 0);
    gate_close(&g);
    ck_assert_int_eq(gate_enter(&g, 1), -ESHUTDOWN);
}

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

TEST(gate, racing_producers_enter_exactly_up_to_the_bound)
{
    on_all_threads(enter_many);
    ck_assert_uint_eq(atomic_load(&accepted), 100);
    ck_assert_uint_eq(gate_count(&g), 100);
}

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

TEST(gate, each_producer_gets_a_distinct_number)
{
    on_all_threads(note_places);
    for (unsigned i = 0; i < ARRAY_LEN(given); i++)
        ck_assert_uint_eq(atomic_load(&given[i]), 1);
}

TEST(gate, entering_an_empty_gate_returns_0_each_time)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(gate_enter(&g, 5), 0);
        ck_assert_int_eq(gate_enter(&g, 5), 1);
        gate_leave(&g, 2);
    }
}

TEST(gate, bound_of_0_refuses_every_producer)
{
    ck_assert_int_eq(gate_enter(&g, 0), -EAGAIN);
    ck_assert_uint_eq(gate_count(&g), 0);
}

/* Enter, do something, leave; until the gate is closed. */
static void *enter_until_closed(void *arg)
{
    while (gate_enter(&g, NO_BOUND) >= 0) {
        atomic_fetch_add(&accepted, 1);
        gate_leave(&g, 1);
    }
    return arg;
}

TEST(gate, closed_and_empty_gate_stays_empty)
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
