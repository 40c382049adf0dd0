/*
 * stress/strand: two loops submit to many strands on an executor of four threads, destroy them at
 * random and make new ones, until the executor is stopped under them. The tasks of a strand never
 * overlap and keep their order, each is run or dropped and only one of these, and room is told once
 * for each refusal, unless the strand is gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "engine/loop.h"
#include "engine/strand.h"
#include "stress/stress.h"

#define LOOPS         2
#define STRANDS       40 /* of each loop, at a time */
#define THREADS       4
#define MAX_PENDING   200
#define MAX_OF_STRAND 12
#define STEPS         20 /* in one task of a loop */
#define ROUNDS_MIN    8

/* What the tasks of one strand share. Only the strand's order guards `next` and `inside`. */
struct record {
    unsigned next;
    unsigned inside;
    atomic_uint users;

    /* The loop's. */
    unsigned n_submitted;
    bool refused;
    bool gone;
    struct driver *driver;
};

struct numbered {
    struct task task;
    struct record *record;
    unsigned number;
    unsigned nap_us;
};

/* On a loop, and submits itself again until it is over. */
struct driver {
    struct task task;
    struct loop *loop;
    uint64_t random;
    struct strand *strands[STRANDS];
    struct record *records[STRANDS];
    atomic_bool over;
    atomic_bool ended;
    uint64_t n_accepted, n_refused, n_episodes, n_notified, n_destroyed;
};

static struct executor *e;
static struct driver drivers[LOOPS];
static atomic_ullong n_run, n_dropped;

static unsigned draw(struct driver *d, unsigned below)
{
    d->random ^= d->random << 13; /* G. Marsaglia, "Xorshift RNGs" (2003) */
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return (unsigned)(d->random >> 33) % below;
}

static void record_leave(struct record *r)
{
    if (atomic_fetch_sub(&r->users, 1) == 1)
        free(r);
}

static void numbered_run(struct task *t)
{
    struct numbered *n = CONTAINER_OF(t, struct numbered, task);
    struct record *r = n->record;

    STRESS_CHECK(r->inside++ == 0);
    STRESS_CHECK(r->next++ == n->number);
    if (n->nap_us > 0)
        usleep(n->nap_us);
    r->inside--;
    atomic_fetch_add(&n_run, 1);
    record_leave(r);
    free(n);
}

static void numbered_drop(struct task *t)
{
    struct numbered *n = CONTAINER_OF(t, struct numbered, task);

    atomic_fetch_add(&n_dropped, 1);
    record_leave(n->record);
    free(n);
}

static const struct task_type numbered_type = {
    .name = "numbered", .run = numbered_run, .drop = numbered_drop};

static void on_capacity(void *cookie)
{
    struct record *r = cookie;

    STRESS_CHECK(loop_is_current(r->driver->loop));
    STRESS_CHECK(!r->gone);
    STRESS_CHECK(r->refused);
    r->refused = false;
    r->driver->n_notified++;
}

static void make(struct driver *d, unsigned i)
{
    struct strand_conf conf = {.executor = e,
                               .loop = d->loop,
                               .max_pending_tasks = 1 + draw(d, MAX_OF_STRAND),
                               .on_capacity = on_capacity};

    conf.cookie = d->records[i] = calloc(1, sizeof(*d->records[i]));
    STRESS_CHECK(conf.cookie != NULL);
    atomic_init(&d->records[i]->users, 1);
    d->records[i]->driver = d;
    STRESS_CHECK(strand_create(&d->strands[i], &conf) == 0);
}

static void unmake(struct driver *d, unsigned i)
{
    strand_destroy(d->strands[i]);
    d->n_episodes -= d->records[i]->refused; /* it is not told any more */
    d->records[i]->gone = true;
    record_leave(d->records[i]);
    d->n_destroyed++;
}

static void submit(struct driver *d, unsigned i)
{
    struct record *r = d->records[i];
    struct numbered *n = malloc(sizeof(*n));
    int rc;

    STRESS_CHECK(n != NULL);
    *n = (struct numbered){.task.type = &numbered_type, .record = r, .number = r->n_submitted};
    n->nap_us = draw(d, 40) == 0 ? draw(d, 300) : 0;
    atomic_fetch_add(&r->users, 1);
    rc = strand_submit(d->strands[i], &n->task);
    STRESS_CHECK(rc == 0 || rc == -EAGAIN || rc == -ESHUTDOWN);
    if (rc == 0) {
        r->n_submitted++;
        d->n_accepted++;
        return;
    }
    d->n_refused++;
    d->n_episodes += rc == -EAGAIN && !r->refused;
    r->refused |= rc == -EAGAIN;
    record_leave(r);
    free(n);
}

static void driver_run(struct task *t)
{
    struct driver *d = CONTAINER_OF(t, struct driver, task);

    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = draw(d, STRANDS), burst = draw(d, 6);

        if (d->records[i]->refused && draw(d, 100) > 0)
            continue; /* mostly it waits until it is told */
        while (burst-- > 0)
            submit(d, i);
        if (draw(d, 1000) == 0) {
            unmake(d, i);
            make(d, i);
        }
    }
    if (atomic_load(&d->over))
        atomic_store(&d->ended, true);
    else
        STRESS_CHECK(loop_submit(d->loop, LOOP_TASKS, t) == 0);
}

