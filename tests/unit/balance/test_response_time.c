/* balance/response_time: averages, waits that go on, how differences fade; by a clock of ours */
#include "balance/response_time.h"
#include "base/clock.h"
#include "support/suite.h"

#define MS(n) ((int64_t)(n)*NS_PER_MS)

static struct response_time a, b;
static int64_t now_ns;

static void setup(void)
{
    a = b = (struct response_time){.connect = {.average_ns = 0}};
    now_ns = 1000 * NS_PER_S;
}

static void measure(struct response_time *t, int64_t took_ns, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        response_time_ended(&t->first_byte, took_ns, now_ns);
}

static uint64_t average_ms(const struct response_time *t)
{
    return (response_time_average_ns(&t->first_byte) + NS_PER_MS / 2) / NS_PER_MS;
}

/* How many times as slow ${t} is as ${other}, in hundredths. */
static uint64_t ratio(const struct response_time *t, const struct response_time *other)
{
    struct response_time_estimate one = response_time_estimate(t, now_ns),
                                  two = response_time_estimate(other, now_ns);

    response_time_compare(&one, &two);
    return one.ns * 100 / two.ns;
}

GROUP(response_time, setup, NULL);

TEST(response_time, first_measurement_is_the_average)
{
    ck_assert(!response_time_is_measured(&a.first_byte));
    measure(&a, MS(80), 1);
    ck_assert(response_time_is_measured(&a.first_byte));
    ck_assert_uint_eq(average_ms(&a), 80);
}

TEST(response_time, a_slower_answer_counts_a_quarter_and_a_faster_one_an_eighth)
{
    measure(&a, MS(80), 1);
    measure(&a, MS(160), 1);
    ck_assert_uint_eq(average_ms(&a), 100);
    measure(&a, MS(20), 1);
    ck_assert_uint_eq(average_ms(&a), 90);
}

TEST(response_time, equal_answers_leave_the_average_as_it_is)
{
    for (int i = 0; i < 1000; i++, now_ns += MS(i))
        measure(&a, 123456, 1);
    ck_assert_uint_eq(response_time_average_ns(&a.first_byte), 123456);
}

TEST(response_time, an_answer_after_a_pause_counts_more)
{
    measure(&a, MS(80), 1);
    now_ns += RESPONSE_TIME_HALF_NS;
    measure(&a, MS(20), 1);
    ck_assert_uint_eq(average_ms(&a), 50);
    now_ns += 100 * RESPONSE_TIME_HALF_NS;
    measure(&a, MS(7), 1);
    ck_assert_uint_eq(average_ms(&a), 7);
}

TEST(response_time, fall_from_an_hour_to_a_microsecond_comes_to_an_end)
{
    measure(&a, 3600 * NS_PER_S, 1);
    measure(&a, NS_PER_US, 400);
    ck_assert_uint_lt(response_time_average_ns(&a.first_byte), 2 * NS_PER_US);
}

TEST(response_time, connecting_and_answering_are_added)
{
    measure(&a, MS(30), 1);
    response_time_ended(&a.connect, MS(10), now_ns);
    ck_assert_uint_eq(response_time_estimate(&a, now_ns).ns, MS(40));
}

TEST(response_time, difference_halves_with_the_age_of_the_older_measurement)
{
    measure(&a, MS(1000), 1);
    measure(&b, MS(10), 1);
    ck_assert_uint_ge(ratio(&a, &b), 9900);
    now_ns += RESPONSE_TIME_HALF_NS;
    measure(&b, MS(10), 1); /* only `a` is old */
    ck_assert_uint_ge(ratio(&a, &b), 5000);
    ck_assert_uint_le(ratio(&a, &b), 5100);
    now_ns += 40 * RESPONSE_TIME_HALF_NS;
    ck_assert_uint_eq(ratio(&a, &b), 100);
    ck_assert_uint_eq(ratio(&b, &a), 100);
}

