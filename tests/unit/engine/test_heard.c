/* engine/heard: which polls prove that all input was read, and how an absence extends deadlines. */
#include <errno.h>

#include "engine/heard.h"
#include "support/suite.h"

#define S(n) ((n)*NS_PER_S)

static struct heard h;

static void setup(void)
{
    h = (struct heard){.at_ns = 0};
}

GROUP(polls, setup, NULL);

TEST(polls, poll_with_few_events_covers_input_received_before_it)
{
    heard_poll(&h, 7, 0, 0);
    ck_assert_int_eq(h.at_ns, 7);
    heard_poll(&h, 8, HEARD_FEW - 1, 0);
    ck_assert_int_eq(h.at_ns, 8);
}

TEST(polls, poll_ended_by_a_signal_covers_no_input)
{
    heard_poll(&h, 7, 0, EINTR);
    ck_assert_int_eq(h.at_ns, 0);
}

TEST(polls, failed_polls_advance_the_time)
{
    heard_poll(&h, 7, 0, EBADF);
    ck_assert_int_eq(h.at_ns, 7);
    for (int i = 1; i <= HEARD_POLLS; i++)
        heard_poll(&h, 7 + i, HEARD_FEW, 0);
    ck_assert_int_eq(h.at_ns, 8);
}

TEST(polls, series_of_polls_with_many_events_covers_input_received_before_it)
{
    for (int i = 1; i < HEARD_POLLS; i++)
        heard_poll(&h, i, HEARD_FEW, 0);
    ck_assert_int_eq(h.at_ns, 0);
    heard_poll(&h, 100, HEARD_FEW, 0);
    ck_assert_int_eq(h.at_ns, 1);
    for (int i = 1; i < HEARD_POLLS; i++)
        heard_poll(&h, 100 + i, HEARD_FEW, 0);
    ck_assert_int_eq(h.at_ns, 1);
    heard_poll(&h, 200, HEARD_FEW, 0);
    ck_assert_int_eq(h.at_ns, 101);
}

TEST(polls, a_poll_with_few_events_ends_a_series)
{
    heard_poll(&h, 1, HEARD_FEW, 0);
    heard_poll(&h, 2, 0, 0);
    for (int i = 0; i < HEARD_POLLS; i++)
        heard_poll(&h, 3 + i, HEARD_FEW, 0);
    ck_assert_int_eq(h.at_ns, 3);
}

GROUP(absence, setup, NULL);

TEST(absence, deadline_is_extended_by_the_part_spent_in_an_absence)
{
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(5)), S(6));
    heard_note_absence(&h, S(2), S(5));
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(2)), S(6));
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(60)), S(64));
    ck_assert_int_eq(heard_due_ns(&h, S(3), S(1)), S(6)); /* as if it began at the end */
    ck_assert_int_eq(heard_due_ns(&h, S(1), CLOCK_NEVER), CLOCK_NEVER);
}

TEST(absence, deadlines_before_and_after_an_absence_are_unchanged)
{
    heard_note_absence(&h, S(2), S(5));
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(1)), S(2));
    ck_assert_int_eq(heard_due_ns(&h, S(5), S(1)), S(6));
}

TEST(absence, absence_noted_twice_counts_once)
{
    heard_note_absence(&h, 2000 * NS_PER_MS, 3000 * NS_PER_MS);
    heard_note_absence(&h, 1900 * NS_PER_MS, 3100 * NS_PER_MS);
    ck_assert_int_eq(heard_due_ns(&h, 1000 * NS_PER_MS, 1500 * NS_PER_MS), 3700 * NS_PER_MS);
    heard_note_absence(&h, 3100 * NS_PER_MS, 3300 * NS_PER_MS);
    ck_assert_int_eq(heard_due_ns(&h, 1000 * NS_PER_MS, 1500 * NS_PER_MS), 3900 * NS_PER_MS);
}

TEST(absence, short_absence_does_not_count)
{
    heard_note_absence(&h, S(2), S(2) + HEARD_ABSENCE_NS - 1);
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(2)), S(3));
}

TEST(absence, long_absence_counts_even_if_short_ones_follow)
{
    heard_note_absence(&h, S(2), S(5));
    for (int i = 0; i < 10; i++)
        heard_note_absence(&h, S(6) + i * HEARD_ABSENCE_NS, S(6) + (i + 1) * HEARD_ABSENCE_NS);
    heard_note_absence(&h, S(8), S(10));
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(2)), S(6));
    ck_assert_int_eq(heard_due_ns(&h, S(7), S(2)), S(11));
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(6)), S(12)); /* both */
}

TEST(absence, long_absence_is_forgotten_after_a_minute)
{
    heard_note_absence(&h, S(2), S(5));
    heard_note_absence(&h, S(70), S(71));
    heard_note_absence(&h, S(72), S(73));
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(2)), S(3));
    ck_assert_int_eq(heard_due_ns(&h, S(69), S(2)), S(72));
}

TEST(absence, deadline_is_reached_despite_endless_absences)
{
    int64_t now_ns = S(1), length_ns = HEARD_ABSENCE_NS;

    while (now_ns < heard_due_ns(&h, S(1), S(10))) {
        heard_note_absence(&h, now_ns, now_ns + length_ns);
        now_ns += length_ns;
    }
    ck_assert_int_le(now_ns, S(11) + 2 * length_ns);
}

TEST(absence, adopted_absences_of_another_loop_extend_deadlines)
{
    struct heard other = {.at_ns = 0};

    heard_note_absence(&other, S(2), S(5));
    heard_note_absence(&other, S(6), S(7));
    heard_note_absence(&h, S(3), S(4));
    heard_adopt(&h, &other);
    ck_assert_int_eq(heard_due_ns(&h, S(1), S(2)), S(6));
    ck_assert_int_eq(heard_due_ns(&h, S(6), S(1)), S(8));
    heard_adopt(&h, &other); /* twice counts once */
    ck_assert_int_eq(heard_due_ns(&h, S(6), S(1)), S(8));
}

TEST(absence, adopting_shorter_and_older_absences_keeps_the_own_ones)
{
    struct heard other = {.at_ns = 0};

    heard_note_absence(&other, S(1), S(2));
    heard_note_absence(&h, S(3), S(6));
    heard_note_absence(&h, S(7), S(8));
    heard_adopt(&h, &other);
    ck_assert_int_eq(heard_due_ns(&h, S(3), S(1)), S(7));
    ck_assert_int_eq(heard_due_ns(&h, S(7), S(1)), S(9));
}
