/*
 * reload/process_change: which parts a start and a reload prepare, commit and cancel, in which
 * order, and what is left when a part cannot be prepared.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reload/process_change.h"
#include "support/suite.h"

/* The parts of these tests: each writes down what it is asked for. */
#define BOTH    (PROCESS_STARTS | PROCESS_RELOADS)
#define WAITING 6 /* this part reloads on another thread */

static struct process_change change;
static char calls[512];
static int results[PROCESS_STEPS];

static void note(char what, unsigned i)
{
    size_t len = strlen(calls);

    snprintf(calls + len, sizeof(calls) - len, "%s%c%u", len > 0 ? " " : "", what, i);
}

static int prepare(unsigned i, const struct process_change *c)
{
    note('p', i);
    if (results[i] < 0)
        return results[i];
    return i == WAITING && c->phase == PROCESS_RELOADS ? -EINPROGRESS : 0;
}

/* Not all parts of the table have all three. */
#define UNUSED __attribute__((unused))

#define PART(i)                                             \
    UNUSED static int prepare_##i(struct process_change *c) \
    {                                                       \
        return prepare(i, c);                               \
    }                                                       \
    UNUSED static void commit_##i(struct process_change *c) \
    {                                                       \
        ck_assert_ptr_eq(c, &change);                       \
        note('c', i);                                       \
    }                                                       \
    UNUSED static void cancel_##i(struct process_change *c) \
    {                                                       \
        ck_assert_int_eq(c->rc, change.rc);                 \
        note('x', i);                                       \
    }

PART(0)
PART(1)
PART(2)
PART(3)
PART(4)
PART(5)
PART(6)
PART(7)
PART(8)
PART(9)
PART(10)

const struct process_step process_steps[PROCESS_STEPS] = {
    {PROCESS_STARTS, prepare_0, NULL, cancel_0},
    {PROCESS_STARTS, prepare_1, commit_1, cancel_1},
    {PROCESS_STARTS, prepare_2, NULL, NULL},
    {BOTH, prepare_3, commit_3, cancel_3},
    {BOTH, prepare_4, commit_4, cancel_4},
    {PROCESS_STARTS, prepare_5, NULL, cancel_5},
    {BOTH, prepare_6, commit_6, cancel_6},
    {PROCESS_STARTS, prepare_7, commit_7, cancel_7},
    {BOTH, NULL, commit_8, cancel_8},
    {PROCESS_RELOADS, prepare_9, NULL, cancel_9},
    {PROCESS_STARTS, prepare_10, NULL, cancel_10},
};

static int begin(enum process_phase phase)
{
    calls[0] = '\0';
    change = (struct process_change){.phase = phase};
    return process_change_begin(&change);
}

static int go_on(int rc)
{
    calls[0] = '\0';
    return process_change_go_on(&change, rc);
}

GROUP(process_change, NULL, NULL);

TEST(process_change, a_start_prepares_all_its_parts_then_commits)
{
    ck_assert_int_eq(begin(PROCESS_STARTS), 0);
    ck_assert_str_eq(calls, "p0 p1 p2 p3 p4 p5 p6 p7 p10 c1 c3 c4 c6 c7 c8");
}

TEST(process_change, a_reload_prepares_what_can_change_and_commits_all)
{
    ck_assert_int_eq(begin(PROCESS_RELOADS), -EINPROGRESS);
    ck_assert_str_eq(calls, "p3 p4 p6");
    ck_assert_int_eq(go_on(0), 0);
    ck_assert_str_eq(calls, "p9 c1 c3 c4 c6 c7 c8");
}

/* The parts prepared so far are cancelled, the last one first; nothing is committed. */
TEST_EACH(process_change, a_start_that_cannot_prepare_a_part_cancels_the_others, PROCESS_STEPS)
{
    static const char *const wanted[PROCESS_STEPS] = {
        [0] = "p0",
        [1] = "p0 p1 x0",
        [2] = "p0 p1 p2 x1 x0",
        [3] = "p0 p1 p2 p3 x1 x0",
        [4] = "p0 p1 p2 p3 p4 x3 x1 x0",
        [5] = "p0 p1 p2 p3 p4 p5 x4 x3 x1 x0",
        [6] = "p0 p1 p2 p3 p4 p5 p6 x5 x4 x3 x1 x0",
        [7] = "p0 p1 p2 p3 p4 p5 p6 p7 x6 x5 x4 x3 x1 x0",
        [10] = "p0 p1 p2 p3 p4 p5 p6 p7 p10 x8 x7 x6 x5 x4 x3 x1 x0",
    };

    results[_i] = -EMFILE;
    if (wanted[_i]) {
        ck_assert_int_eq(begin(PROCESS_STARTS), -EMFILE);
        ck_assert_str_eq(calls, wanted[_i]);
        ck_assert_int_eq(change.rc, -EMFILE);
    } else {
        ck_assert_int_eq(begin(PROCESS_STARTS), 0);
    }
}

TEST_EACH(process_change, a_reload_that_cannot_prepare_a_part_cancels_the_others, PROCESS_STEPS)
{
    static const char *const wanted[PROCESS_STEPS] = {
        [3] = "p3", [4] = "p3 p4 x3", [6] = "p3 p4 p6 x4 x3", [9] = "p9 x8 x6 x4 x3"};
    int rc;

    results[_i] = -ENOMEM;
    rc = begin(PROCESS_RELOADS);
    if (_i >= 7) {
        ck_assert_int_eq(rc, -EINPROGRESS);
        rc = go_on(0);
    }
    if (wanted[_i]) {
        ck_assert_int_eq(rc, -ENOMEM);
        ck_assert_str_eq(calls, wanted[_i]);
    }
}

TEST(process_change, a_part_that_fails_later_cancels_all_that_were_prepared)
{
    ck_assert_int_eq(begin(PROCESS_RELOADS), -EINPROGRESS);
    ck_assert_int_eq(go_on(-ECANCELED), -ECANCELED);
    ck_assert_str_eq(calls, "x6 x4 x3");
    ck_assert_int_eq(change.rc, -ECANCELED);
}

TEST_EACH(process_change, the_end_closes_all_parts_of_a_start, 2)
{
    ck_assert_int_eq(begin(PROCESS_STARTS), 0);
    calls[0] = '\0';
    change.rc = _i == 0 ? 0 : -EPERM;
    process_change_close(change.process, change.next, change.rc);
    ck_assert_str_eq(calls, "x10 x8 x7 x6 x5 x4 x3 x1 x0");
}
