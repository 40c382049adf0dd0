/* engine/loop_group: more and fewer loops while they run. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_groups.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

/* ---- size ---- */

static void resize(unsigned n)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_group_prepare(loop_groups.group, n, &change), 0);
    loop_group_commit(&change);
}

static void end(void)
{
    loop_group_stop(loop_groups.group, 0, NS_PER_S);
    loop_runner_join_group(loop_groups.group);
    loop_group_destroy(loop_groups.group);
}

GROUP(size, NULL, NULL);

TEST(size, prepared_loops_are_not_seen_before_the_commit_and_start_no_thread)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_groups_create(2), 0);
    ck_assert_uint_eq(loop_group_max(loop_groups.group), MAX_LOOPS);
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 3, &change), 0);
    ck_assert_uint_eq(change.first, 2);
    ck_assert_uint_eq(change.end, 3);
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 2);
    ck_assert_str_eq(loop_name(loop_group_at(loop_groups.group, 2)), "work-2-3");
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_ne(loop_group_next(loop_groups.group), loop_group_at(loop_groups.group, 2));
    loop_group_commit(&change);
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 3);
    ck_assert_uint_eq(loop_group_in_use(loop_groups.group), 3);
    ck_assert_uint_eq(process_loops(), 0);
    loop_runner_call(loop_group_at(loop_groups.group, 2), loop_groups_nothing, NULL);
    end();
}

static const enum chooser_kind kinds[] = {CHOOSER_ROUND_ROBIN, CHOOSER_LEAST_CONNECTIONS,
                                          CHOOSER_P2C, CHOOSER_SHUFFLED};

static unsigned number_of(const struct loop *loop)
{
    unsigned i = 0;

    while (loop_group_at(loop_groups.group, i) != loop)
        i++;
    return i;
}

/* Which loops ${n} connections that come and none that goes are given; a bit for each. */
static uint64_t chosen(unsigned n)
{
    unsigned given[MAX_LOOPS] = {0};
    uint64_t found = 0;

    while (n-- > 0) {
        struct loop *next = loop_group_next(loop_groups.group);

        loop_load_add(next, 1);
        given[number_of(next)]++;
    }
    for (unsigned i = 0; i < loop_group_size(loop_groups.group); i++) {
        found |= given[i] > 0 ? UINT64_C(1) << i : 0;
        loop_load_add(loop_group_at(loop_groups.group, i), -(int)given[i]);
    }
    return found;
}

static uint64_t first(unsigned n)
{
    return (UINT64_C(1) << n) - 1;
}

TEST_EACH(size, loops_in_use_are_picked_and_parked_loops_are_not, 3)
{
    static const unsigned sizes[] = {3, 8, 5, 1, 4, 8, 7, 16, 2, 16};

    ck_assert_int_eq(loop_groups_create_with(2, kinds[_i]), 0);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        resize(sizes[i]);
        ck_assert_uint_eq(loop_group_in_use(loop_groups.group), sizes[i]);
        ck_assert_uint_eq(chosen(sizes[i] * 64), first(sizes[i]));
        for (unsigned k = 0; k < loop_group_size(loop_groups.group); k++)
            ck_assert_int_eq(
                loop_group_uses(loop_groups.group, loop_group_at(loop_groups.group, k)),
                k < sizes[i]);
    }
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 16);
    end();
}

TEST(size, parked_loop_runs_its_tasks_and_is_used_again)
{
    struct loop *parked;

    ck_assert_int_eq(loop_groups_create(4), 0);
    parked = loop_group_at(loop_groups.group, 3);
    loop_runner_call(parked, loop_groups_nothing, NULL);
    resize(1);
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 4);
    ck_assert_int_eq(loop_state(parked), LOOP_STARTED);
    loop_runner_call(parked, loop_groups_nothing, NULL);
    tasks_block_begin(&loop_groups.block, parked);
    loop_load_add(loop_group_at(loop_groups.group, 0), 1);
    ck_assert_ptr_eq(loop_group_next(loop_groups.group), loop_group_at(loop_groups.group, 0));
    tasks_block_end(&loop_groups.block);
    resize(4);
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 4);
    ck_assert_ptr_eq(loop_group_at(loop_groups.group, 3), parked);
    ck_assert_uint_eq(chosen(8), first(4));
    end();
}

TEST(size, parked_loop_is_not_picked_when_all_in_use_have_ended)
{
    ck_assert_int_eq(loop_groups_create(2), 0);
    resize(1);
    loop_stop(loop_group_at(loop_groups.group, 0), 0, 0);
    ck_assert_ptr_null(loop_group_next(loop_groups.group));
    ck_assert_int_eq(loop_group_availability(loop_groups.group), LOOP_NOT_AVAILABLE);
    end();
}

TEST(size, cancelled_change_leaves_no_trace)
{
    struct loop_group_change change;
    unsigned before;

    ck_assert_int_eq(loop_groups_create(2), 0);
    before = process_descriptors();
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 7, &change), 0);
    ck_assert_uint_gt(process_descriptors(), before);
    loop_group_cancel(&change);
    ck_assert_uint_eq(process_descriptors(), before);
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 2);
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 1, &change), 0);
    loop_group_cancel(&change);
    ck_assert_uint_eq(chosen(4), first(2));
    resize(3);
    ck_assert_uint_eq(chosen(6), first(3));
    end();
}

static int prepare_seven(void *cookie)
{
    return loop_group_prepare(loop_groups.group, 7, cookie);
}

TEST(size, failed_allocation_for_a_loop_changes_nothing)
{
    struct loop_group_change change;
    unsigned before;

    ck_assert_int_eq(loop_groups_create(2), 0);
    before = process_descriptors();
    ck_assert_uint_ge(fault_each_allocation(prepare_seven, &change), 5);
    loop_group_cancel(&change);
    ck_assert_uint_eq(process_descriptors(), before);
    end();
}

