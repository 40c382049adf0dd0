/*
 * stress/lifecycle: threads submit to a loop while it is started and stopped, and now and then it cannot be started.
 * Each task is run, dropped or refused, and only one of these.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>

#include "base/log.h"
#include "engine/loop.h"
#include "stress/stress.h"
#include "support/fault.h"

#define PRODUCERS   4
#define TASKS_EACH  64
#define SPINS_STEPS 500

struct counted {
    struct task task;
    atomic_uint done;
    bool accepted;
};

static struct loop *loop;
static struct counted tasks[PRODUCERS][TASKS_EACH];
static pthread_barrier_t begin, end;
static atomic_bool over;
static uint64_t n_accepted, n_refused;
static atomic_ullong n_run, n_dropped;

static void counted_run(struct task *t)
{
    atomic_fetch_add(&CONTAINER_OF(t, struct counted, task)->done, 1);
    atomic_fetch_add(&n_run, 1);
}

static void counted_drop(struct task *t)
{
    atomic_fetch_add(&CONTAINER_OF(t, struct counted, task)->done, 1);
    atomic_fetch_add(&n_dropped, 1);
}

static const struct task_type counted_type = {
    .name = "counted", .run = counted_run, .drop = counted_drop};

static void *produce(void *arg)
{
    struct counted *mine = arg;

    for (;;) {
        pthread_barrier_wait(&begin);
        if (atomic_load(&over))
            return NULL;
        for (unsigned i = 0; i < TASKS_EACH; i++) {
            int rc = i % 5 == 4 ? loop_submit_lazy(loop, &mine[i].task)
                                : loop_submit(loop, (enum loop_lane)(i % 3), &mine[i].task);

            STRESS_CHECK(rc == 0 || rc == -ESHUTDOWN || rc == -EAGAIN);
            mine[i].accepted = rc == 0;
        }
        pthread_barrier_wait(&end);
    }
}

static void check_tasks(void)
{
    for (unsigned p = 0; p < PRODUCERS; p++)
        for (unsigned i = 0; i < TASKS_EACH; i++) {
            struct counted *t = &tasks[p][i];

            STRESS_CHECK(atomic_load(&t->done) == t->accepted);
            n_accepted += t->accepted;
            n_refused += !t->accepted;
            atomic_store(&t->done, 0);
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
    loop_join(loop);
    STRESS_CHECK(loop_state(loop) == LOOP_TERMINATED);
    pthread_barrier_wait(&end);
    check_tasks();
    loop_destroy(loop);
}

int main(int argc, char **argv)
{
    pthread_t producers[PRODUCERS];
    uint64_t rounds = stress_load(argc, argv, 20000);

    log_set_level(LOG_LEVEL_ERROR); /* that a stop timed out is what half of the rounds want */
    pthread_barrier_init(&begin, NULL, PRODUCERS + 1);
    pthread_barrier_init(&end, NULL, PRODUCERS + 1);
    for (unsigned p = 0; p < PRODUCERS; p++) {
        for (unsigned i = 0; i < TASKS_EACH; i++)
            tasks[p][i].task.type = &counted_type;
        STRESS_CHECK(pthread_create(&producers[p], NULL, produce, tasks[p]) == 0);
    }
    for (uint64_t round = 0; round < rounds; round++)
        run_round(round);
    atomic_store(&over, true);
    pthread_barrier_wait(&begin);
    for (unsigned p = 0; p < PRODUCERS; p++)
        pthread_join(producers[p], NULL);
    STRESS_CHECK(atomic_load(&n_run) + atomic_load(&n_dropped) == n_accepted);
    printf("lifecycle: %" PRIu64 " loops, %llu tasks run, %llu dropped, %" PRIu64 " refused\n",
           rounds, atomic_load(&n_run), atomic_load(&n_dropped), n_refused);
    return EXIT_SUCCESS;
}
