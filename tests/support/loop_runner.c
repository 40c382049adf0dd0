/* support/loop_runner: see loop_runner.h. */
#include "support/loop_runner.h"

#include <check.h>
#include <semaphore.h>

#include "base/clock.h"
#include "support/until.h"

struct call {
    struct task task;
    void (*function)(void *arg);
    void *arg;
    sem_t done;
};

struct stats_call {
    struct loop *loop;
    struct loop_stats stats;
};

struct loop *loop_runner_create(void)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 100 * NS_PER_MS};

    return loop_runner_create_with(budget, 65536);
}

struct loop *loop_runner_create_with(struct budget_conf budget, unsigned max_pending_tasks)
{
    struct loop_conf conf = {
        .name = "test", .budget = budget, .max_pending_tasks = max_pending_tasks};
    struct loop *loop;

    ck_assert_int_eq(loop_create(&loop, &conf), 0);
    return loop;
}

static void call_run(struct task *t)
{
    struct call *call = CONTAINER_OF(t, struct call, task);

    call->function(call->arg);
    sem_post(&call->done);
}

static void call_drop(struct task *t)
{
    (void)t;
    ck_abort_msg("a call was dropped");
}

static const struct task_type call_type = {.name = "call", .run = call_run, .drop = call_drop};

void loop_runner_call(struct loop *loop, void (*function)(void *arg), void *arg)
{
    struct call call = {.task.type = &call_type, .function = function, .arg = arg};
    int rc;

    sem_init(&call.done, 0, 0);
    rc = loop_submit(loop, LOOP_CONTROL, &call.task);
    while (rc == 0 && sem_wait(&call.done) < 0)
        ;
    ck_assert_int_eq(rc, 0); /* allocates: not while ${function} has allocations fail */
    sem_destroy(&call.done);
}

void loop_runner_join(struct loop *loop)
{
    ck_assert_int_eq(loop_join_until(loop, CLOCK_NEVER), 0);
}

void loop_runner_join_group(struct loop_group *g)
{
    ck_assert_int_eq(loop_group_join_until(g, CLOCK_NEVER), 0);
}

void loop_runner_stop(struct loop *loop)
{
    loop_stop(loop, 0, 5 * NS_PER_S);
    loop_runner_join(loop);
}

void loop_runner_destroy(struct loop *loop)
{
    if (loop_state(loop) != LOOP_TERMINATED)
        loop_runner_stop(loop);
    loop_destroy(loop);
}

static void read_stats(void *arg)
{
    struct stats_call *call = arg;

    loop_stats(call->loop, &call->stats);
}

struct loop_stats loop_runner_stats(struct loop *loop)
{
    struct stats_call call = {.loop = loop};

    loop_runner_call(loop, read_stats, &call);
    return call.stats;
}

void loop_runner_turn(struct loop *loop)
{
    uint64_t turns = loop_runner_stats(loop).turns;

    UNTIL(loop_runner_stats(loop).turns > turns + 1);
}
