/*
 * sessions/session_set: a walk sees each session that was there at its begin once, whatever ends or
 * comes meanwhile.
 */
#include "engine/visit.h"
#include "service/session.h"
#include "sessions/session_set.h"
#include "support/suite.h"

#define SESSIONS 6

static struct session_set set;
static struct session_set_walk walk;
static struct session sessions[SESSIONS + 1];

static void setup(void)
{
    session_set_init(&set);
    session_set_walk_init(&walk);
    for (unsigned i = 0; i < SESSIONS; i++)
        session_set_add(&set, &sessions[i]);
}

static void expect(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        ck_assert_ptr_eq(session_set_next(&walk), &sessions[i]);
}

GROUP(session_set, setup, NULL);

TEST(session_set, sessions_are_walked_in_the_order_in_which_they_were_added)
{
    ck_assert(!session_set_walks(&walk));
    session_set_begin(&walk, &set);
    ck_assert(session_set_walks(&walk));
    expect(0, SESSIONS - 1);
    ck_assert(!session_set_is_through(&walk));
    expect(SESSIONS - 1, SESSIONS);
    ck_assert(session_set_is_through(&walk));
    ck_assert_ptr_null(session_set_next(&walk));
    session_set_end(&walk);
    ck_assert(!session_set_walks(&walk));
    for (unsigned i = 1; i < SESSIONS; i++)
        ck_assert_uint_gt(sessions[i].order, sessions[i - 1].order);
}

TEST(session_set, the_end_of_the_next_session_moves_each_walk_on)
{
    struct session_set_walk other;

    session_set_walk_init(&other);
    session_set_begin(&walk, &set);
    session_set_begin(&other, &set);
    expect(0, 2);
    session_set_remove(&set, &sessions[2]);
    session_set_remove(&set, &sessions[3]);
    session_set_remove(&set, &sessions[0]);
    expect(4, SESSIONS);
    ck_assert_ptr_null(session_set_next(&walk));
    ck_assert_ptr_eq(session_set_next(&other), &sessions[1]);
    ck_assert_ptr_eq(session_set_next(&other), &sessions[4]);
    session_set_end(&other);
    session_set_remove(&set, &sessions[5]);
    ck_assert_ptr_null(session_set_next(&walk));
}

TEST(session_set, sessions_added_during_a_walk_are_not_part_of_it)
{
    session_set_begin(&walk, &set);
    session_set_add(&set, &sessions[SESSIONS]);
    expect(0, SESSIONS);
    ck_assert_ptr_null(session_set_next(&walk));
    session_set_end(&walk);
    session_set_begin(&walk, &set);
    expect(0, SESSIONS + 1);
}

TEST(session_set, set_is_empty_when_all_sessions_have_ended)
{
    session_set_begin(&walk, &set);
    for (unsigned i = 0; i < SESSIONS; i++)
        session_set_remove(&set, &sessions[i]);
    ck_assert_ptr_null(session_set_next(&walk));
    session_set_add(&set, &sessions[0]);
    ck_assert_ptr_null(session_set_next(&walk));
}

/* ---- in steps ---- */

static unsigned n_visited;

static bool visit(void *cookie, struct session *s)
{
    ck_assert_ptr_eq(s, (struct session *)cookie + n_visited);
    n_visited++;
    return false;
}

static void skip(unsigned i)
{
    session_set_remove(&set, &sessions[i]);
    n_visited++;
}

/* More steps on a busy machine: a step also ends with its time. */
static unsigned steps_until_through(unsigned max)
{
    unsigned n = 1;

    while (!session_set_step(&walk, max, visit, sessions))
        n++;
    return n;
}

TEST(session_set, a_step_goes_on_where_the_last_one_stopped)
{
    session_set_begin(&walk, &set);
    ck_assert_uint_ge(steps_until_through(2), SESSIONS / 2);
    ck_assert_uint_eq(n_visited, SESSIONS);
    session_set_end(&walk);
    n_visited = 0;
    session_set_begin(&walk, &set); /* begins anew */
    ck_assert_uint_ge(steps_until_through(2), SESSIONS / 2);
    ck_assert_uint_eq(n_visited, SESSIONS);
}

/* The next session, or all that are left. */
TEST_EACH(session_set, sessions_that_end_between_steps_do_not_stop_the_walk, 2)
{
    session_set_begin(&walk, &set);
    ck_assert(!session_set_step(&walk, 1, visit, sessions));
    ck_assert_uint_eq(n_visited, 1);
    for (unsigned i = 1; i < (_i == 0 ? 2 : SESSIONS); i++)
        skip(i);
    steps_until_through(2);
    ck_assert_uint_eq(n_visited, SESSIONS);
}

TEST(session_set, a_visit_in_steps_begins_its_walk_and_ends_it)
{
    for (unsigned i = 0; i < 2; i++) {
        n_visited = 0;
        while (session_set_go_on(&walk, &set, visit, sessions) == VISIT_NEXT_TURN)
            ck_assert(session_set_walks(&walk));
        ck_assert(!session_set_walks(&walk));
        ck_assert_uint_eq(n_visited, SESSIONS);
    }
}
