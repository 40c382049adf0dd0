/*
 * engine/loop, the race of starting, submitting and stopping: each task is run, dropped or refused,
 * and once.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/race.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;

#define RACES IF_SANITIZED(80, 400)

/* The timeout of a stop that cuts tasks off is worth a warning; here it is what is wanted. */
static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
}

static int submit_racing(unsigned number, struct task *t)
{
    return loop_submit(loop, (enum loop_queue)(number % 3), t);
}

GROUP(race, setup, NULL);

/* With its thread, or when that cannot be started at first. */
TEST_EACH(race, each_task_that_races_with_a_stop_is_run_or_dropped_or_refused, 2)
{
    EACH_ROUND(round, RACES)
    {
        if (_i == 1) /* the race's own threads come first */
            fault_plan(FAULT_PTHREAD_CREATE, RACE_THREADS, 1 + round % 3, EAGAIN);
        loop = loop_runner_create();
        race_begin(submit_racing);
        race_spin(round);
        loop_stop(loop, 0, round % 2 ? 0 : NS_PER_S);
        race_join();
        loop_runner_join(loop);
        race_check();
        loop_destroy(loop);
    }
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
}

struct submit_one {
    struct tasks_counted task;
    int rc;
};

static void *submit_one(void *arg)
{
    struct submit_one *one = arg;

    one->rc = loop_submit(loop, LOOP_TASKS, &one->task.task);
    return NULL;
}

/*
 * Whoever started the loop's thread is perhaps still on its way back from that when another thread
 * waits. If the loop ends before it submits, it is refused.
 */
TEST(race, waiting_for_a_loop_that_another_thread_has_just_started_does_wait)
{
    EACH_ROUND(round, RACES)
    {
        struct submit_one one;
        unsigned done;
        pthread_t starter;

        tasks_counted_init(&one.task);
        loop = loop_runner_create();
        pthread_create(&starter, NULL, submit_one, &one);
        while (loop_state(loop) == LOOP_NOT_STARTED)
            sched_yield();
        loop_stop(loop, 0, NS_PER_S);
        loop_runner_join(loop);
        ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
        done = atomic_load(&one.task.run) + atomic_load(&one.task.dropped);
        pthread_join(starter, NULL);
        ck_assert(one.rc == 0 || one.rc == -ESHUTDOWN);
        ck_assert_uint_eq(done, one.rc == 0);
        loop_destroy(loop);
    }
}

TEST(race, failed_start_is_reported_to_the_submitters_of_unaccepted_tasks)
{
    EACH_ROUND(round, RACES)
    {
        loop = loop_runner_create();
        fault_plan(FAULT_PTHREAD_CREATE, RACE_THREADS, 1 + round % 3, EAGAIN);
        race_begin(submit_racing);
        race_join();
        loop_runner_destroy(loop); /* runs all that was accepted; what stayed behind is dropped */
        ck_assert_uint_eq(race_check().dropped, 0);
    }
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
}
