/* support/executor_runner: see executor_runner.h. */
#include "support/executor_runner.h"

#include <check.h>

#include "base/clock.h"
#include "support/until.h"

struct executor *executor_runner_create(unsigned threads, unsigned max_pending_tasks)
{
    struct executor_conf conf = {
        .name = "test", .pool = 1, .threads = threads, .max_pending_tasks = max_pending_tasks};
    struct executor *e;

    ck_assert_int_eq(executor_create(&e, &conf), 0);
    return e;
}

void executor_runner_end(struct executor *e)
{
    executor_stop(e, UNTIL_LIMIT_NS);
    ck_assert_int_eq(executor_join(e, 2 * UNTIL_LIMIT_NS), 0);
}

void executor_runner_destroy(struct executor *e)
{
    executor_runner_end(e);
    executor_destroy(e);
}

void executor_runner_block(struct executor *e, struct tasks_block *b)
{
    tasks_block_init(b);
    ck_assert_int_eq(executor_submit(e, &b->task), 0);
    tasks_block_wait(b);
}

struct executor_stats executor_runner_stats(struct executor *e)
{
    struct executor_stats stats;

    executor_stats(e, &stats);
    return stats;
}
