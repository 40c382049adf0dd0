/*
 * stress/wakeup: single tasks at random moments around the moment in which the loop goes to sleep. A wake-up that is
 * lost leaves its task to wait for ever. There is one producer only: another one's wake-up would hide the loss.
 */
#include <inttypes.h>
#include <sched.h>
#include <time.h>

#include "engine/loop.h"
#include "stress/stress.h"

#define WAIT_MAX_NS (1 * NS_PER_S) /* a busy machine included */
#define NAP_MAX_NS  60000
#define SPINS_MAX   400
#define SPIN_NS     (100 * NS_PER_US) /* then a wait is a long one, and perhaps for our own processor */

struct hammer {
    struct task task;
    atomic_bool run;
};

static struct loop *loop;

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
        if (waited_ns > SPIN_NS)
            sched_yield();
    }
    return waited_ns;
}

/* Let a random time pass: at first the loop is still awake, then about to sleep, and asleep when it was long. */
static void pause_a_moment(unsigned *seed)
{
    struct timespec nap = {.tv_nsec = rand_r(seed) % NAP_MAX_NS};
    atomic_uint spun = 0;

    if (rand_r(seed) % 16 == 0)
        nanosleep(&nap, NULL);
    else
        for (unsigned n = (unsigned)rand_r(seed) % SPINS_MAX; n > 0; n--)
            atomic_fetch_add_explicit(&spun, 1, memory_order_relaxed);
}

int main(int argc, char **argv)
{
    struct loop_conf conf = {.name = "stress",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 1024};
    struct hammer hammer = {.task.type = &hammer_type};
    uint64_t n = stress_load(argc, argv, 200000);
    int64_t longest_ns = 0;
    struct loop_stats stats;
    unsigned seed = 1;

    STRESS_CHECK(loop_create(&loop, &conf) == 0);
    for (uint64_t i = 0; i < n; i++) {
        int64_t waited_ns = hammer_once(&hammer);

        longest_ns = waited_ns > longest_ns ? waited_ns : longest_ns;
        pause_a_moment(&seed);
    }
    loop_stats(loop, &stats);
    loop_stop(loop, 0, NS_PER_S);
    loop_join(loop);
    loop_destroy(loop);
    printf("wakeup: %" PRIu64 " single tasks, %" PRIu64 " sleeps ended by %" PRIu64
           " system calls, the longest wait %.1f ms\n",
           n, stats.polls_blocking, stats.wakeups_sent, (double)longest_ns / (double)NS_PER_MS);
    return EXIT_SUCCESS;
}
