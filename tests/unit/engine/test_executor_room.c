/*
 * engine/executor, what producers get of its capacity when it is full: equal shares, in the order
 * they were refused.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/must.h"
#include "engine/strand.h"
#include "support/executor_runner.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"

#define PRODUCERS 6

/* Submits to a strand of its own. */
struct producer {
    struct loop *loop;
    struct strand *strand;
    unsigned wants; /* tasks to submit when it has its turn */
    unsigned accepted;
    unsigned turns;
    bool refused;
    atomic_uint run;
};

struct piece {
    struct task task;
    struct producer *producer;
};

static struct loop *loops[2];
static struct executor *e;
static struct tasks_block block;
static struct producer producers[PRODUCERS];
static sem_t steps; /* each lets one piece run */
static atomic_bool steps_over;
static atomic_uint n_run;

static void setup(void)
{
    for (size_t i = 0; i < ARRAY_LEN(loops); i++)
        loops[i] = loop_runner_create();
    sem_init(&steps, 0, 0);
}

static void piece_run(struct task *t)
{
    struct piece *piece = CONTAINER_OF(t, struct piece, task);

    while (!atomic_load(&steps_over) && sem_wait(&steps) < 0)
        ;
    atomic_fetch_add(&piece->producer->run, 1);
    atomic_fetch_add(&n_run, 1);
    free(piece);
}

static void piece_drop(struct task *t)
{
    free(CONTAINER_OF(t, struct piece, task));
}

/* On its loop: submit what it wants, as far as it may. */
static void produce(void *arg)
{
    static const struct task_type type = {"piece", piece_run, piece_drop};
    struct producer *p = arg;

    p->refused = false;
    while (p->wants > 0 && !p->refused) {
        struct piece *piece = malloc(sizeof(*piece));
        int rc;

        ck_assert_ptr_nonnull(piece);
        *piece = (struct piece){.task.type = &type, .producer = p};
        rc = strand_submit(p->strand, &piece->task);
        if (rc < 0)
            free(piece);
        ck_assert(rc == 0 || rc == -EAGAIN);
        p->refused = rc < 0;
        p->accepted += rc == 0;
        p->wants -= rc == 0;
    }
}

static void on_turn(void *cookie)
{
    struct producer *p = cookie;

    p->turns++;
    produce(p);
}

static void do_create(void *arg)
{
    struct producer *p = arg;
    struct strand_conf conf = {.executor = e,
                               .loop = p->loop,
                               .max_pending_tasks = 64,
                               .on_capacity = on_turn,
                               .cookie = p};

    ck_assert_int_eq(strand_create(&p->strand, &conf), 0);
}

static void do_destroy(void *arg)
{
    struct producer *p = arg;

    strand_destroy(p->strand);
    p->strand = NULL;
}

static void create(struct producer *p, struct loop *loop)
{
    *p = (struct producer){.loop = loop};
    loop_runner_call(loop, do_create, p);
}

static void destroy(struct producer *p)
{
    if (p->strand)
        loop_runner_call(p->loop, do_destroy, p);
}

/* Have ${p} submit ${n} more, now. */
static void want(struct producer *p, unsigned n)
{
    p->wants = n;
    loop_runner_call(p->loop, produce, p);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* As far as the loop of ${p} has got. */
static unsigned accepted(struct producer *p)
{
    loop_runner_call(p->loop, nothing, NULL);
    return p->accepted;
}

/* Let ${n} pieces run, and wait until they have. */
static void step(unsigned n)
{
    unsigned until = atomic_load(&n_run) + n;

    for (unsigned i = 0; i < n; i++)
        sem_post(&steps);
    UNTIL(atomic_load(&n_run) == until);
}

static uint64_t pending(void)
{
    return executor_runner_stats(e).tasks_pending;
}

/* Let pieces run until ${p} has been given ${n} places. */
static void step_until(struct producer *p, unsigned n)
{
    for (unsigned i = 0; i < 1000 && accepted(p) < n; i++)
        if (pending() > 0)
            step(1);
    ck_assert_uint_ge(accepted(p), n);
}

/*
 * An executor of one thread and 16 places that the first producer has filled; its first task has
 * begun.
 */
static void begin_full(void)
{
    e = executor_runner_create(1, 16);
    for (unsigned i = 0; i < PRODUCERS; i++)
        create(&producers[i], loops[0]);
    want(&producers[0], 1);
    UNTIL(executor_runner_stats(e).running_name);
    want(&producers[0], 17);
    ck_assert_uint_eq(producers[0].accepted, 17);
    ck_assert(producers[0].refused);
}

/* On the first loop, where all producers with wants left are. */
static void stop_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < PRODUCERS; i++)
        producers[i].wants = 0;
}

