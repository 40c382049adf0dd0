/*
 * engine/grace: over is called when no loop can be using what was taken out of sight any more,
 * once, and not before.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "engine/grace.h"
#include "support/graces.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

/* ---- who is waited for ---- */

GROUP(grace, graces_setup, graces_teardown);

TEST(grace, grace_period_wakes_no_loop_and_ends_once_after_a_turn_of_each_loop)
{
    for (unsigned i = 0; i < LOOPS; i++)
        observe_until_asleep(loop_group_at(graces.group, i));
    graces_begin();
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&graces.over), 0);
    graces_start_all();
    UNTIL(atomic_load(&graces.over) == 1);
    graces_start_all();
    ck_assert_uint_eq(atomic_load(&graces.over), 1);
}

TEST(grace, grace_period_begun_now_wakes_loops_and_ends_those_begun_before)
{
    struct grace *grace;

    for (unsigned i = 0; i < LOOPS; i++)
        observe_until_asleep(loop_group_at(graces.group, i));
    graces_begin();
    ck_assert_int_eq(grace_create(&grace, graces.group, graces_on_over, &graces.over), 0);
    grace_begin_now(grace);
    UNTIL(atomic_load(&graces.over) == 2);
}

TEST_EACH(grace, grace_period_does_not_end_before_a_blocked_loop_has_run_a_task, LOOPS)
{
    unsigned held = (unsigned)_i;
    struct tasks_block block;

    graces_start_all();
    tasks_block_begin(&block, loop_group_at(graces.group, held));
    graces_begin();
    for (unsigned i = 0; i < LOOPS; i++)
        if (i != held) {
            graces_come_round(i);
            graces_come_round(i); /* behind the visit at the end of the first turn */
        }
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&graces.over), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&graces.over) == 1);
    ck_assert_ptr_eq(atomic_load(&graces.over_on),
                     loop_group_at(graces.group, held)); /* the last tells */
}

TEST(grace, grace_period_without_threads_ends_at_once_and_starts_none)
{
    graces_begin();
    ck_assert_uint_eq(atomic_load(&graces.over), 1);
    ck_assert_ptr_null(atomic_load(&graces.over_on));
    for (unsigned i = 0; i < LOOPS; i++)
        ck_assert_int_eq(loop_state(loop_group_at(graces.group, i)), LOOP_NOT_STARTED);
    ck_assert_uint_eq(process_loops(), 0);
}

TEST(grace, a_loop_without_a_thread_is_not_waited_for)
{
    graces_come_round(1);
    graces_begin();
    graces_come_round(1);
    UNTIL(atomic_load(&graces.over) == 1);
    ck_assert_int_eq(loop_state(loop_group_at(graces.group, 0)), LOOP_NOT_STARTED);
    ck_assert_int_eq(loop_state(loop_group_at(graces.group, 2)), LOOP_NOT_STARTED);
}

static void begin_here(void *arg)
{
    (void)arg;
    graces_begin();
    ck_assert_uint_eq(atomic_load(&graces.over), 0);
}

TEST(grace, grace_period_begun_in_a_task_does_not_end_before_the_task)
{
    graces_come_round(0);
    loop_runner_call(loop_group_at(graces.group, 0), begin_here, NULL);
    UNTIL(atomic_load(&graces.over) == 1);
}

TEST(grace, grace_period_never_begun_is_freed_without_its_callback)
{
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, graces.group, graces_on_over, &graces.over), 0);
    grace_destroy(grace);
    grace_destroy(NULL);
    ck_assert_uint_eq(atomic_load(&graces.over), 0);
}

TEST(grace, each_of_many_concurrent_grace_periods_ends_once)
{
    pthread_t callers[CALLERS];

    graces_start_all();
    graces_callers_begin(callers);
    graces_callers_join(callers);
    graces_start_all();
    for (unsigned i = 0; i < CALLERS; i++)
        UNTIL(atomic_load(&graces.overs[i]) == CALLS);
    graces_start_all();
    for (unsigned i = 0; i < CALLERS; i++)
        ck_assert_uint_eq(atomic_load(&graces.overs[i]), CALLS);
}

/* ---- what it is for ---- */

#define WORDS   16
#define WRITERS 2
#define BOXES   1500 /* of each writer */

/* All words are the same while it may be read. */
struct box {
    unsigned words[WORDS];
};

static _Atomic(struct box *) boxes[WRITERS];
static atomic_bool reading_over;
static atomic_uint boxes_freed, reads;

static void free_box(void *cookie)
{
    struct box *b = cookie;

    for (unsigned i = 0; i < WORDS; i++)
        b->words[i] = i; /* whoever reads it now notices, sanitizer or not */
    free(b);
    atomic_fetch_add(&boxes_freed, 1);
}

static struct box *new_box(unsigned word)
{
    struct box *b = malloc(sizeof(*b));

    ck_assert_ptr_nonnull(b);
    for (unsigned i = 0; i < WORDS; i++)
        b->words[i] = word;
    return b;
}

/* Reads all the time, and gives other tasks of the loop their turn. */
static void read_boxes(struct task *t)
{
    for (unsigned w = 0; w < WRITERS; w++) {
        const struct box *b = atomic_load(&boxes[w]);
        unsigned first = b->words[0];

        for (unsigned i = 0; i < WORDS; i++)
            ck_assert_uint_eq(b->words[i], first);
        ck_assert_uint_eq(first % WRITERS, w);
    }
    atomic_fetch_add(&reads, 1);
    if (!atomic_load(&reading_over))
        ck_assert_int_eq(loop_submit(loop_current(), LOOP_TASKS, t), 0);
}

static void drop_reader(struct task *t)
{
    (void)t;
    ck_abort_msg("a reader was dropped");
}

static const struct task_type reader_type = {
    .name = "reader", .run = read_boxes, .drop = drop_reader};

static void *replace_boxes(void *arg)
{
    unsigned w = (unsigned)(uintptr_t)arg;

    for (unsigned n = 1; n <= BOXES; n++) {
        struct box *old = atomic_load(&boxes[w]);
        struct grace *grace;

        ck_assert_int_eq(grace_create(&grace, graces.group, free_box, old), 0);
        atomic_store(&boxes[w], new_box(n * WRITERS + w));
        grace_begin(grace);
        if (n % 32 == 0)
            usleep(500); /* the readers are to come in between, and the visits not to pile up */
    }
    return NULL;
}

/* The loops get their threads, and with them their readers, while the writers are at it. */
TEST(grace, readers_see_no_freed_object_and_each_replaced_object_is_freed)
{
    struct task readers[LOOPS];
    pthread_t writers[WRITERS];

    for (uintptr_t w = 0; w < WRITERS; w++)
        atomic_store(&boxes[w], new_box((unsigned)w));
    for (uintptr_t w = 0; w < WRITERS; w++)
        pthread_create(&writers[w], NULL, replace_boxes, (void *)w);
    for (unsigned i = 0; i < LOOPS; i++) {
        readers[i].type = &reader_type;
        ck_assert_int_eq(loop_submit(loop_group_at(graces.group, i), LOOP_TASKS, &readers[i]), 0);
        PAUSE_MS(3);
    }
    for (unsigned w = 0; w < WRITERS; w++)
        pthread_join(writers[w], NULL);
    UNTIL(atomic_load(&boxes_freed) == WRITERS * BOXES);
    atomic_store(&reading_over, true);
    graces_end_group();
    ck_assert_uint_gt(atomic_load(&reads), LOOPS);
    for (unsigned w = 0; w < WRITERS; w++)
        free(atomic_load(&boxes[w]));
}
