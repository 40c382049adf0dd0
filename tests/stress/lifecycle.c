/*
 * stress/lifecycle: threads submit tasks and timers to a loop while it is started and stopped, and
 * now and then it cannot be started. Each is run, dropped or refused, and only one of these; a
 * timer that was withdrawn in time is dropped.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>

#include "base/log.h"
#include "engine/loop.h"
#include "stress/stress.h"
#include "support/fault.h"

#define PRODUCERS    4
#define TASKS_EACH   64
#define SPINS_STEPS  500
#define KINDS        7
#define WITHDRAW     4 /* so many submits later */
#define DELAY_MAX_NS (20 * NS_PER_US)

struct counted {
    struct timer timer;
    atomic_uint run, dropped;
    bool accepted, withdrawn;
};

static struct loop *loop;
static struct counted tasks[PRODUCERS][TASKS_EACH];
static pthread_barrier_t begin, end;
static atomic_bool over;
static uint64_t n_accepted, n_refused, n_withdrawn;
static atomic_ullong n_run, n_dropped;

static struct counted *counted_of(struct task *t)
{
    return TIMER_OWNER(t, struct counted, timer);
}

static void counted_run(struct task *t)
{
    atomic_fetch_add(&counted_of(t)->run, 1);
    atomic_fetch_add(&n_run, 1);
}

static void counted_drop(struct task *t)
{
    atomic_fetch_add(&counted_of(t)->dropped, 1);
    atomic_fetch_add(&n_dropped, 1);
}

static const struct task_type counted_type = {
    .name = "counted", .run = counted_run, .drop = counted_drop};

/* Of each kind in turn; a timer is withdrawn on its way, while it waits, or when it has run. */
static int submit(struct counted *mine, unsigned i)
{
    struct timer *t = &mine[i].timer;

    switch (i % KINDS) {
    case 0: return loop_submit_lazy(loop, LOOP_TASKS, &t->task);
    case 1:
    case 2: return loop_submit_after(loop, t, i * 7919 % DELAY_MAX_NS, 0);
    case 2 + WITHDRAW:
        if (mine[i - WITHDRAW].accepted)
            mine[i - WITHDRAW].withdrawn = loop_withdraw(loop, &mine[i - WITHDRAW].timer);
        return loop_submit(loop, LOOP_CONTROL, &t->task);
    default: return loop_submit(loop, (enum loop_queue)(i % 3), &t->task);
    }
}

static void *produce(void *arg)
{
    struct counted *mine = arg;

    for (;;) {
        pthread_barrier_wait(&begin);
        if (atomic_load(&over))
            return NULL;
        for (unsigned i = 0; i < TASKS_EACH; i++) {
            int rc = submit(mine, i);

            STRESS_CHECK(rc == 0 || rc == -ESHUTDOWN || rc == -EAGAIN);
            mine[i].accepted = rc == 0;
        }
        pthread_barrier_wait(&end);
    }
}

static void counted_init(struct counted *t)
{
    timer_init(&t->timer, &counted_type);
    atomic_store(&t->run, 0);
    atomic_store(&t->dropped, 0);
    t->withdrawn = false;
}

static void check_tasks(void)
{
    for (unsigned p = 0; p < PRODUCERS; p++)
        for (unsigned i = 0; i < TASKS_EACH; i++) {
            struct counted *t = &tasks[p][i];

            STRESS_CHECK(atomic_load(&t->run) + atomic_load(&t->dropped) == t->accepted);
            STRESS_CHECK(!t->withdrawn || atomic_load(&t->dropped) == 1);
            n_accepted += t->accepted;
            n_refused += !t->accepted;
            n_withdrawn += t->withdrawn;
            counted_init(t);
        }
}

static void run_round(uint64_t round)
{
    struct loop_conf conf = {.name = "stress",
                             .budget = {.io_ratio = round % 3 ? 50 : 100, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 200};

    STRESS_CHECK(loop_create(&loop, &conf) == 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, (unsigned)(round % 4), EAGAIN);
    pthread_barrier_wait(&begin);
    for (uint64_t spin = 0; spin < round % SPINS_STEPS * 20; spin++)
        atomic_load(&over); /* another moment in each round */
    loop_stop(loop, 0, round % 2 ? 0 : NS_PER_S);
    STRESS_CHECK(loop_join_until(loop, CLOCK_NEVER) == 0);
    STRESS_CHECK(loop_state(loop) == LOOP_TERMINATED);
    pthread_barrier_wait(&end);
    check_tasks();
    loop_destroy(loop);
}

int main(int argc, char **argv)
{
    pthread_t producers[PRODUCERS];
    uint64_t load = stress_load(argc, argv, 20000), rounds;

    log_set_level(LOG_LEVEL_ERROR); /* that a stop timed out is what half of the rounds want */
    pthread_barrier_init(&begin, NULL, PRODUCERS + 1);
    pthread_barrier_init(&end, NULL, PRODUCERS + 1);
    for (unsigned p = 0; p < PRODUCERS; p++) {
        for (unsigned i = 0; i < TASKS_EACH; i++)
            counted_init(&tasks[p][i]);
        STRESS_CHECK(pthread_create(&producers[p], NULL, produce, tasks[p]) == 0);
    }
    for (rounds = 0; stress_goes_on(rounds, load); rounds++)
        run_round(rounds);
    atomic_store(&over, true);
    pthread_barrier_wait(&begin);
    for (unsigned p = 0; p < PRODUCERS; p++)
        pthread_join(producers[p], NULL);
    STRESS_CHECK(atomic_load(&n_run) + atomic_load(&n_dropped) == n_accepted);
    printf("lifecycle: %" PRIu64 " loops, %llu tasks run, %llu dropped (%" PRIu64
           " timers withdrawn), %" PRIu64 " refused\n",
           rounds, atomic_load(&n_run), atomic_load(&n_dropped), n_withdrawn, n_refused);
    return EXIT_SUCCESS;
}
