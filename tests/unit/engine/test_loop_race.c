/*
 * engine/loop, the race of starting, submitting and stopping: each task is run, dropped or refused,
 * and once.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;

#define RACERS     4
#define RACE_TASKS 50

#ifdef __SANITIZE_THREAD__
#define RACES 200
#else
#define RACES 1000
#endif

struct racer {
    pthread_t thread;
    struct tasks_counted tasks[RACE_TASKS];
    int result[RACE_TASKS];
};

static struct racer racers[RACERS];
static atomic_uint racing;

/* The timeout of a stop that cuts tasks off is worth a warning; here it is what is wanted. */
static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
}

static void *race(void *arg)
{
    struct racer *r = arg;

    atomic_fetch_add(&racing, 1);
    while (atomic_load(&racing) < RACERS + 1)
        sched_yield();
    for (int i = 0; i < RACE_TASKS; i++)
        r->result[i] = loop_submit(loop, (enum loop_queue)(i % 3), &r->tasks[i].task);
    return NULL;
}

static void race_begin(void)
{
    atomic_store(&racing, 0);
    for (int i = 0; i < RACERS; i++) {
        for (int j = 0; j < RACE_TASKS; j++)
            tasks_counted_init(&racers[i].tasks[j]);
        pthread_create(&racers[i].thread, NULL, race, &racers[i]);
    }
    while (atomic_load(&racing) < RACERS)
        sched_yield();
    atomic_fetch_add(&racing, 1);
}

static void race_check(void)
{
    for (int i = 0; i < RACERS; i++)
        for (int j = 0; j < RACE_TASKS; j++) {
            unsigned run = atomic_load(&racers[i].tasks[j].run);
            unsigned dropped = atomic_load(&racers[i].tasks[j].dropped);
            int rc = racers[i].result[j];

            ck_assert(rc == 0 || rc == -ESHUTDOWN || rc == -EAGAIN);
            ck_assert_uint_eq(run + dropped, rc == 0);
        }
}

static void race_once(unsigned round)
{
    loop = loop_runner_create();
    race_begin();
    for (unsigned spin = 0; spin < round % 400 * 25; spin++)
        atomic_load(&racing); /* another moment in each round */
    loop_stop(loop, 0, round % 2 ? 0 : NS_PER_S);
    for (int i = 0; i < RACERS; i++)
        pthread_join(racers[i].thread, NULL);
    loop_join(loop);
    race_check();
    loop_destroy(loop);
}

START_TEST(each_task_that_races_with_a_stop_is_run_or_dropped_or_refused)
{
    for (unsigned round = 0; round < RACES; round++)
        race_once(round);
}
END_TEST

START_TEST(so_it_is_when_every_other_thread_cannot_be_started)
{
    for (unsigned round = 0; round < RACES; round++) {
        /* The racers' own threads come first. */
        fault_plan(FAULT_PTHREAD_CREATE, RACERS, 1 + round % 3, EAGAIN);
        race_once(round);
    }
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
}
END_TEST

static void *submit_one(void *arg)
{
    struct tasks_counted *t = arg;

    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t->task), 0);
    return NULL;
}

/*
 * Whoever started the loop's thread is perhaps still on its way back from that when another thread
 * waits.
 */
START_TEST(waiting_for_a_loop_that_another_thread_has_just_started_does_wait)
{
    for (unsigned round = 0; round < RACES; round++) {
        struct tasks_counted t;
        pthread_t starter;

        tasks_counted_init(&t);
        loop = loop_runner_create();
        pthread_create(&starter, NULL, submit_one, &t);
        while (loop_state(loop) == LOOP_NOT_STARTED)
            sched_yield();
        loop_stop(loop, 0, NS_PER_S);
        loop_join(loop);
        ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
        ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 1);
        pthread_join(starter, NULL);
        loop_destroy(loop);
    }
}
END_TEST

START_TEST(a_start_that_fails_is_told_to_those_whose_tasks_nobody_has)
{
    for (unsigned round = 0; round < RACES; round++) {
        loop = loop_runner_create();
        fault_plan(FAULT_PTHREAD_CREATE, RACERS, 1 + round % 3, EAGAIN);
        race_begin();
        for (int i = 0; i < RACERS; i++)
            pthread_join(racers[i].thread, NULL);
        loop_runner_destroy(loop); /* runs all that was accepted; what stayed behind is dropped */
        race_check();
        for (int i = 0; i < RACERS; i++)
            for (int j = 0; j < RACE_TASKS; j++)
                ck_assert_uint_eq(atomic_load(&racers[i].tasks[j].dropped), 0);
    }
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine/loop_race");
    TCase *tc = suite_group(suite, "race");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, each_task_that_races_with_a_stop_is_run_or_dropped_or_refused);
    tcase_add_test(tc, so_it_is_when_every_other_thread_cannot_be_started);
    tcase_add_test(tc, waiting_for_a_loop_that_another_thread_has_just_started_does_wait);
    tcase_add_test(tc, a_start_that_fails_is_told_to_those_whose_tasks_nobody_has);
    return suite_run(suite);
}
