/*
 * stress/wakeup: single tasks at random moments around the moment in which the loop goes to sleep,
 * and none of them waits for a loop that sleeps. There is one thread whose tasks end the sleep:
 * another's wake-up would hide that one was lost. Others add what ends no sleep: a thread submits
 * lazily, and now and then the loop's own gets a signal.
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "engine/histogram.h"
#include "stress/stress.h"
#include "support/loop_thread.h"

#define NAP_MAX_NS  60000
#define SPINS_MAX   400
#define SPIN_NS     (100 * NS_PER_US) /* then a wait is a long one */
#define SLOW_NS     (100 * NS_PER_MS) /* then it is time to ask whether the loop sleeps */
#define LAZY_EACH   8
#define SIGNAL_EACH 1000

struct noted {
    struct task task;
    int64_t run_at_ns;
    atomic_bool run;
};

static struct loop *loop;
static struct loop_thread loop_thread;
static struct histogram waits;
static int64_t longest_ns;
static uint64_t n_slow, n_lazy;
static atomic_uint n_signals;
static atomic_bool over;

static void noted_run(struct task *t)
{
    struct noted *n = CONTAINER_OF(t, struct noted, task);

    n->run_at_ns = clock_now_ns();
    atomic_store(&n->run, true);
}

static void noted_drop(struct task *t)
{
    (void)t;
    STRESS_CHECK(!"dropped");
}

static const struct task_type noted_type = {.name = "noted", .run = noted_run, .drop = noted_drop};

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_signals, 1);
}

static void nap(unsigned *seed)
{
    struct timespec ts = {.tv_nsec = rand_r(seed) % NAP_MAX_NS};

    nanosleep(&ts, NULL);
}

/*
 * Let a random time pass: at first the loop is still awake, then about to sleep, and asleep when it
 * was long.
 */
static void pause_a_moment(unsigned *seed)
{
    atomic_uint spun = 0;

    if (rand_r(seed) % 16 == 0)
        nap(seed);
    else
        for (unsigned n = (unsigned)rand_r(seed) % SPINS_MAX; n > 0; n--)
            atomic_fetch_add_explicit(&spun, 1, memory_order_relaxed);
}

/*
 * Either the loop's thread has not got a processor for so long, which is nobody's fault, or it
 * sleeps: then the task would wait until something else happens to wake it.
 */
static void check_that_it_is_awake(struct noted *t)
{
    if (loop_thread_sleeps(&loop_thread, SLOW_NS) && !atomic_load(&t->run)) {
        fprintf(stderr, "a wake-up was lost: the loop sleeps, and a task waits for it\n");
        exit(EXIT_FAILURE);
    }
}

/* One task, and how long it took to run. */
static int64_t submit_one(struct noted *t)
{
    int64_t began_at_ns = clock_now_ns();

    atomic_store(&t->run, false);
    STRESS_CHECK(loop_submit(loop, LOOP_TASKS, &t->task) == 0);
    while (!atomic_load(&t->run)) {
        int64_t waited_ns = clock_now_ns() - began_at_ns;

        if (waited_ns > SLOW_NS)
            check_that_it_is_awake(t);
        if (waited_ns > SPIN_NS)
            sched_yield();
    }
    return t->run_at_ns - began_at_ns;
}

/*
 * Perhaps with a signal before it, perhaps with a lazy task: which is run with the other one, and
 * before it.
 */
static void submit_at_random(struct noted *t, struct noted *lazy, unsigned *seed)
{
    bool with_lazy = rand_r(seed) % LAZY_EACH == 0;
    int64_t waited_ns;

    if (rand_r(seed) % SIGNAL_EACH == 0) {
        STRESS_CHECK(pthread_kill(loop_thread.thread, SIGUSR1) == 0);
        pause_a_moment(seed);
    }
    if (with_lazy) {
        atomic_store(&lazy->run, false);
        STRESS_CHECK(loop_submit_lazy(loop, LOOP_TASKS, &lazy->task) == 0);
        pause_a_moment(seed);
    }
    waited_ns = submit_one(t);
    STRESS_CHECK(!with_lazy || atomic_load(&lazy->run));
    longest_ns = waited_ns > longest_ns ? waited_ns : longest_ns;
    n_slow += waited_ns > SLOW_NS;
    histogram_count(&waits, waited_ns);
}

/* A lazy task at a time, as soon as the one before has run. */
static void *submit_lazily(void *arg)
{
    static struct noted t = {.task.type = &noted_type};
    unsigned seed = 2;

    (void)arg;
    while (!atomic_load(&over)) {
        atomic_store(&t.run, false);
        STRESS_CHECK(loop_submit_lazy(loop, LOOP_TASKS, &t.task) == 0);
        n_lazy++;
        while (!atomic_load(&t.run) && !atomic_load(&over))
            nap(&seed);
        nap(&seed);
    }
    return NULL;
}

static void diagnostics(uint64_t n)
{
    struct histogram_view view;
    struct loop_stats stats;

    loop_stats(loop, &stats);
    histogram_read(&waits, &view);
    printf("wakeup: %" PRIu64 " single tasks, %" PRIu64
           " lazy ones beside them, %u signals; %" PRIu64 " polls that blocked, %" PRIu64
           " wake-ups sent\n",
           n, n_lazy, atomic_load(&n_signals), stats.polls_blocking, stats.wakeups_sent);
    printf("wakeup: none lost; waits: half under %" PRId64 " us, 99.9 %% under %" PRId64
           " us, the longest %.1f ms; %" PRIu64 " over 100 ms, with the loop awake\n",
           histogram_quantile_ns(&view, 500) / NS_PER_US,
           histogram_quantile_ns(&view, 999) / NS_PER_US, (double)longest_ns / (double)NS_PER_MS,
           n_slow);
}

int main(int argc, char **argv)
{
    struct loop_conf conf = {.name = "stress",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 1024};
    struct noted t = {.task.type = &noted_type}, lazy = {.task.type = &noted_type};
    uint64_t load = stress_load(argc, argv, 200000), n;
    pthread_t lazy_thread;
    unsigned seed = 1;

    STRESS_CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    STRESS_CHECK(loop_create(&loop, &conf) == 0);
    STRESS_CHECK(loop_thread_find(&loop_thread, loop) == 0);
    STRESS_CHECK(pthread_create(&lazy_thread, NULL, submit_lazily, NULL) == 0);
    for (n = 0; stress_goes_on(n, load); n++) {
        submit_at_random(&t, &lazy, &seed);
        pause_a_moment(&seed);
    }
    atomic_store(&over, true);
    pthread_join(lazy_thread, NULL);
    diagnostics(n);
    loop_stop(loop, 0, 20 * NS_PER_S);
    STRESS_CHECK(loop_join_until(loop, CLOCK_NEVER) == 0);
    loop_destroy(loop);
    return EXIT_SUCCESS;
}
