/*
 * stress/handshakes: four threads submit steps with deadlines to a pool of four threads, some steps
 * submit the next one, and the pool is stopped under them: each accepted step is run or dropped,
 * once, and no step is run past its deadline.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "stress/stress.h"
#include "tls/tls_handshakes.h"

#define SUBMITTERS  4
#define THREADS     4
#define MAX_PENDING 64

struct step {
    struct tls_job job;
    unsigned left;     /* further steps */
    unsigned accesses; /* guarded by the pool alone */
};

static struct tls_handshakes *pool;
static atomic_ullong n_accepted, n_run, n_dropped, n_busy;
static atomic_bool over;

static void step_submit(struct step *s, int64_t after_ns, bool first)
{
    int rc;

    atomic_fetch_add(&n_accepted, 1);
    rc = tls_handshakes_submit(pool, &s->job, clock_now_ns() + after_ns, first);
    if (rc == 0)
        return;
    STRESS_CHECK(rc == -EBUSY || rc == -ESHUTDOWN);
    atomic_fetch_sub(&n_accepted, 1);
    atomic_fetch_add(&n_busy, 1);
    free(s);
    if (rc == -ESHUTDOWN)
        atomic_store(&over, true);
    else if (first)
        usleep(50);
}

static void step_run(struct tls_job *job)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    s->accesses++;
    atomic_fetch_add(&n_run, 1);
}

static void step_give_back(struct tls_job *job, bool wakes)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    (void)wakes;
    s->accesses++;
    if (s->left == 0) {
        free(s);
        return;
    }
    s->left--;
    step_submit(s, NS_PER_S, false);
}

static void step_drop(struct tls_job *job)
{
    atomic_fetch_add(&n_dropped, 1);
    free(CONTAINER_OF(job, struct step, job));
}

static const struct tls_job_type step_type = {"step", step_run, step_give_back, step_drop};

static void *submitter_main(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&over)) {
        struct step *s = calloc(1, sizeof(*s));

        STRESS_CHECK(s != NULL);
        s->job.type = &step_type;
        s->left = (unsigned)rand_r(&seed) % 4;
        step_submit(s, rand_r(&seed) % 4 * NS_PER_MS, true);
    }
    return NULL;
}

static void one_pool(uint64_t steps)
{
    const struct tls_handshakes_conf conf = {.threads = THREADS, .max_pending = MAX_PENDING};
    pthread_t submitters[SUBMITTERS];
    struct tls_handshakes_stats stats;
    uint64_t before = atomic_load(&n_run);

    atomic_store(&over, false);
    STRESS_CHECK(tls_handshakes_start(&conf, &pool) == 0);
    for (uintptr_t i = 0; i < SUBMITTERS; i++)
        STRESS_CHECK(pthread_create(&submitters[i], NULL, submitter_main, (void *)(i + 1)) == 0);
    while (stress_goes_on(atomic_load(&n_run) - before, steps))
        usleep(100);
    tls_handshakes_stop(pool);
    for (unsigned i = 0; i < SUBMITTERS; i++)
        pthread_join(submitters[i], NULL);
    tls_handshakes_stats(pool, &stats);
    STRESS_CHECK(stats.steps_pending == 0);
    STRESS_CHECK(atomic_load(&n_run) + atomic_load(&n_dropped) == atomic_load(&n_accepted));
    tls_handshakes_free(pool);
}

int main(int argc, char **argv)
{
    uint64_t load = stress_load(argc, argv, 100);

    for (uint64_t i = 0; stress_goes_on(i, load); i++)
        one_pool(1 + i * 13 % 1000);
    STRESS_CHECK(atomic_load(&n_dropped) > 0);
    printf("handshakes: %llu steps run, %llu dropped, %llu refused\n", atomic_load(&n_run),
           atomic_load(&n_dropped), atomic_load(&n_busy));
    return 0;
}
