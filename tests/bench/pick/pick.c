/*
 * pick: what it costs to choose an endpoint. For each kind of balancer the CPU time of one pick
 * with entering and leaving, in nanoseconds, by the number of endpoints and of threads that pick
 * from the same balancer at the same time; then what building a hundred balancers of a thousand
 * endpoints takes, and their memory.
 *
 *     pick [MILLISECONDS]        each cell is the median of nine runs of so long (100)
 *
 * Each thread holds 2,000 sessions, and every pick ends the oldest, so that loads are not all
 * alike.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "balance/balancer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "common/die.h"

enum { HELD = 2000, RUNS = 9, MAX_THREADS = 2, MAX_ENDPOINTS = 1000, GROUPS = 100, BATCH = 64 };

static const char *const kind_names[] = {
    [BALANCER_ROUND_ROBIN] = "round_robin",
    [BALANCER_LEAST_CONNECTIONS] = "least_connections",
    [BALANCER_RANDOM] = "random",
    [BALANCER_SOURCE_HASH] = "source_hash",
    [BALANCER_MAGLEV] = "maglev",
    [BALANCER_LEAST_TIME] = "least_time",
    [BALANCER_FIRST] = "first",
};

static struct endpoint endpoints[MAX_ENDPOINTS];
static struct endpoint *list[MAX_ENDPOINTS];
static _Atomic uint32_t loads[MAX_ENDPOINTS];
static struct endpoint_group group;

/* Weights from 1 to ${heaviest}. */
static void open_endpoints(unsigned heaviest)
{
    for (unsigned i = 0; i < MAX_ENDPOINTS; i++) {
        loads[i] = 0;
        endpoints[i] = (struct endpoint){.weight = 1 + i % heaviest,
                                         .hash = hash_stable(&i, sizeof(i)),
                                         .load = &loads[i],
                                         .group = &group};
        list[i] = &endpoints[i];
    }
}

static struct balancer *create(enum balancer_kind kind, unsigned n)
{
    struct balancer_conf conf = {
        .kind = kind, .endpoints = list, .n_endpoints = n, .hash_balance_factor = 125};
    struct balancer *b;

    if (balancer_create(&b, &conf) < 0)
        die("a balancer cannot be made");
    return b;
}

/* ---- picking ---- */

struct picker {
    pthread_t thread;
    struct balancer *balancer;
    int64_t run_ns;
    uint64_t key;
    double pick_ns; /* the result */
    struct endpoint *held[HELD];
};

static pthread_barrier_t start;

static void pick(struct picker *p, struct endpoint **slot)
{
    struct balancer_pick_state pick;

    if (*slot)
        endpoint_leave(*slot);
    balancer_begin(&pick, hash_mix(p->key++));
    if (balancer_pick(p->balancer, &pick, slot) < 0)
        die("nothing was picked");
}

static int64_t used_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void *picker_main(void *arg)
{
    struct picker *p = arg;
    uint64_t picks = 0;
    int64_t began_ns, ran_ns, end_at_ns;

    for (unsigned i = 0; i < HELD; i++)
        pick(p, &p->held[i]);
    pthread_barrier_wait(&start);
    began_ns = used_ns(CLOCK_THREAD_CPUTIME_ID);
    end_at_ns = clock_now_ns() + p->run_ns;
    do
        for (unsigned i = 0; i < BATCH; i++, picks++)
            pick(p, &p->held[picks % HELD]);
    while (clock_now_ns() < end_at_ns);
    ran_ns = used_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
    p->pick_ns = (double)ran_ns / (double)picks;
    for (unsigned i = 0; i < HELD; i++)
        endpoint_leave(p->held[i]);
    return NULL;
}

/* The mean of the threads. */
static double run(struct balancer *b, unsigned n_threads, int64_t run_ns)
{
    static struct picker pickers[MAX_THREADS];
    double sum = 0;

    pthread_barrier_init(&start, NULL, n_threads);
    for (unsigned i = 0; i < n_threads; i++) {
        pickers[i] = (struct picker){.balancer = b, .run_ns = run_ns, .key = (uint64_t)i << 32};
        if (pthread_create(&pickers[i].thread, NULL, picker_main, &pickers[i]) != 0)
            die("a thread cannot be started");
    }
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_join(pickers[i].thread, NULL);
        sum += pickers[i].pick_ns;
    }
    pthread_barrier_destroy(&start);
    return sum / n_threads;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(struct balancer *b, unsigned n_threads, int64_t run_ns)
{
    double of_run[RUNS];

    for (int i = 0; i < RUNS; i++)
        of_run[i] = run(b, n_threads, run_ns);
    qsort(of_run, RUNS, sizeof(of_run[0]), by_value);
    return of_run[RUNS / 2];
}

static void print_picks(int64_t run_ns)
{
    static const unsigned counts[] = {3, 100, 1000};

    printf("| ns for a pick     |");
    for (unsigned threads = 1; threads <= MAX_THREADS; threads++)
        for (unsigned i = 0; i < 3; i++)
            printf(" %4u by %u thread%s |", counts[i], threads, threads > 1 ? "s" : " ");
    printf("\n|-------------------|");
    for (unsigned i = 0; i < 3 * MAX_THREADS; i++)
        printf("------------------|");
    for (unsigned kind = 0; kind <= BALANCER_FIRST; kind++) {
        printf("\n| %-17s |", kind_names[kind]);
        for (unsigned threads = 1; threads <= MAX_THREADS; threads++)
            for (unsigned i = 0; i < 3; i++) {
                struct balancer *b = create(kind, counts[i]);

                printf(" %16.0f |", median(b, threads, run_ns));
                fflush(stdout);
                balancer_destroy(b);
            }
    }
    printf("\n");
}

/* ---- building ---- */

static size_t used_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void print_builds(unsigned heaviest)
{
    open_endpoints(heaviest);
    printf("\n| %d groups of %d, weights 1 to %-3u | ms to build | MB of memory |\n", GROUPS,
           MAX_ENDPOINTS, heaviest);
    printf("|-----------------------------------|-------------|--------------|\n");
    for (unsigned kind = 0; kind <= BALANCER_FIRST; kind++) {
        struct balancer *built[GROUPS];
        int64_t began_ns = used_ns(CLOCK_PROCESS_CPUTIME_ID), took_ns;
        size_t before = used_bytes(), used;

        for (unsigned i = 0; i < GROUPS; i++)
            built[i] = create(kind, MAX_ENDPOINTS);
        took_ns = used_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
        used = used_bytes() - before;
        printf("| %-33s | %11.1f | %12.1f |\n", kind_names[kind], (double)took_ns / NS_PER_MS,
               (double)used / 1e6);
        for (unsigned i = 0; i < GROUPS; i++)
            balancer_destroy(built[i]);
    }
}

int main(int argc, char **argv)
{
    int64_t run_ns = (argc > 1 ? atoi(argv[1]) : 100) * NS_PER_MS;

    if (argc > 2 || run_ns <= 0)
        die("usage: pick [MILLISECONDS]");
    open_endpoints(4);
    print_picks(run_ns);
    print_builds(1);
    print_builds(4);
    return 0;
}