static void driver_begin(struct task *t)
{
    static const struct task_type type = {.name = "driver", .run = driver_run};
    struct driver *d = CONTAINER_OF(t, struct driver, task);

    for (unsigned i = 0; i < STRANDS; i++)
        make(d, i);
    t->type = &type;
    driver_run(t);
}

static void driver_end(struct task *t)
{
    struct driver *d = CONTAINER_OF(t, struct driver, task);

    for (unsigned i = 0; i < STRANDS; i++)
        unmake(d, i);
    atomic_store(&d->ended, true);
}

static void driver_start(struct driver *d, uint64_t random)
{
    static const struct task_type type = {.name = "begin", .run = driver_begin};
    struct loop_conf conf = {.name = "stress",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 1000};

    *d = (struct driver){.task.type = &type, .random = random};
    STRESS_CHECK(loop_create(&d->loop, &conf) == 0);
    STRESS_CHECK(loop_submit(d->loop, LOOP_TASKS, &d->task) == 0);
}

static void wait_for_end(struct driver *d)
{
    while (!atomic_load(&d->ended))
        usleep(200);
    atomic_store(&d->ended, false);
}

/* The strands are destroyed on their loop, or by us after it has ended. */
static void driver_stop(struct driver *d, bool on_loop)
{
    static const struct task_type type = {.name = "end", .run = driver_end};

    d->task.type = &type;
    if (on_loop) {
        STRESS_CHECK(loop_submit(d->loop, LOOP_TASKS, &d->task) == 0);
        wait_for_end(d);
    }
    loop_stop(d->loop, 0, 10 * NS_PER_S);
    STRESS_CHECK(loop_join_until(d->loop, CLOCK_NEVER) == 0);
    if (!on_loop)
        driver_end(&d->task);
}

static void check_round(void)
{
    struct executor_stats stats;
    uint64_t n_accepted = 0;

    executor_stats(e, &stats);
    for (unsigned i = 0; i < LOOPS; i++) {
        n_accepted += drivers[i].n_accepted;
        STRESS_CHECK(drivers[i].n_notified == drivers[i].n_episodes);
    }
    STRESS_CHECK(atomic_load(&n_run) + atomic_load(&n_dropped) == n_accepted);
    STRESS_CHECK(stats.tasks_run == atomic_load(&n_run));
    STRESS_CHECK(stats.tasks_dropped == atomic_load(&n_dropped));
    STRESS_CHECK(stats.tasks_pending == 0);
}

static void run_round(uint64_t round)
{
    struct executor_conf conf = {
        .name = "stress", .pool = 1, .threads = THREADS, .max_pending_tasks = MAX_PENDING};

    atomic_store(&n_run, 0);
    atomic_store(&n_dropped, 0);
    STRESS_CHECK(executor_create(&e, &conf) == 0);
    for (unsigned i = 0; i < LOOPS; i++)
        driver_start(&drivers[i], (round * LOOPS + i + 1) * UINT64_C(0x9e3779b97f4a7c15));
    usleep(20000);
    executor_stop(e, (int64_t)(round % 4) * NS_PER_MS);
    for (unsigned i = 0; i < LOOPS; i++)
        atomic_store(&drivers[i].over, true);
    for (unsigned i = 0; i < LOOPS; i++)
        wait_for_end(&drivers[i]);
    for (unsigned i = 0; round % 2 && i < LOOPS; i++)
        driver_stop(&drivers[i], true);
    STRESS_CHECK(executor_join(e, 10 * NS_PER_S) == 0);
    for (unsigned i = 0; round % 2 == 0 && i < LOOPS; i++)
        driver_stop(&drivers[i], round % 4 == 0);
    check_round();
    executor_destroy(e);
    for (unsigned i = 0; i < LOOPS; i++)
        loop_destroy(drivers[i].loop);
}

int main(int argc, char **argv)
{
    uint64_t load = stress_load(argc, argv, 100);
    uint64_t run = 0, dropped = 0, refused = 0, notified = 0, strands = 0;

    for (uint64_t round = 0; round < ROUNDS_MIN || stress_goes_on(round, load); round++) {
        run_round(round);
        run += atomic_load(&n_run);
        dropped += atomic_load(&n_dropped);
        for (unsigned i = 0; i < LOOPS; i++) {
            refused += drivers[i].n_refused;
            notified += drivers[i].n_notified;
            strands += drivers[i].n_destroyed;
        }
    }
    STRESS_CHECK(run > 0 && dropped > 0 && notified > 0);
    printf("strand: %" PRIu64 " serials, %" PRIu64 " tasks run, %" PRIu64 " dropped, %" PRIu64
           " refused, room told %" PRIu64 " times\n",
           strands, run, dropped, refused, notified);
    return EXIT_SUCCESS;
}
