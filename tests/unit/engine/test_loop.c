/* engine/loop: the thread that starts by itself, and who has a task after it was submitted. */
#include <errno.h>
#include <string.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;
static struct tasks_block block;

static void setup(void)
{
    loop = loop_runner_create();
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static int submit(struct tasks_counted *t)
{
    return loop_submit(loop, LOOP_TASKS, &t->task);
}

static void nothing(void *arg)
{
    (void)arg;
}

GROUP(loop, setup, teardown);

TEST(loop, tasks_of_one_thread_run_once_and_in_order)
{
    struct tasks_trace trace = {.len = 0};
    struct tasks_traced tasks[26];

    for (int i = 0; i < 26; i++) {
        tasks_traced_init(&tasks[i], &trace, (char)('a' + i));
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &tasks[i].task), 0);
    }
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "abcdefghijklmnopqrstuvwxyz");
    setup();
}

TEST(loop, sleeping_loop_is_woken_by_one_system_call)
{
    struct tasks_counted t;
    struct loop_stats before, after;

    tasks_counted_init(&t);
    observe_until_asleep(loop);
    loop_stats(loop, &before);
    ck_assert_int_eq(submit(&t), 0);
    UNTIL(atomic_load(&t.run) == 1);
    loop_stats(loop, &after);
    ck_assert_uint_eq(after.wakeups_sent, before.wakeups_sent + 1);
}

TEST(loop, a_busy_loop_costs_no_system_call)
{
    struct tasks_counted tasks[1000];
    struct loop_stats before, after;

    tasks_block_begin(&block, loop);
    loop_stats(loop, &before);
    for (int i = 0; i < 1000; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(submit(&tasks[i]), 0);
    }
    loop_stats(loop, &after);
    tasks_block_end(&block);
    ck_assert_uint_eq(after.wakeups_sent, before.wakeups_sent);
    UNTIL(atomic_load(&tasks[999].run) == 1);
}

/*
 * What a task that submits another one sees of the loop at the time, and what that other one sees.
 */
struct relay {
    struct task first, second;
    struct loop_stats at_first, at_second;
    atomic_bool done;
};

static void relay_second(struct task *t)
{
    struct relay *r = CONTAINER_OF(t, struct relay, second);

    loop_stats(loop, &r->at_second);
    atomic_store(&r->done, true);
}

static void relay_first(struct task *t)
{
    static const struct task_type type = {.name = "second", .run = relay_second};
    struct relay *r = CONTAINER_OF(t, struct relay, first);

    r->second.type = &type;
    loop_stats(loop, &r->at_first);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &r->second), 0);
}

TEST(loop, a_task_submitted_by_a_task_runs_before_the_loop_sleeps)
{
    static const struct task_type type = {.name = "first", .run = relay_first};
    struct relay r = {.first.type = &type};

    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &r.first), 0);
    UNTIL(atomic_load(&r.done));
    ck_assert_uint_eq(r.at_second.polls_blocking, r.at_first.polls_blocking);
    ck_assert_uint_eq(r.at_second.wakeups_sent, r.at_first.wakeups_sent);
}

TEST(loop, lazy_task_runs_in_the_next_turn_and_wakes_no_loop)
{
    struct tasks_trace trace = {.len = 0};
    struct tasks_traced lazy, normal;
    struct loop_stats before, after;

    tasks_traced_init(&lazy, &trace, 'l');
    tasks_traced_init(&normal, &trace, 'n');
    observe_until_asleep(loop);
    loop_stats(loop, &before);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &lazy.task), 0);
    PAUSE_MS(100);
    loop_stats(loop, &after);
    ck_assert_uint_eq(after.turns, before.turns);
    ck_assert_uint_eq(after.wakeups_sent, before.wakeups_sent);
    ck_assert_uint_eq(after.tasks_pending, 1);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &normal.task), 0);
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "ln");
    setup();
}

TEST(loop, a_lazy_task_starts_a_loop_that_has_no_thread)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &t.task), 0);
    UNTIL(atomic_load(&t.run) == 1);
}

TEST(loop, waiting_tasks_are_counted)
{
    struct tasks_counted tasks[5];
    struct loop_stats stats;

    tasks_block_begin(&block, loop);
    for (int i = 0; i < 5; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(submit(&tasks[i]), 0);
    }
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.tasks_pending, 6); /* with the one that runs */
    tasks_block_end(&block);
    UNTIL(atomic_load(&tasks[4].run) == 1);
    UNTIL((loop_stats(loop, &stats), stats.tasks_pending == 0));
    ck_assert_uint_eq(stats.tasks_run, 6);
    ck_assert_uint_eq(stats.tasks_dropped, 0);
}

TEST(loop, load_is_the_sum_of_the_changes)
{
    struct loop_stats stats;

    loop_load_add(loop, 3);
    loop_load_add(loop, -1);
    ck_assert_uint_eq(loop_load(loop), 2);
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.connections, 2);
}

TEST(loop, a_cookie_is_kept)
{
    ck_assert_ptr_null(loop_cookie(loop));
    loop_set_cookie(loop, &block);
    ck_assert_ptr_eq(loop_cookie(loop), &block);
}

TEST(loop, the_event_library_is_named)
{
    char text[64];

    loop_backend_text(text, sizeof(text));
    ck_assert_msg(strncmp(text, "libev 4.", 8) == 0 && strstr(text, "(epoll)"), "%s", text);
}

TEST(loop, thread_that_cannot_start_leaves_the_task_to_the_caller)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 2, EAGAIN);
    ck_assert_int_eq(submit(&t), -EAGAIN);
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &t.task), -EAGAIN);
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
    ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 0);
    ck_assert_int_eq(submit(&t), 0); /* now there is a thread */
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}

TEST(loop, loop_whose_thread_could_not_start_can_be_stopped)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(submit(&t), -EAGAIN);
    loop_runner_stop(loop);
    ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
    ck_assert_int_eq(submit(&t), -ESHUTDOWN);
}

TEST_EACH(loop, loop_without_descriptors_is_not_created_and_leaks_none, 2)
{
    struct loop_conf conf = {.name = "none", .max_pending_tasks = 16};
    unsigned before = process_descriptors();
    struct loop *none;

    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(loop_create(&none, &conf), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST_EACH(loop, a_destroyed_loop_gives_its_descriptors_back, 2)
{
    unsigned before = process_descriptors();
    struct loop *other = loop_runner_create();

    if (_i)
        loop_runner_call(other, nothing, NULL);
    loop_runner_destroy(other);
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST_ABORTS(loop, scheduling_from_another_thread_is_a_bug)
{
    struct timer t;

    loop_schedule(loop, &t, 0);
}

static void join_it(void *arg)
{
    loop_runner_join(arg);
}

TEST_ABORTS(loop, waiting_for_a_loop_on_a_loop_is_a_bug)
{
    loop_runner_call(loop, join_it, loop);
}
