/*
 * engine/grace: over is called when no loop can be using what was taken out of sight any more,
 * once, and not before.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "engine/grace.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define LOOPS 3

static struct loop_group *group;
static atomic_uint over;
static _Atomic(struct loop *) over_on; /* where it was called last */

static void setup(void)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = LOOPS,
        .max_loops = 3 * LOOPS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    log_lines_capture(LOG_LEVEL_WARNING); /* a stop that cuts tasks off is worth one */
    ck_assert_int_eq(loop_group_create(&group, &conf), 0);
}

static void end_group(void)
{
    loop_group_stop(group, 0, NS_PER_S);
    loop_runner_join_group(group);
}

static void teardown(void)
{
    end_group();
    loop_group_destroy(group);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Have loop ${i} come round, and start it if need be. */
static void come_round(unsigned i)
{
    loop_runner_call(loop_group_at(group, i), nothing, NULL);
}

static void start_all(void)
{
    for (unsigned i = 0; i < LOOPS; i++)
        come_round(i);
}

static void end_loop(unsigned i)
{
    loop_stop(loop_group_at(group, i), 0, 0);
    loop_runner_join(loop_group_at(group, i));
}

static void on_over(void *cookie)
{
    atomic_store(&over_on, loop_current());
    atomic_fetch_add((atomic_uint *)cookie, 1);
}

static void begin(void)
{
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, group, on_over, &over), 0);
    grace_begin(grace);
}

/* ---- who is waited for ---- */

GROUP(grace, setup, teardown);

TEST(grace, grace_period_wakes_no_loop_and_ends_once_after_a_turn_of_each_loop)
{
    for (unsigned i = 0; i < LOOPS; i++)
        observe_until_asleep(loop_group_at(group, i));
    begin();
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&over), 0);
    start_all();
    UNTIL(atomic_load(&over) == 1);
    start_all();
    ck_assert_uint_eq(atomic_load(&over), 1);
}

TEST_EACH(grace, grace_period_does_not_end_before_a_blocked_loop_has_run_a_task, LOOPS)
{
    unsigned held = (unsigned)_i;
    struct tasks_block block;

    start_all();
    tasks_block_begin(&block, loop_group_at(group, held));
    begin();
    for (unsigned i = 0; i < LOOPS; i++)
        if (i != held) {
            come_round(i);
            come_round(i); /* behind the visit at the end of the first turn */
        }
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&over), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&over) == 1);
    ck_assert_ptr_eq(atomic_load(&over_on), loop_group_at(group, held)); /* the last tells */
}

TEST(grace, grace_period_without_threads_ends_at_once_and_starts_none)
{
    begin();
    ck_assert_uint_eq(atomic_load(&over), 1);
    ck_assert_ptr_null(atomic_load(&over_on));
    for (unsigned i = 0; i < LOOPS; i++)
        ck_assert_int_eq(loop_state(loop_group_at(group, i)), LOOP_NOT_STARTED);
    ck_assert_uint_eq(process_loops(), 0);
}

TEST(grace, a_loop_without_a_thread_is_not_waited_for)
{
    come_round(1);
    begin();
    come_round(1);
    UNTIL(atomic_load(&over) == 1);
    ck_assert_int_eq(loop_state(loop_group_at(group, 0)), LOOP_NOT_STARTED);
    ck_assert_int_eq(loop_state(loop_group_at(group, 2)), LOOP_NOT_STARTED);
}

TEST(grace, loops_that_have_ended_are_not_waited_for)
{
    start_all();
    end_loop(0);
    begin();
    come_round(1);
    come_round(2);
    UNTIL(atomic_load(&over) == 1);
    end_loop(1);
    end_loop(2);
    begin();
    ck_assert_uint_eq(atomic_load(&over), 2);
    ck_assert_ptr_null(atomic_load(&over_on));
}

/* With its timeout over, the loop drops the visit instead of running it. */
TEST(grace, grace_period_ends_without_a_loop_that_stops_first)
{
    struct tasks_block block;

    start_all();
    tasks_block_begin(&block, loop_group_at(group, 1));
    begin();
    loop_stop(loop_group_at(group, 1), 0, 0);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&over), 0); /* what it has read it may still use */
    tasks_block_end(&block);
    loop_runner_join(loop_group_at(group, 1));
    come_round(0);
    come_round(2);
    UNTIL(atomic_load(&over) == 1);
}

/* ---- a group that grows and shrinks ---- */

static void resize(unsigned n)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_group_prepare(group, n, &change), 0);
    loop_group_commit(&change);
}

/* Twice: behind the visit at the end of a turn. */
static void come_round_all_but(unsigned held)
{
    for (unsigned n = 0; n < 2; n++)
        for (unsigned i = 0; i < loop_group_size(group); i++)
            if (i != held)
                come_round(i);
}

/* The loops that come in between read what is about to be replaced. */
TEST_EACH(grace, grace_period_waits_for_loops_added_before_it_begins, 3 * LOOPS)
{
    unsigned held = (unsigned)_i;
    struct tasks_block block;
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, group, on_over, &over), 0);
    resize(3 * LOOPS);
    for (unsigned i = 0; i < 3 * LOOPS; i++)
        come_round(i);
    tasks_block_begin(&block, loop_group_at(group, held));
    grace_begin(grace);
    for (unsigned n = 0; n < 3; n++)
        come_round_all_but(held);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&over), 0);
    tasks_block_end(&block);
    for (unsigned n = 0; n < 3; n++)
        come_round_all_but(3 * LOOPS);
    UNTIL(atomic_load(&over) == 1);
}

