/*
 * stress/signals: ten thousand signals, at random moments, to the thread of a loop that has little
 * to do. None of them ends the loop, is taken for a poll that misbehaves, or makes it spin; tasks
 * are run as ever.
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "stress/stress.h"
#include "support/loop_thread.h"

#define NAP_MAX_NS 60000
#define TASK_EACH  64
#define ASLEEP_NS  (50 * NS_PER_MS)

/* A signal costs a turn, a task one or two. What the loop does by itself is less than this. */
#define TURNS_MORE 100

struct noted {
    struct task task;
    atomic_bool run;
};

static struct loop *loop;
static atomic_uint n_handled;

static void noted_run(struct task *t)
{
    atomic_store(&CONTAINER_OF(t, struct noted, task)->run, true);
}

static void noted_drop(struct task *t)
{
    (void)t;
    STRESS_CHECK(!"dropped");
}

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_handled, 1);
}

/* One signal: two that wait at the same time would be handled as one. */
static void interrupt(const struct loop_thread *thread, unsigned *seed)
{
    const struct timespec nap = {.tv_nsec = rand_r(seed) % NAP_MAX_NS};
    unsigned handled = atomic_load(&n_handled);

    if (rand_r(seed) % 2)
        nanosleep(&nap, NULL);
    STRESS_CHECK(pthread_kill(thread->thread, SIGUSR1) == 0);
    while (atomic_load(&n_handled) == handled)
        sched_yield();
}

static void run_one(struct noted *t)
{
    atomic_store(&t->run, false);
    STRESS_CHECK(loop_submit(loop, LOOP_TASKS, &t->task) == 0);
    while (!atomic_load(&t->run))
        sched_yield();
}

/* Returns how many signals. */
static uint64_t interrupt_all(uint64_t load, const struct loop_thread *thread, uint64_t *tasks)
{
    static const struct task_type type = {.name = "noted", .run = noted_run, .drop = noted_drop};
    struct noted t = {.task.type = &type};
    unsigned seed = 1;
    uint64_t n;

    for (n = 0; stress_goes_on(n, load); n++) {
        interrupt(thread, &seed);
        if (n % TASK_EACH == 0) {
            run_one(&t);
            ++*tasks;
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    struct loop_conf conf = {.name = "stress",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 1024,
                             .rebuild_threshold = 512};
    uint64_t load = stress_load(argc, argv, 10000), n, tasks = 0;
    struct loop_stats before, after;
    struct loop_thread thread;

    STRESS_CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    STRESS_CHECK(loop_create(&loop, &conf) == 0);
    STRESS_CHECK(loop_thread_find(&thread, loop) == 0);
    loop_stats(loop, &before);
    n = interrupt_all(load, &thread, &tasks);
    while (!loop_thread_sleeps(&thread, ASLEEP_NS))
        ; /* on a busy machine it takes a while to get there */
    loop_stats(loop, &after);
    STRESS_CHECK(after.turns - before.turns <= n + 2 * tasks + TURNS_MORE);
    STRESS_CHECK(after.rebuilds == 0);
    STRESS_CHECK(loop_state(loop) == LOOP_STARTED);
    printf("signals: %" PRIu64 " handled in %" PRIu64 " turns, with %" PRIu64
           " tasks; then asleep\n",
           n, after.turns - before.turns, tasks);
    loop_stop(loop, 0, 20 * NS_PER_S);
    STRESS_CHECK(loop_join_until(loop, CLOCK_NEVER) == 0);
    loop_destroy(loop);
    return EXIT_SUCCESS;
}