TEST(response_time, difference_never_turns_round)
{
    measure(&a, MS(1000), 1);
    measure(&b, MS(10), 1);
    for (int i = 0; i < 1000; i++, now_ns += RESPONSE_TIME_HALF_NS / 7)
        ck_assert_uint_ge(ratio(&a, &b), 100);
}

TEST(response_time, endpoint_without_a_measurement_counts_as_the_other)
{
    ck_assert_uint_eq(ratio(&a, &b), 100);
    measure(&a, MS(50), 1);
    ck_assert_uint_eq(ratio(&a, &b), 100);
    ck_assert_uint_eq(ratio(&b, &a), 100);
}

TEST(response_time, wait_that_goes_on_counts_once_it_is_above_the_average)
{
    measure(&a, MS(10), 1);
    measure(&b, MS(10), 1);
    response_time_began(&a.first_byte, now_ns);
    now_ns += MS(5);
    ck_assert_uint_eq(response_time_estimate(&a, now_ns).ns, MS(10));
    response_time_began(&a.first_byte, now_ns); /* the first one counts */
    now_ns += MS(95);
    ck_assert_uint_eq(response_time_estimate(&a, now_ns).ns, MS(100));
    ck_assert_uint_ge(ratio(&a, &b), 900);
    measure(&a, MS(10), 1); /* an answer: the others' clients may be the reason */
    ck_assert_uint_eq(response_time_estimate(&a, now_ns).ns, MS(10));
}

TEST(response_time, stall_of_an_endpoint_without_a_measurement_is_seen)
{
    measure(&b, MS(10), 1);
    response_time_began(&a.connect, now_ns);
    now_ns += MS(200);
    measure(&b, MS(10), 1);
    ck_assert_uint_ge(ratio(&a, &b), 1900);
}

TEST(response_time, silent_client_keeps_others_away_for_a_while_only)
{
    measure(&a, MS(10), 1);
    response_time_began(&a.first_byte, now_ns);
    now_ns += RESPONSE_TIME_HALF_NS + 1;
    ck_assert_uint_eq(response_time_estimate(&a, now_ns).ns, MS(10));
    response_time_began(&a.first_byte, now_ns); /* the next one tries the endpoint */
    now_ns += MS(300);
    ck_assert_uint_eq(response_time_estimate(&a, now_ns).ns, MS(300));
}

TEST(response_time, wait_that_was_given_up_raises_the_average_and_never_lowers_it)
{
    measure(&a, MS(100), 1);
    response_time_began(&a.first_byte, now_ns);
    response_time_failed(&a.first_byte, now_ns, now_ns + MS(1)); /* refused at once: not fast */
    ck_assert_uint_eq(average_ms(&a), 100);
    response_time_failed(&a.first_byte, now_ns, now_ns + MS(500));
    ck_assert_uint_eq(average_ms(&a), 200);
}

TEST(response_time, client_that_gives_up_while_others_are_answered_changes_nothing)
{
    response_time_began(&a.first_byte, now_ns);
    measure(&a, MS(10), 1);
    response_time_failed(&a.first_byte, now_ns, now_ns + 60 * NS_PER_S);
    ck_assert_uint_eq(average_ms(&a), 10);
}

TEST(response_time, continued_measurement_is_as_old_as_it_was)
{
    measure(&a, MS(1000), 1);
    response_time_restore(&b.first_byte, (uint64_t)MS(10), now_ns);
    ck_assert_uint_ge(ratio(&a, &b), 9900);
    response_time_restore(&b.first_byte, (uint64_t)MS(999), now_ns); /* this process knows better */
    ck_assert_uint_eq(average_ms(&b), 10);
}

TEST(response_time, clock_that_goes_back_and_times_below_0_do_no_harm)
{
    measure(&a, -5, 1);
    now_ns -= NS_PER_S;
    measure(&a, MS(8), 1);
    ck_assert_uint_eq(average_ms(&a), 2);
    response_time_began(&a.first_byte, now_ns + NS_PER_S);
    ck_assert_uint_eq(response_time_estimate(&a, now_ns).ns,
                      response_time_average_ns(&a.first_byte));
}
