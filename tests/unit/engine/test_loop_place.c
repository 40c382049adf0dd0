/* engine/loop: the place of a due timer among the tasks of its loop. */
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

/* So many that a turn without I/O does not look for more when they have run. */
#define OTHERS 200

static struct loop *loop;
static struct tasks_trace trace;

static void setup(void)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS};

    loop = loop_runner_create_with(budget, 1024);
    trace = (struct tasks_trace){.len = 0};
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

/*
 * Schedules a timer, submits two tasks, and lasts longer than the quantum. The timer goes behind
 * those two.
 */
struct placing {
    struct task task;
    struct tasks_traced before[2], after;
    struct tasks_timer timer;
};

static void placing_run(struct task *t)
{
    struct placing *p = CONTAINER_OF(t, struct placing, task);
    int64_t end_at_ns = clock_now_ns() + 5 * NS_PER_MS;

    loop_schedule(loop, &p->timer.timer, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &p->before[i].task), 0);
    while (clock_now_ns() < end_at_ns)
        ; /* the turn ends here */
}

static void placing_init(struct placing *p)
{
    static const struct task_type type = {.name = "placing", .run = placing_run};

    p->task.type = &type;
    tasks_traced_init(&p->before[0], &trace, '1');
    tasks_traced_init(&p->before[1], &trace, '2');
    tasks_traced_init(&p->after, &trace, '3');
    p->before[0].then = &p->after; /* comes in when the timer has its place */
    p->before[0].then_queue = LOOP_TASKS;
    tasks_timer_init(&p->timer, &trace, 't');
}

static void read_length(void *arg)
{
    *(unsigned *)arg = trace.len;
}

static bool all_ran(void)
{
    unsigned len;

    loop_runner_call(loop, read_length, &len);
    return len == 4;
}

GROUP(place, setup, teardown);

TEST(place, due_timer_runs_behind_tasks_already_queued)
{
    struct placing p;

    placing_init(&p);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &p.task), 0);
    UNTIL(all_ran());
    ck_assert_str_eq(trace.text, "12t3");
}

TEST(place, due_timer_runs_behind_tasks_queued_after_many_others)
{
    static struct tasks_counted others[OTHERS];
    struct tasks_block block;
    struct placing p;

    placing_init(&p);
    tasks_block_begin(&block, loop);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &p.task), 0);
    for (int i = 0; i < OTHERS; i++) {
        tasks_counted_init(&others[i]);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &others[i].task), 0);
    }
    tasks_block_end(&block);
    UNTIL(all_ran());
    ck_assert_str_eq(trace.text, "12t3");
}
