/* engine/timer_heap: the order of instants, FIFO among equal ones, removal from anywhere. */
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/timer_heap.h"
#include "support/suite.h"

#define MANY 2000

static struct timer_heap s;
static struct timer timers[MANY];

static void setup(void)
{
    timer_heap_init(&s);
    for (int i = 0; i < MANY; i++)
        timer_init(&timers[i], NULL);
}

static void add(int i, int64_t at_ns)
{
    timers[i].at_ns = at_ns;
    timer_heap_add(&s, &timers[i]);
}

static void expect_next(int i)
{
    ck_assert_ptr_eq(timer_heap_take_due(&s, CLOCK_NEVER), &timers[i]);
    ck_assert_int_eq(timers[i].state, TIMER_IDLE);
}

GROUP(schedule, setup, NULL);

TEST(schedule, empty_heap_has_no_next_instant)
{
    ck_assert_int_eq(timer_heap_next_at_ns(&s), CLOCK_NEVER);
    ck_assert_ptr_null(timer_heap_take_due(&s, CLOCK_NEVER));
}

TEST(schedule, timers_are_taken_in_the_order_of_their_instants)
{
    add(0, 30);
    add(1, 10);
    add(2, 20);
    ck_assert_int_eq(timer_heap_next_at_ns(&s), 10);
    ck_assert_uint_eq(s.count, 3);
    expect_next(1);
    expect_next(2);
    expect_next(0);
    ck_assert_uint_eq(s.count, 0);
}

TEST(schedule, equal_instants_are_taken_in_the_order_they_were_added)
{
    for (int i = 0; i < 100; i++)
        add(i, 7);
    for (int i = 0; i < 100; i++)
        expect_next(i);
}

TEST(schedule, timer_added_again_goes_behind_its_equals)
{
    add(0, 7);
    add(1, 7);
    timer_heap_remove(&s, &timers[0]);
    add(0, 7);
    expect_next(1);
    expect_next(0);
}

TEST(schedule, timer_is_due_exactly_at_its_instant)
{
    add(0, 100);
    ck_assert_ptr_null(timer_heap_take_due(&s, 99));
    ck_assert_ptr_eq(timer_heap_take_due(&s, 100), &timers[0]);
    ck_assert_ptr_null(timer_heap_take_due(&s, 100));
}

TEST(schedule, timer_at_never_waits)
{
    add(0, CLOCK_NEVER);
    ck_assert_int_eq(timer_heap_next_at_ns(&s), CLOCK_NEVER);
    ck_assert_ptr_null(timer_heap_take_due(&s, CLOCK_NEVER - 1));
    timer_heap_remove(&s, &timers[0]);
    ck_assert_ptr_null(timer_heap_take_due(&s, CLOCK_NEVER));
}

TEST(schedule, removing_an_idle_timer_does_nothing)
{
    add(0, 1);
    timer_heap_remove(&s, &timers[1]);
    timer_heap_remove(&s, &timers[1]);
    ck_assert_uint_eq(s.count, 1);
    expect_next(0);
}

TEST_ABORTS(schedule, adding_a_waiting_timer_is_a_bug)
{
    add(0, 1);
    add(0, 2);
}

/* The earliest of those that wait, by looking at all of them. */
static struct timer *model_first(void)
{
    struct timer *first = NULL;

    for (int i = 0; i < MANY; i++) {
        struct timer *t = &timers[i];

        if (t->state == TIMER_WAITING && (!first || t->at_ns < first->at_ns ||
                                          (t->at_ns == first->at_ns && t->order < first->order)))
            first = t;
    }
    return first;
}

TEST(schedule, any_mix_of_adding_removing_and_taking_keeps_the_order)
{
    unsigned waiting = 0;

    srand(11);
    for (int step = 0; step < 20000; step++) {
        int i = rand() % MANY, what = rand() % 8;
        struct timer *first = what == 0 ? model_first() : NULL;

        if (what == 0) {
            ck_assert_ptr_eq(timer_heap_take_due(&s, CLOCK_NEVER), first);
            waiting -= first != NULL;
        } else if (timers[i].state == TIMER_WAITING) {
            timer_heap_remove(&s, &timers[i]);
            waiting--;
        } else {
            add(i, rand() % 500);
            waiting++;
        }
        ck_assert_uint_eq(s.count, waiting);
    }
    for (struct timer *first; (first = model_first());)
        ck_assert_ptr_eq(timer_heap_take_due(&s, CLOCK_NEVER), first);
    ck_assert_uint_eq(s.count, 0);
}

