/* engine/promise, its listeners: in which order and on which thread they are told. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "engine/promise.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/noted.h"
#include "support/suite.h"
#include "support/tasks.h"

static void listen_for(void *arg)
{
    struct noting *n = arg;

    promise_listen(&noted.promise, &n->listener);
    tasks_trace_add(&noted.trace, '.');
}

/* ---- order ---- */

GROUP(order, noted_setup, noted_teardown);

TEST_EACH(order, listeners_are_called_in_the_order_they_were_added, PLACES)
{
    struct noting n[26];

    noted_go_to((enum place)_i);
    for (int i = 0; i < 26; i++) {
        noted_noting_init(&n[i], (char)('a' + i));
        promise_listen(&noted.promise, &n[i].listener);
    }
    ck_assert_uint_eq(noted.trace.len, 0);
    noted_succeed_in((enum place)_i, &noted.promise);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "abcdefghijklmnopqrstuvwxyz");
}

TEST_EACH(order, listener_added_after_completion_is_called, PLACES)
{
    noted_noting_reset();
    noted_go_to((enum place)_i);
    promise_listen(&noted.promise, &noted.a.listener);
    noted_succeed_in((enum place)_i, &noted.promise);
    promise_listen(&noted.promise, &noted.b.listener);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "ab");
    promise_listen(&noted.promise, &noted.c.listener);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "abc");
}

struct late {
    struct task task;
    struct noting *listener;
};

static void late_run(struct task *t)
{
    listen_for(CONTAINER_OF(t, struct late, task)->listener);
}

static void late_drop(struct task *t)
{
    (void)t;
    ck_abort();
}

/*
 * The loop gets to the one that adds before the one that tells, and still adds behind the others.
 */
TEST(order, late_listener_is_called_after_earlier_ones_even_if_added_on_the_loop)
{
    static const struct task_type type = {.name = "late", .run = late_run, .drop = late_drop};
    struct late late = {.task.type = &type, .listener = &noted.c};
    struct tasks_block block;

    noted_noting_reset();
    promise_listen(&noted.promise, &noted.a.listener);
    tasks_block_begin(&block, noted.loop);
    ck_assert_int_eq(loop_submit(noted.loop, LOOP_CONTROL, &late.task), 0);
    noted_succeed(&noted.promise);
    promise_listen(&noted.promise, &noted.b.listener);
    ck_assert_uint_eq(noted.trace.len, 0);
    tasks_block_end(&block);
    noted_settle(FROM_OUTSIDE);
    ck_assert_str_eq(noted.trace.text, ".abc");
}

TEST_EACH(order, listener_added_by_a_listener_is_called_after_that_has_returned, PLACES)
{
    noted_noting_reset();
    noted_go_to((enum place)_i);
    noted.a.adds = &noted.c;
    noted.c.adds = &noted.d;
    promise_listen(&noted.promise, &noted.a.listener);
    promise_listen(&noted.promise, &noted.b.listener);
    noted_succeed_in((enum place)_i, &noted.promise);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "aAbcCd");
}

static void *listen_for_b(void *arg)
{
    promise_listen(arg, &noted.b.listener);
    return NULL;
}

static void note_while_another_adds(struct promise_listener *l, struct promise *p)
{
    pthread_t adder;

    noted_note(l, p);
    pthread_create(&adder, NULL, listen_for_b, p);
    pthread_join(adder, NULL);
    tasks_trace_add(&noted.trace, '.');
}

TEST_EACH(order, listener_added_by_another_thread_during_a_call_is_called_after_it, PLACES)
{
    noted_noting_reset();
    noted_go_to((enum place)_i);
    noted.a.listener.done = note_while_another_adds;
    promise_listen(&noted.promise, &noted.a.listener);
    noted_succeed_in((enum place)_i, &noted.promise);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "a.b");
}

/* ---- where ---- */

static struct loop *told_on;
static pthread_t told_by;

static void note_where(struct promise_listener *l, struct promise *p)
{
    noted_note(l, p);
    told_on = loop_current();
    told_by = pthread_self();
}

GROUP(where, noted_setup, noted_teardown);

TEST_RANGE(where, listener_is_called_on_the_loop_of_the_promise, ON_ITS_LOOP, FROM_OUTSIDE + 1)
{
    noted_noting_reset();
    noted_go_to((enum place)_i);
    noted.a.listener.done = note_where;
    promise_listen(&noted.promise, &noted.a.listener);
    noted_succeed_in((enum place)_i, &noted.promise);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "a");
    ck_assert_ptr_eq(told_on, noted.loop);
}

TEST_RANGE(where, without_a_running_loop_the_listener_is_called_by_the_completing_thread,
           WITHOUT_LOOP, PLACES)
{
    noted_noting_reset();
    noted_go_to((enum place)_i);
    noted.a.listener.done = noted.b.listener.done = note_where;
    promise_listen(&noted.promise, &noted.a.listener);
    noted_succeed(&noted.promise);
    ck_assert_str_eq(noted.trace.text, "a");
    ck_assert(pthread_equal(told_by, pthread_self()));
    listen_for(&noted.b);
    ck_assert_str_eq(noted.trace.text, "ab.");
    ck_assert(pthread_equal(told_by, pthread_self()));
}

static void succeed_and_listen(void *arg)
{
    promise_listen(&noted.promise, &noted.a.listener);
    noted_succeed(&noted.promise);
    tasks_trace_add(&noted.trace, '.');
    listen_for(arg);
}

TEST(where, completion_on_the_loop_calls_the_listener_without_a_task)
{
    struct loop_stats stats;

    noted_noting_reset();
    loop_runner_call(noted.loop, succeed_and_listen, &noted.b);
    ck_assert_str_eq(noted.trace.text, "a.b.");
    loop_runner_stop(noted.loop);
    loop_stats(noted.loop, &stats);
    ck_assert_uint_eq(stats.tasks_run, 1); /* the call */
}

TEST(where, completion_without_listeners_submits_no_task)
{
    ck_assert(promise_cancel(&noted.promise));
    ck_assert(!promise_succeed(&noted.promise));
    ck_assert_int_eq(loop_state(noted.loop), LOOP_NOT_STARTED);
}

TEST(where, a_loop_that_cannot_start_its_thread_loses_no_listener)
{
    noted_noting_reset();
    noted.a.listener.done = note_where;
    promise_listen(&noted.promise, &noted.a.listener);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    noted_succeed(&noted.promise);
    ck_assert_str_eq(noted.trace.text, "a");
    ck_assert(pthread_equal(told_by, pthread_self()));
    ck_assert_int_eq(loop_state(noted.loop), LOOP_NOT_STARTED);
}

TEST(where, a_loop_that_drops_the_task_loses_no_listener)
{
    struct tasks_block block;
    struct loop_stats stats;

    noted_noting_reset();
    noted.a.adds = &noted.b;
    promise_listen(&noted.promise, &noted.a.listener);
    tasks_block_begin(&block, noted.loop);
    noted_succeed(&noted.promise);
    loop_stop(noted.loop, 0, 0); /* no time for what is queued */
    tasks_block_end(&block);
    loop_runner_join(noted.loop);
    ck_assert_str_eq(noted.trace.text, "aAb");
    loop_stats(noted.loop, &stats);
    ck_assert_uint_eq(stats.tasks_dropped, 1);
}
