/* support/race: see race.h. */
#include "support/race.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

struct racer {
    pthread_t thread;
    struct tasks_counted tasks[RACE_TASKS];
    int result[RACE_TASKS];
};

static struct racer racers[RACE_THREADS];
static int (*race_submit)(unsigned number, struct task *t);
static atomic_uint racing; /* threads that are ready, and the test */

static void *run(void *arg)
{
    struct racer *r = arg;

    atomic_fetch_add(&racing, 1);
    while (atomic_load(&racing) < RACE_THREADS + 1)
        sched_yield();
    for (unsigned i = 0; i < RACE_TASKS; i++)
        r->result[i] = race_submit(i, &r->tasks[i].task);
    return NULL;
}

void race_begin(int (*submit)(unsigned number, struct task *t))
{
    race_submit = submit;
    atomic_store(&racing, 0);
    for (unsigned i = 0; i < RACE_THREADS; i++) {
        tasks_counted_init_all(racers[i].tasks, RACE_TASKS);
        pthread_create(&racers[i].thread, NULL, run, &racers[i]);
    }
    while (atomic_load(&racing) < RACE_THREADS)
        sched_yield();
    atomic_fetch_add(&racing, 1);
}

void race_spin(unsigned round)
{
    for (unsigned spin = 0; spin < round % 400 * 25; spin++)
        atomic_load(&racing);
}

void race_join(void)
{
    for (unsigned i = 0; i < RACE_THREADS; i++)
        pthread_join(racers[i].thread, NULL);
}

struct race_outcome race_check(void)
{
    struct race_outcome all = {0};

    for (unsigned i = 0; i < RACE_THREADS; i++)
        for (unsigned j = 0; j < RACE_TASKS; j++) {
            unsigned was_run = atomic_load(&racers[i].tasks[j].run);
            unsigned dropped = atomic_load(&racers[i].tasks[j].dropped);
            int rc = racers[i].result[j];

            ck_assert(rc == 0 || rc == -ESHUTDOWN || rc == -EAGAIN);
            ck_assert_uint_eq(was_run + dropped, rc == 0);
            all.run += was_run;
            all.dropped += dropped;
            all.refused += rc != 0;
        }
    return all;
}