TEST_EACH(size, lack_of_descriptors_for_a_loop_changes_nothing, 15)
{
    struct loop_group_change change;
    unsigned before;

    ck_assert_int_eq(loop_groups_create(2), 0);
    before = process_descriptors();
    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 12, &change), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 2);
    end();
}

TEST(size, new_loops_get_the_io_ratio_of_the_group)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_groups_create(1), 0);
    ck_assert_int_eq(loop_group_set_io_ratio(loop_groups.group, 70), 0);
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 3, &change), 0);
    ck_assert_int_eq(loop_group_set_io_ratio(loop_groups.group, 80), 0);
    loop_group_commit(&change);
    ck_assert_uint_eq(loop_groups_ratio_of(1), 80);
    ck_assert_uint_eq(loop_groups_ratio_of(2), 80);
    end();
}

TEST(size, loops_committed_after_a_stop_have_ended)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_groups_create(1), 0);
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 3, &change), 0);
    loop_group_stop(loop_groups.group, 0, 0);
    loop_group_commit(&change);
    ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_TERMINATED);
    ck_assert_ptr_null(loop_group_next(loop_groups.group));
    loop_group_destroy(loop_groups.group);
}

TEST_ABORTS(size, a_second_change_at_a_time_is_a_bug)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_groups_create(1), 0);
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 3, &change), 0);
    (void)!loop_group_prepare(loop_groups.group, 3, &change);
}

TEST_ABORTS(size, more_loops_than_the_maximum_are_a_bug)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_groups_create(1), 0);
    (void)!loop_group_prepare(loop_groups.group, MAX_LOOPS + 1, &change);
}

TEST_ABORTS(size, asking_for_a_loop_of_a_cancelled_change_is_a_bug)
{
    struct loop_group_change change;

    ck_assert_int_eq(loop_groups_create(1), 0);
    ck_assert_int_eq(loop_group_prepare(loop_groups.group, 3, &change), 0);
    loop_group_cancel(&change);
    (void)loop_group_at(loop_groups.group, 2);
}

/* ---- up and down under load ---- */

#define PRODUCERS 3
#define HANDOVERS 5000 /* of each */
#define ROUNDS    200

static atomic_uint handed, run_there, dropped_there;
static atomic_bool resized;

struct handover {
    struct task task;
    struct loop *to;
};

static void run_handover(struct task *t)
{
    struct handover *h = CONTAINER_OF(t, struct handover, task);

    ck_assert_ptr_eq(h->to, loop_current());
    loop_load_add(h->to, -1);
    atomic_fetch_add(&run_there, 1);
    free(h);
}

static void drop_handover(struct task *t)
{
    atomic_fetch_add(&dropped_there, 1);
    free(CONTAINER_OF(t, struct handover, task));
}

static const struct task_type handover_type = {
    .name = "hand-over", .run = run_handover, .drop = drop_handover};

static void hand_over(void)
{
    struct handover *h = malloc(sizeof(*h));

    ck_assert_ptr_nonnull(h);
    h->task.type = &handover_type;
    h->to = loop_group_next(loop_groups.group);
    if (h->to) {
        loop_load_add(h->to, 1);
        if (loop_submit(h->to, LOOP_CONTROL, &h->task) == 0) {
            atomic_fetch_add(&handed, 1);
            return;
        }
    }
    free(h);
}

static void *produce(void *arg)
{
    for (unsigned i = 0; i < HANDOVERS || !atomic_load(&resized); i++) {
        hand_over();
        if (loop_group_availability(loop_groups.group) == LOOP_FULL)
            PAUSE_MS(1);
    }
    return arg;
}

static void resize_often(void)
{
    struct loop_group_change change;

    for (unsigned i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(loop_group_prepare(loop_groups.group, 1 + i * 7 % (i / 10 + 2), &change),
                         0);
        if (i % 5 == 4)
            loop_group_cancel(&change);
        else
            loop_group_commit(&change);
        if (i % 2)
            PAUSE_MS(1);
    }
    atomic_store(&resized, true);
}

TEST_EACH(size, resizing_under_load_loses_no_task, 3)
{
    pthread_t producers[PRODUCERS];

    ck_assert_int_eq(loop_groups_create_with(1, kinds[_i]), 0);
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_create(&producers[i], NULL, produce, NULL);
    resize_often();
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    UNTIL(atomic_load(&run_there) == atomic_load(&handed));
    ck_assert_uint_gt(loop_group_size(loop_groups.group), 10);
    for (unsigned i = 0; i < loop_group_size(loop_groups.group); i++)
        ck_assert_uint_eq(loop_load(loop_group_at(loop_groups.group, i)), 0);
    end();
    ck_assert_uint_eq(atomic_load(&dropped_there), 0);
}

static void *stop_group(void *arg)
{
    loop_group_stop(loop_groups.group, 0, 0);
    return arg;
}

TEST(size, a_stop_in_the_middle_of_changes_ends_all_loops)
{
    pthread_t producer, stopper;

    log_lines_capture(LOG_LEVEL_ERROR); /* a stop that cuts tasks off is worth a warning */
    for (unsigned round = 0; round < 40; round++) {
        ck_assert_int_eq(loop_groups_create(1), 0);
        atomic_store(&resized, true);
        pthread_create(&producer, NULL, produce, NULL);
        pthread_create(&stopper, NULL, stop_group, NULL);
        for (unsigned n = 2; n < 6; n++)
            resize(n);
        pthread_join(stopper, NULL);
        pthread_join(producer, NULL);
        loop_runner_join_group(loop_groups.group);
        ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_TERMINATED);
        loop_group_destroy(loop_groups.group);
    }
}