TEST(grace, grace_period_does_not_wait_for_loops_added_after_it_began)
{
    struct tasks_block block;

    start_all();
    begin();
    resize(LOOPS + 1);
    tasks_block_begin(&block, loop_group_at(group, LOOPS));
    come_round_all_but(LOOPS);
    UNTIL(atomic_load(&over) == 1);
    tasks_block_end(&block);
    come_round(LOOPS);
}

TEST(grace, a_parked_loop_is_waited_for)
{
    struct tasks_block block;

    start_all();
    resize(1);
    tasks_block_begin(&block, loop_group_at(group, 2));
    begin();
    come_round_all_but(2);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&over), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&over) == 1);
}

TEST(grace, grace_period_ends_once_when_added_loops_stop)
{
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, group, on_over, &over), 0);
    resize(3 * LOOPS);
    for (unsigned i = 0; i < 3 * LOOPS; i++)
        come_round(i);
    for (unsigned i = 0; i < 3 * LOOPS; i += 2)
        end_loop(i);
    grace_begin(grace);
    end_group();
    ck_assert_uint_eq(atomic_load(&over), 1);
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
    struct loop *loop = loop_group_at(group, 1);

    sem_init(&dropping, 0, 0);
    sem_init(&dropped, 0, 0);
    loop_at_stop(loop, &at_stop);
    come_round(1);
    loop_stop(loop, 0, 0);
    while (sem_wait(&dropping) < 0)
        ;
    ck_assert_int_eq(loop_state(loop), LOOP_SHUTDOWN);
    begin();
    ck_assert_uint_eq(atomic_load(&over), 0);
    sem_post(&dropped);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&over), 1);
}

static void begin_here(void *arg)
{
    (void)arg;
    begin();
    ck_assert_uint_eq(atomic_load(&over), 0);
}

TEST(grace, grace_period_begun_in_a_task_does_not_end_before_the_task)
{
    come_round(0);
    loop_runner_call(loop_group_at(group, 0), begin_here, NULL);
    UNTIL(atomic_load(&over) == 1);
}

TEST(grace, grace_period_never_begun_is_freed_without_its_callback)
{
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, group, on_over, &over), 0);
    grace_destroy(grace);
    grace_destroy(NULL);
    ck_assert_uint_eq(atomic_load(&over), 0);
}

/* ---- many at once ---- */

#define CALLERS 4
#define CALLS   100

static atomic_uint overs[CALLERS];

/* ${arg}: where overs are counted. */
static void *begin_many(void *arg)
{
    for (int i = 0; i < CALLS; i++) {
        struct grace *grace;

        ck_assert_int_eq(grace_create(&grace, group, on_over, arg), 0);
        grace_begin(grace);
    }
    return NULL;
}

static void callers_begin(pthread_t *callers)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        atomic_store(&overs[i], 0);
        pthread_create(&callers[i], NULL, begin_many, &overs[i]);
    }
}

static void callers_join(pthread_t *callers)
{
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
}

TEST(grace, each_of_many_concurrent_grace_periods_ends_once)
{
    pthread_t callers[CALLERS];

    start_all();
    callers_begin(callers);
    callers_join(callers);
    start_all();
    for (unsigned i = 0; i < CALLERS; i++)
        UNTIL(atomic_load(&overs[i]) == CALLS);
    start_all();
    for (unsigned i = 0; i < CALLERS; i++)
        ck_assert_uint_eq(atomic_load(&overs[i]), CALLS);
}

TEST(grace, grace_periods_end_once_when_the_group_starts_and_stops_meanwhile)
{
    pthread_t callers[CALLERS];

    for (useconds_t round = 0; round < 40; round++) {
        callers_begin(callers);
        for (unsigned i = 0; i < round % (LOOPS + 1); i++)
            come_round(i);
        usleep(round * 20);
        loop_group_stop(group, 0, round % 2 ? NS_PER_S : 0);
        callers_join(callers);
        loop_runner_join_group(group);
        for (unsigned i = 0; i < CALLERS; i++)
            ck_assert_uint_eq(atomic_load(&overs[i]), CALLS);
        loop_group_destroy(group);
        setup();
    }
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

        ck_assert_int_eq(grace_create(&grace, group, free_box, old), 0);
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
        ck_assert_int_eq(loop_submit(loop_group_at(group, i), LOOP_TASKS, &readers[i]), 0);
        PAUSE_MS(3);
    }
    for (unsigned w = 0; w < WRITERS; w++)
        pthread_join(writers[w], NULL);
    UNTIL(atomic_load(&boxes_freed) == WRITERS * BOXES);
    atomic_store(&reading_over, true);
    end_group();
    ck_assert_uint_gt(atomic_load(&reads), LOOPS);
    for (unsigned w = 0; w < WRITERS; w++)
        free(atomic_load(&boxes[w]));
}
