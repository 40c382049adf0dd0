/*
 * stress/wakeup: single tasks at random moments around the moment in which the loop goes to sleep. A wake-up that is
 * lost leaves a task to wait for ever, or until the next one comes.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "engine/loop.h"
#include "stress/stress.h"

#define PRODUCERS    2
#define WAIT_MAX_NS  (1 * NS_PER_S) /* a busy machine included */
#define SLEEP_MAX_NS 60000

struct hammer {
    pthread_t thread;
    struct task task;
    atomic_bool run;
    int64_t longest_ns;
    unsigned seed;
};

static struct loop *loop;
static uint64_t n_each;

static void hammer_run(struct task *t)
{
    atomic_store(&CONTAINER_OF(t, struct hammer, task)->run, true);
}

static void hammer_drop(struct task *t)
{
    (void)t;
    STRESS_CHECK(!"dropped");
}

static const struct task_type hammer_type = {
    .name = "hammer", .run = hammer_run, .drop = hammer_drop};

/* One task, and how long it took to run. */
static int64_t hammer_once(struct hammer *h)
{
    int64_t began_at_ns = clock_now_ns(), waited_ns = 0;

    atomic_store(&h->run, false);
    STRESS_CHECK(loop_submit(loop, LOOP_TASKS, &h->task) == 0);
    while (!atomic_load(&h->run)) {
        waited_ns = clock_now_ns() - began_at_ns;
        STRESS_CHECK(waited_ns < WAIT_MAX_NS);
        sched_yield();
    }
    return waited_ns;
}

static void *hammer(void *arg)
{
    struct hammer *h = arg;

    for (uint64_t i = 0; i < n_each; i++) {
        unsigned what = (unsigned)rand_r(&h->seed) % 4;
        struct timespec pause = {.tv_nsec = rand_r(&h->seed) % SLEEP_MAX_NS};
        int64_t waited_ns = hammer_once(h);

        h->longest_ns = waited_ns > h->longest_ns ? waited_ns : h->longest_ns;
        if (what == 0)
            nanosleep(&pause, NULL); /* the loop is asleep by then */
        else
            for (long spin = 0; spin < pause.tv_nsec / 64; spin++)
                atomic_load(&h->run); /* it is about to be */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct loop_conf conf = {.name = "stress",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 1024};
    struct hammer hammers[PRODUCERS] = {0};
    struct loop_stats stats;
    int64_t longest_ns = 0;

    n_each = stress_load(argc, argv, 40000);
    STRESS_CHECK(loop_create(&loop, &conf) == 0);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        hammers[i].task.type = &hammer_type;
        hammers[i].seed = i + 1;
        STRESS_CHECK(pthread_create(&hammers[i].thread, NULL, hammer, &hammers[i]) == 0);
    }
    for (unsigned i = 0; i < PRODUCERS; i++) {
        pthread_join(hammers[i].thread, NULL);
        longest_ns = hammers[i].longest_ns > longest_ns ? hammers[i].longest_ns : longest_ns;
    }
    loop_stats(loop, &stats);
    loop_stop(loop, 0, NS_PER_S);
    loop_join(loop);
    loop_destroy(loop);
    printf("wakeup: %" PRIu64 " single tasks, %" PRIu64 " sleeps ended by %" PRIu64
           " system calls, the longest wait %.1f ms\n",
           n_each * PRODUCERS, stats.polls_blocking, stats.wakeups_sent,
           (double)longest_ns / (double)NS_PER_MS);
    return EXIT_SUCCESS;
}