TEST(schedule, million_added_and_removed_timers_leave_an_empty_heap)
{
    for (int round = 0; round < 1000000 / MANY; round++) {
        for (int i = 0; i < MANY; i++)
            add(i, (i * 7919 + round) % 997);
        for (int i = 0; i < MANY; i++) /* from all places */
            timer_heap_remove(&s, &timers[i * 3 % MANY]);
        ck_assert_uint_eq(s.count, 0);
        ck_assert_ptr_null(s.root);
    }
}

TEST(schedule, a_fixed_rate_counts_from_the_last_instant_and_a_fixed_delay_from_now)
{
    ck_assert_int_eq(timer_next_at_ns(&(struct timer){.at_ns = 1000, .period_ns = 100}, 5000),
                     1100);
    ck_assert_int_eq(timer_next_at_ns(&(struct timer){.at_ns = 1000, .period_ns = -100}, 5000),
                     5100);
}

TEST(schedule, endless_period_does_not_overflow)
{
    struct timer rate = {.at_ns = 1000, .period_ns = INT64_MAX};
    struct timer delay = {.at_ns = 1000, .period_ns = -INT64_MAX};

    ck_assert_int_eq(timer_next_at_ns(&rate, 5000), CLOCK_NEVER);
    ck_assert_int_eq(timer_next_at_ns(&delay, 5000), CLOCK_NEVER);
}

TEST(schedule, late_periodic_timer_goes_behind_timers_due_by_then)
{
    add(0, 150);
    add(1, 200);
    add(2, 201);
    timers[3].at_ns = 100;
    timer_heap_add_again(&s, &timers[3], 200);
    timers[4].at_ns = 210;
    timer_heap_add_again(&s, &timers[4], 200);
    ck_assert_int_eq(timers[3].at_ns, 100); /* its next instant counts from that */
    for (int i = 0; i < 2; i++)
        expect_next(i);
    ck_assert_int_eq(timer_heap_next_at_ns(&s), 200);
    expect_next(3);
    expect_next(2);
    expect_next(4);
}

TEST(schedule, due_list_is_bounded)
{
    ck_assert_ptr_null(timer_heap_first_due(&s));
    for (int i = 0; i < 10; i++)
        add(i, i);
    timer_heap_fetch_due(&s, 4, 4, 77, 3);
    timer_heap_fetch_due(&s, 4, 4, 78, 3); /* none more */
    ck_assert_uint_eq(s.n_due, 3);
    ck_assert_uint_eq(s.count, 7);
    timer_heap_remove(&s, &timers[1]);
    timer_heap_fetch_due(&s, 4, 4, 79, 100);
    ck_assert_uint_eq(s.n_due, 4); /* 5 to 9 are not due */
    for (int i = 0; i < 5; i++) {
        if (i == 1)
            continue;
        ck_assert_ptr_eq(timer_heap_first_due(&s), &timers[i]);
        ck_assert_uint_eq(timers[i].order, i < 3 ? 77 : 79);
        timer_heap_remove(&s, &timers[i]);
    }
    ck_assert_ptr_null(timer_heap_first_due(&s));
    ck_assert_int_eq(timer_heap_next_at_ns(&s), 5);
}

TEST(schedule, silence_timers_wait_for_polled_input_and_delay_no_others)
{
    for (int i = 0; i < 4; i++)
        timer_init_silence(&timers[i], NULL);
    for (int i = 0; i < 8; i++)
        add(i, 2 * (i % 4)); /* 0 and 4 at 0, 1 and 5 at 2, ... */
    timer_heap_fetch_due(&s, 4, 2, 0, 100);
    ck_assert_uint_eq(s.n_due, 5);
    ck_assert_uint_eq(s.count, 3);
    for (int i = 0; i < 5; i++) {
        static const int order[] = {0, 4, 1, 5, 6};

        ck_assert_ptr_eq(timer_heap_first_due(&s), &timers[order[i]]);
        timer_heap_remove(&s, &timers[order[i]]);
    }
    ck_assert_int_eq(timer_heap_next_at_ns(&s), 4); /* the loop must poll, not sleep */
    timer_heap_remove(&s, &timers[2]);
    ck_assert_int_eq(timer_heap_next_at_ns(&s), 6);
    expect_next(3);
    expect_next(7);
}
