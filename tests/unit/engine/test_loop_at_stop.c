/* engine/loop, the tasks that run when it begins to stop. */
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define MS(n) ((n)*NS_PER_MS)

static struct loop *loop;
static struct tasks_trace trace;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    loop = loop_runner_create();
    trace = (struct tasks_trace){.len = 0};
}

static void teardown(void)
{
    loop_destroy(loop);
}

GROUP(at_stop, setup, teardown);

TEST(at_stop, at_stop_tasks_run_once_in_their_order_before_the_end)
{
    struct tasks_traced first, second;

    tasks_traced_init(&first, &trace, '1');
    tasks_traced_init(&second, &trace, '2');
    loop_at_stop(loop, &first.task);
    loop_at_stop(loop, &second.task);
    loop_runner_stats(loop); /* starts it */
    ck_assert_uint_eq(trace.len, 0);
    loop_stop(loop, MS(50), MS(1000));
    loop_runner_join(loop);
    ck_assert_str_eq(trace.text, "12");
}

TEST(at_stop, at_stop_tasks_of_a_loop_that_never_ran_are_dropped)
{
    struct tasks_traced first, second;

    tasks_traced_init(&first, &trace, '1');
    tasks_traced_init(&second, &trace, '2');
    loop_at_stop(loop, &first.task);
    loop_at_stop(loop, &second.task);
    loop_stop(loop, 0, 0);
    ck_assert_str_eq(trace.text, "!1!2");
}

struct adding {
    struct task task;
    struct tasks_traced added;
};

static void add_another(struct task *t)
{
    tasks_trace_add(&trace, 'a');
    loop_at_stop(loop, &CONTAINER_OF(t, struct adding, task)->added.task);
}

TEST(at_stop, an_at_stop_task_may_add_another)
{
    static const struct task_type type = {.name = "adding", .run = add_another};
    struct adding adding = {.task.type = &type};

    tasks_traced_init(&adding.added, &trace, 'b');
    loop_at_stop(loop, &adding.task);
    loop_runner_stats(loop); /* starts it */
    loop_stop(loop, 0, MS(1000));
    loop_runner_join(loop);
    ck_assert_str_eq(trace.text, "ab");
}

static void add_to_stop(void *arg)
{
    struct tasks_counted *t = arg;

    ck_assert_int_eq(loop_state(loop), LOOP_SHUTTING_DOWN);
    loop_at_stop(loop, &t->task);
    ck_assert_uint_eq(atomic_load(&t->run), 0); /* not inside the call */
}

TEST(at_stop, at_stop_task_added_during_the_shutdown_runs_at_once)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    loop_runner_stats(loop); /* starts it */
    loop_stop(loop, MS(2000), MS(20000));
    loop_runner_call(loop, add_to_stop, &t);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_int_eq(loop_state(loop), LOOP_SHUTTING_DOWN); /* long before the end */
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}
