/*
 * handoff_* throughput PRODUCERS TASKS | pingpong HOPS
 *
 *   throughput   threads hand TASKS tasks, which only count, to one loop: from the first submit to
 *                the last run
 *   pingpong     two loops hand one task to and fro
 *
 * One line of JSON: the median of PASSES passes, after one that does not count. A task that is lost
 * or runs twice is an error: exit 1, or no end.
 *
 * A producer's tasks are a ring of parts. It goes into a part again when that part's last task has
 * run, which posts the producer's semaphore: so there are never more than IN_FLIGHT tasks under
 * way, a producer that is too fast sleeps, and neither costs anything that counts: there is one
 * post in thousands of tasks.
 */
#include "engine/handoff/contender.h"

#include "common/die.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    IN_FLIGHT = 65536,
    PARTS = 4, /* of a ring */
    PRODUCERS_MAX = 64,
    COUNT_MAX = 1 << 30,
    PASSES = 5,
};

/* The last task of a part. */
struct closing {
    struct job job;
    sem_t *free_parts;
};

struct producer {
    struct job *ring;
    unsigned part_jobs; /* of each part, its closing task not among them */
    struct closing closings[PARTS];
    sem_t free_parts;
    uint64_t begun_at_ns;
    pthread_t thread;
};

static struct {
    struct contender *loops[2]; /* the second is for pingpong */
    unsigned n_producers;
    unsigned n_parts; /* of each producer */
    unsigned hops;
} conf;

/* Of the pass that is on; the loop's alone. */
static struct {
    alignas(64) uint64_t ran;
    uint64_t total;
    uint64_t ended_at_ns;
} run;

static sem_t run_over;
static pthread_barrier_t begin;

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t cpu_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0)
        if (errno != EINTR)
            die_errno("sem_wait");
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Print what a pass of ${once}, which returns how long it took, costs a task. */
static void measure(uint64_t (*once)(void))
{
    uint64_t took_ns[PASSES], cpu_ns;

    (void)once(); /* warm-up */
    cpu_ns = cpu_now_ns();
    for (unsigned i = 0; i < PASSES; i++)
        took_ns[i] = once();
    cpu_ns = (cpu_now_ns() - cpu_ns) / PASSES;
    qsort(took_ns, PASSES, sizeof(took_ns[0]), compare);
    printf("{\"tasks\": %" PRIu64 ", \"ns_per_task\": %.2f, \"cpu_ns_per_task\": %.2f}\n",
           run.total, (double)took_ns[PASSES / 2] / (double)run.total,
           (double)cpu_ns / (double)run.total);
}

/* ---- throughput ---- */

/* False: that was the last one, and the next run may be on its way already. */
static bool run_count(void)
{
    run.ran++;
    if (run.ran < run.total)
        return true;
    if (run.ran > run.total)
        die("a task ran twice");
    run.ended_at_ns = now_ns();
    sem_post(&run_over);
    return false;
}

static void plain_run(struct job *job)
{
    (void)job;
    (void)run_count();
}

static void closing_run(struct job *job)
{
    struct closing *closing = (struct closing *)job; /* its first member */

    sem_post(closing->free_parts);
    (void)run_count();
}

static void *produce(void *arg)
{
    struct producer *p = arg;

    pthread_barrier_wait(&begin);
    p->begun_at_ns = now_ns();
    for (unsigned part = 0; part < conf.n_parts; part++) {
        struct job *jobs = p->ring + (size_t)(part % PARTS) * p->part_jobs;

        wait_for(&p->free_parts);
        for (unsigned i = 0; i < p->part_jobs; i++)
            contender_submit(conf.loops[0], &jobs[i]);
        contender_submit(conf.loops[0], &p->closings[part % PARTS].job);
    }
    return NULL;
}

static void producer_start(struct producer *p)
{
    p->part_jobs = IN_FLIGHT / PARTS / conf.n_producers - 1;
    p->ring = aligned_alloc(64, (size_t)PARTS * (p->part_jobs + 1) * sizeof(p->ring[0]));
    if (!p->ring)
        die_errno("aligned_alloc");
    for (unsigned i = 0; i < PARTS * p->part_jobs; i++)
        p->ring[i] = (struct job){.run = plain_run};
    sem_init(&p->free_parts, 0, PARTS);
    for (unsigned i = 0; i < PARTS; i++)
        p->closings[i] = (struct closing){.job.run = closing_run, .free_parts = &p->free_parts};
    if (pthread_create(&p->thread, NULL, produce, p) != 0)
        die("no thread could be created");
}

static uint64_t producer_end(struct producer *p)
{
    pthread_join(p->thread, NULL);
    sem_destroy(&p->free_parts);
    free(p->ring);
    return p->begun_at_ns;
}

static uint64_t throughput_once(void)
{
    static struct producer producers[PRODUCERS_MAX];
    uint64_t begun_at_ns = UINT64_MAX;

    run.ran = 0;
    run.total = (uint64_t)conf.n_parts * (IN_FLIGHT / PARTS);
    pthread_barrier_init(&begin, NULL, conf.n_producers + 1);
    for (unsigned i = 0; i < conf.n_producers; i++)
        producer_start(&producers[i]);
    pthread_barrier_wait(&begin);
    wait_for(&run_over);
    for (unsigned i = 0; i < conf.n_producers; i++) {
        uint64_t at_ns = producer_end(&producers[i]);

        begun_at_ns = at_ns < begun_at_ns ? at_ns : begun_at_ns;
    }
    pthread_barrier_destroy(&begin);
    return run.ended_at_ns - begun_at_ns;
}

static void throughput(unsigned n_producers, unsigned n_tasks)
{
    conf.n_producers = n_producers;
    conf.n_parts = n_tasks / (IN_FLIGHT / PARTS);
    if (n_producers > PRODUCERS_MAX || IN_FLIGHT / PARTS % n_producers != 0)
        die("producers: a power of two, at most %d", PRODUCERS_MAX);
    if (conf.n_parts == 0)
        die("tasks: at least %d", IN_FLIGHT / PARTS);
    conf.loops[0] = contender_start();
    measure(throughput_once);
    contender_stop(conf.loops[0]);
}

/* ---- pingpong ---- */

static void hop_run(struct job *job)
{
    if (run_count())
        contender_submit(conf.loops[run.ran % 2], job);
}

static uint64_t pingpong_once(void)
{
    static struct job ball = {.run = hop_run};
    uint64_t begun_at_ns = now_ns();

    run.ran = 0;
    run.total = conf.hops;
    contender_submit(conf.loops[0], &ball);
    wait_for(&run_over);
    return run.ended_at_ns - begun_at_ns;
}

static void pingpong(unsigned hops)
{
    conf.hops = hops;
    conf.loops[0] = contender_start();
    conf.loops[1] = contender_start();
    measure(pingpong_once);
    contender_stop(conf.loops[0]);
    contender_stop(conf.loops[1]);
}

static unsigned count_option(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || number < 1 || number > COUNT_MAX)
        die("not a number from 1 to %d: %s", COUNT_MAX, text);
    return (unsigned)number;
}

int main(int argc, char **argv)
{
    sem_init(&run_over, 0, 0);
    if (argc == 4 && strcmp(argv[1], "throughput") == 0)
        throughput(count_option(argv[2]), count_option(argv[3]));
    else if (argc == 3 && strcmp(argv[1], "pingpong") == 0)
        pingpong(count_option(argv[2]));
    else
        die("usage: %s throughput PRODUCERS TASKS | pingpong HOPS", argv[0]);
    return 0;
}
