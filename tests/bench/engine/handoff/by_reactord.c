/* by_reactord: reactord's own loop. */
#include "engine/handoff/contender.h"

#include "base/clock.h"
#include "common/die.h"
#include "engine/loop.h"

#include <stdlib.h>

/* As [worker] has them when nothing is configured. */
enum {
    IO_RATIO = 50,
    QUANTUM_MS = 10,
    MAX_PENDING_TASKS = 1000000,
    REBUILD_THRESHOLD = 512,
    STALL_MS = 500,
};

struct contender {
    struct loop *loop;
};

static void job_run(struct task *t)
{
    struct job *job = CONTAINER_OF(t, struct job, link.task);

    job->run(job);
}

static void job_drop(struct task *t)
{
    (void)t;
    die("a task was dropped");
}

static const struct task_type job_type = {.name = "job", .run = job_run, .drop = job_drop};

struct contender *contender_start(void)
{
    struct loop_conf conf = {.name = "handoff",
                             .budget = {.io_ratio = IO_RATIO, .quantum_ns = QUANTUM_MS * NS_PER_MS},
                             .max_pending_tasks = MAX_PENDING_TASKS,
                             .rebuild_threshold = REBUILD_THRESHOLD,
                             .stall_threshold_ns = STALL_MS * NS_PER_MS};
    struct contender *c = malloc(sizeof(*c));

    if (!c || loop_create(&c->loop, &conf) < 0)
        die("no loop could be created");
    return c;
}

void contender_submit(struct contender *c, struct job *job)
{
    job->link.task.type = &job_type;
    if (loop_submit(c->loop, LOOP_TASKS, &job->link.task) < 0)
        die("a task was refused");
}

void contender_stop(struct contender *c)
{
    loop_stop(c->loop, 0, NS_PER_S);
    if (loop_join_until(c->loop, CLOCK_NEVER) < 0)
        die("the loop did not end");
    loop_destroy(c->loop);
    free(c);
}