static void end(void)
{
    loop_runner_call(loops[0], stop_all, NULL);
    atomic_store(&steps_over, true);
    for (unsigned i = 0; i < 1000; i++)
        sem_post(&steps);
    for (unsigned i = 0; i < PRODUCERS; i++)
        destroy(&producers[i]);
    executor_runner_destroy(e);
    for (size_t i = 0; i < ARRAY_LEN(loops); i++)
        loop_runner_destroy(loops[i]);
}

/* ---- shares ---- */

#define PIECES 3000

static const unsigned places[] = {16, 128};

GROUP(room, setup, NULL);

TEST_EACH(room, producers_share_the_capacity_of_the_executor, ARRAY_LEN(places))
{
    unsigned least = UINT32_MAX, most = 0;

    e = executor_runner_create(1, places[_i]);
    executor_runner_block(e, &block);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        create(&producers[i], loops[0]);
        want(&producers[i], PIECES * PRODUCERS);
    }
    atomic_store(&steps_over, true);
    tasks_block_end(&block);
    UNTIL(atomic_load(&n_run) >= PIECES);
    loop_runner_call(loops[0], stop_all, NULL);
    UNTIL(pending() == 0);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        unsigned run = atomic_load(&producers[i].run);

        least = run < least ? run : least;
        most = run > most ? run : most;
    }
    ck_assert_msg(most <= 2 * least, "%u to %u", least, most);
    end();
}

TEST(room, refused_producer_is_served_before_later_and_served_producers)
{
    begin_full();
    want(&producers[1], 1);
    ck_assert_uint_eq(producers[1].accepted, 0);
    step(1); /* a place is free, and two wait for half of them */
    want(&producers[2], 1);
    ck_assert_uint_eq(producers[2].accepted, 0);
    step_until(&producers[1], 1);
    ck_assert_uint_eq(producers[0].accepted, 18);
    ck_assert_uint_eq(producers[2].accepted, 0);
    step_until(&producers[2], 1);
    end();
}

/* Sixteen places for three: the first to be told has wanted all of them. */
TEST(room, producer_gets_one_share_while_others_wait)
{
    begin_full();
    producers[0].wants = 100;
    want(&producers[1], 100);
    want(&producers[2], 100);
    step_until(&producers[2], 5);
    ck_assert_uint_eq(producers[1].accepted, 5);
    ck_assert_uint_le(producers[0].accepted, 17 + 5 + 5);
    end();
}

TEST(room, unused_part_of_a_share_is_available_to_others)
{
    begin_full();
    producers[0].wants = 100;
    want(&producers[1], 1);
    step_until(&producers[1], 1); /* of its share of eight */
    ck_assert_uint_eq(producers[0].accepted, 17 + 8);
    step_until(&producers[0], 17 + 8 + 15);
    ck_assert_uint_eq(pending(), 16);
    end();
}

TEST(room, destroyed_producer_frees_its_share)
{
    begin_full();
    want(&producers[1], 100);
    tasks_block_begin(&block, loops[0]); /* told, and not there yet */
    step(17);
    tasks_block_end(&block);
    destroy(&producers[1]);
    destroy(&producers[0]);
    atomic_store(&steps_over, true);
    sem_post(&steps);
    UNTIL(pending() == 0);
    want(&producers[2], 1);
    ck_assert_uint_eq(producers[2].accepted, 1); /* no other producer has a turn */
    end();
}

/* ---- a full strand ---- */

TEST(room, full_strand_is_notified_when_half_of_it_is_free)
{
    e = executor_runner_create(1, 1000);
    create(&producers[0], loops[0]);
    want(&producers[0], 1);
    UNTIL(executor_runner_stats(e).running_name);
    want(&producers[0], 64 + 1);
    ck_assert_uint_eq(producers[0].accepted, 1 + 64);
    step(31);
    UNTIL(pending() == 64 - 31);
    ck_assert_uint_eq(accepted(&producers[0]), 1 + 64);
    ck_assert_uint_eq(producers[0].turns, 0);
    step(1);
    UNTIL(accepted(&producers[0]) == 1 + 64 + 1);
    ck_assert_uint_eq(producers[0].turns, 1);
    end();
}

/* ---- loops that hang ---- */

TEST(room, blocked_loop_keeps_its_share_and_does_not_stop_other_producers)
{
    unsigned last;

    e = executor_runner_create(1, 16);
    for (unsigned i = 0; i < PRODUCERS; i++)
        create(&producers[i], loops[i == 0]);
    want(&producers[1], 1);
    UNTIL(executor_runner_stats(e).running_name);
    want(&producers[1], 100);
    want(&producers[0], 2);
    want(&producers[2], 100);
    tasks_block_begin(&block, loops[1]);
    for (unsigned i = 0; i < 10; i++) {
        last = accepted(&producers[2]);
        step_until(&producers[2], last + 1);
    }
    ck_assert_uint_eq(producers[0].accepted, 0);
    tasks_block_end(&block);
    UNTIL(accepted(&producers[0]) == 2); /* no step was needed */
    end();
}
