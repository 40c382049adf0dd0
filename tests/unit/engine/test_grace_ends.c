/* engine/grace: loops that start, park, leave or end during a grace period. */
#include <pthread.h>
#include <semaphore.h>

#include "engine/grace.h"
#include "support/graces.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static void end_loop(unsigned i)
{
    loop_stop(loop_group_at(graces.group, i), 0, 0);
    loop_runner_join(loop_group_at(graces.group, i));
}

GROUP(grace, graces_setup, graces_teardown);

TEST(grace, loops_that_have_ended_are_not_waited_for)
{
    graces_start_all();
    end_loop(0);
    graces_begin();
    graces_come_round(1);
    graces_come_round(2);
    UNTIL(atomic_load(&graces.over) == 1);
    end_loop(1);
    end_loop(2);
    graces_begin();
    ck_assert_uint_eq(atomic_load(&graces.over), 2);
    ck_assert_ptr_null(atomic_load(&graces.over_on));
}

/* With its timeout over, the loop drops the visit instead of running it. */
TEST(grace, grace_period_ends_without_a_loop_that_stops_first)
{
    struct tasks_block block;

    graces_start_all();
    tasks_block_begin(&block, loop_group_at(graces.group, 1));
    graces_begin();
    loop_stop(loop_group_at(graces.group, 1), 0, 0);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&graces.over), 0); /* what it has read it may still use */
    tasks_block_end(&block);
    loop_runner_join(loop_group_at(graces.group, 1));
    graces_come_round(0);
    graces_come_round(2);
    UNTIL(atomic_load(&graces.over) == 1);
}

/* ---- a group that grows and shrinks ---- */

static void resize(unsigned n)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_group_prepare(graces.group, n, &change), 0);
    loop_group_commit(&change);
}

/* Twice: behind the visit at the end of a turn. */
static void come_round_all_but(unsigned held)
{
    for (unsigned n = 0; n < 2; n++)
        for (unsigned i = 0; i < loop_group_size(graces.group); i++)
            if (i != held)
                graces_come_round(i);
}

/* The loops that come in between read what is about to be replaced. */
TEST_EACH(grace, grace_period_waits_for_loops_added_before_it_begins, 3 * LOOPS)
{
    unsigned held = (unsigned)_i;
    struct tasks_block block;
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, graces.group, graces_on_over, &graces.over), 0);
    resize(3 * LOOPS);
    for (unsigned i = 0; i < 3 * LOOPS; i++)
        graces_come_round(i);
    tasks_block_begin(&block, loop_group_at(graces.group, held));
    grace_begin(grace);
    for (unsigned n = 0; n < 3; n++)
        come_round_all_but(held);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&graces.over), 0);
    tasks_block_end(&block);
    for (unsigned n = 0; n < 3; n++)
        come_round_all_but(3 * LOOPS);
    UNTIL(atomic_load(&graces.over) == 1);
}

TEST(grace, grace_period_does_not_wait_for_loops_added_after_it_began)
{
    struct tasks_block block;

    graces_start_all();
    graces_begin();
    resize(LOOPS + 1);
    tasks_block_begin(&block, loop_group_at(graces.group, LOOPS));
    come_round_all_but(LOOPS);
    UNTIL(atomic_load(&graces.over) == 1);
    tasks_block_end(&block);
    graces_come_round(LOOPS);
}

TEST(grace, a_parked_loop_is_waited_for)
{
    struct tasks_block block;

    graces_start_all();
    resize(1);
    tasks_block_begin(&block, loop_group_at(graces.group, 2));
    graces_begin();
    come_round_all_but(2);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&graces.over), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&graces.over) == 1);
}

TEST(grace, grace_period_ends_once_when_added_loops_stop)
{
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, graces.group, graces_on_over, &graces.over), 0);
    resize(3 * LOOPS);
    for (unsigned i = 0; i < 3 * LOOPS; i++)
        graces_come_round(i);
    for (unsigned i = 0; i < 3 * LOOPS; i += 2)
        end_loop(i);
    grace_begin(grace);
    graces_end_group();
    ck_assert_uint_eq(atomic_load(&graces.over), 1);
}

/* ---- the end of loops ---- */

static sem_t dropping, dropped;

static void drop_slowly(struct task *t)
{
    (void)t;
    sem_post(&dropping);
    while (sem_wait(&dropped) < 0)
        ;
}

static void never_run(struct task *t)
{
    ck_abort_msg("run: %s", t->type->name);
}

static const struct task_type slow_type = {
    .name = "slow drop", .run = never_run, .drop = drop_slowly};

static struct task slow = {.type = &slow_type};

/* While the loop stops: accepted, and dropped as its time is over. */
static void submit_slow(struct task *t)
{
    (void)t;
    ck_assert_int_eq(loop_submit(loop_current(), LOOP_TASKS, &slow), 0);
}

/* What runs in drop() may have read the old pointer, and use it until it returns. */
TEST(grace, loop_that_refuses_tasks_is_waited_for_until_it_has_ended)
{
    static const struct task_type at_stop_type = {.name = "at stop", .run = submit_slow};
    struct task at_stop = {.type = &at_stop_type};
    struct loop *loop = loop_group_at(graces.group, 1);

    sem_init(&dropping, 0, 0);
    sem_init(&dropped, 0, 0);
    loop_at_stop(loop, &at_stop);
    graces_come_round(1);
    loop_stop(loop, 0, 0);
    while (sem_wait(&dropping) < 0)
        ;
    ck_assert_int_eq(loop_state(loop), LOOP_SHUTDOWN);
    graces_begin();
    ck_assert_uint_eq(atomic_load(&graces.over), 0);
    sem_post(&dropped);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&graces.over), 1);
}

TEST(grace, grace_periods_end_once_when_the_group_starts_and_stops_meanwhile)
{
    pthread_t callers[CALLERS];

    for (useconds_t round = 0; round < 40; round++) {
        graces_callers_begin(callers);
        for (unsigned i = 0; i < round % (LOOPS + 1); i++)
            graces_come_round(i);
        usleep(round * 20);
        loop_group_stop(graces.group, 0, round % 2 ? NS_PER_S : 0);
        graces_callers_join(callers);
        loop_runner_join_group(graces.group);
        for (unsigned i = 0; i < CALLERS; i++)
            ck_assert_uint_eq(atomic_load(&graces.overs[i]), CALLS);
        loop_group_destroy(graces.group);
        graces_setup();
    }
}
