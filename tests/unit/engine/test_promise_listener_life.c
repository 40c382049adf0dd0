/* engine/promise, its listeners: how deep they are told, and what they may free. */
#include <semaphore.h>
#include <stdlib.h>

#include "engine/promise.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/noted.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/until.h"

#define ROUNDS IF_SANITIZED(1000, 5000)
#define CHAIN  100000

/* ---- how deep: promises that complete each other ---- */

struct link {
    struct promise promise;
    struct promise_listener listener;
    struct link *next;
};

static struct link *chain;
static unsigned nested, deepest, told;
static sem_t chain_told;

static void link_done(struct promise_listener *l, struct promise *p)
{
    struct link *next = CONTAINER_OF(l, struct link, listener)->next;

    (void)p;
    nested++;
    deepest = nested > deepest ? nested : deepest;
    told++;
    if (next)
        ck_assert(promise_succeed(&next->promise));
    else
        sem_post(&chain_told);
    nested--;
}

static void chain_create(unsigned n)
{
    chain = calloc(n, sizeof(*chain));
    ck_assert_ptr_nonnull(chain);
    nested = deepest = told = 0;
    sem_init(&chain_told, 0, 0);
    for (unsigned i = 0; i < n; i++) {
        chain[i].next = i + 1 < n ? &chain[i + 1] : NULL;
        chain[i].listener.done = link_done;
        promise_init(&chain[i].promise, noted.promise_loop);
        promise_listen(&chain[i].promise, &chain[i].listener);
    }
}

static void chain_free(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        promise_close(&chain[i].promise);
    free(chain);
    sem_destroy(&chain_told);
}

GROUP(depth, noted_setup, noted_teardown);

TEST_EACH(depth, chain_of_a_hundred_thousand_promises_does_not_exhaust_the_stack, PLACES)
{
    noted_go_to((enum place)_i);
    chain_create(CHAIN);
    noted_succeed_in((enum place)_i, &chain[0].promise);
    while (sem_wait(&chain_told) < 0)
        ;
    noted_settle((enum place)_i); /* the last done() has returned */
    ck_assert_uint_eq(told, CHAIN);
    ck_assert_uint_eq(deepest, PROMISE_NESTED_MAX);
    chain_free(CHAIN);
}

static void succeed_and_count(void *arg)
{
    noted_succeed(&chain[0].promise);
    *(unsigned *)arg = told;
}

TEST(depth, nested_completions_are_called_directly_to_depth_eight_and_then_by_a_task)
{
    unsigned told_inside = 0;

    chain_create(2 * PROMISE_NESTED_MAX + 1);
    loop_runner_call(noted.loop, succeed_and_count, &told_inside);
    ck_assert_uint_eq(told_inside, PROMISE_NESTED_MAX);
    UNTIL(sem_trywait(&chain_told) == 0);
    noted_settle(ON_ITS_LOOP);
    ck_assert_uint_eq(told, 2 * PROMISE_NESTED_MAX + 1);
    chain_free(2 * PROMISE_NESTED_MAX + 1);
}

/* ---- who may free what ---- */

static void free_noting(struct promise_listener *l, struct promise *p)
{
    noted_note(l, p);
    free(CONTAINER_OF(l, struct noting, listener));
}

GROUP(life, noted_setup, noted_teardown);

TEST_EACH(life, listener_may_free_the_object_that_embeds_it, PLACES)
{
    noted_go_to((enum place)_i);
    for (int i = 0; i < 5; i++) {
        struct noting *n = malloc(sizeof(*n));

        noted_noting_init(n, (char)('a' + i));
        n->listener.done = free_noting;
        promise_listen(&noted.promise, &n->listener);
    }
    noted_succeed_in((enum place)_i, &noted.promise);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "abcde");
}

/* A promise with its listeners in one allocation. */
struct operation {
    struct promise promise;
    struct noting first, second, last;
    unsigned left; /* times to begin anew */
};

static void free_operation(struct promise_listener *l, struct promise *p)
{
    struct operation *op = CONTAINER_OF(l, struct operation, last.listener);

    noted_note(l, p);
    promise_close(p);
    free(op);
}

static struct operation *operation_create(void)
{
    struct operation *op = malloc(sizeof(*op));

    ck_assert_ptr_nonnull(op);
    promise_init(&op->promise, noted.promise_loop);
    noted_noting_init(&op->first, 'a');
    noted_noting_init(&op->second, 'b');
    noted_noting_init(&op->last, 'c');
    op->last.listener.done = free_operation;
    promise_listen(&op->promise, &op->first.listener);
    promise_listen(&op->promise, &op->second.listener);
    return op;
}

TEST_EACH(life, last_listener_may_free_the_promise_even_if_added_by_another, PLACES)
{
    struct operation *op;

    noted_go_to((enum place)_i);
    op = operation_create();
    op->second.adds = &op->last;
    noted_succeed_in((enum place)_i, &op->promise);
    noted_settle((enum place)_i);
    ck_assert_str_eq(noted.trace.text, "abBc");
}

static void begin_anew(struct promise_listener *l, struct promise *p)
{
    struct operation *op = CONTAINER_OF(l, struct operation, last.listener);

    nested++;
    deepest = nested > deepest ? nested : deepest;
    promise_close(p);
    if (op->left-- > 0) {
        promise_init(p, noted.promise_loop);
        promise_listen(p, &op->last.listener);
        noted_succeed(p);
    } else {
        free(op);
        sem_post(&chain_told);
    }
    nested--;
}

/* Who has told it must not take the new promise at the same address for the old one. */
TEST_EACH(life, last_listener_may_reinitialise_the_promise, PLACES)
{
    struct operation *op = calloc(1, sizeof(*op));

    noted_go_to((enum place)_i);
    nested = deepest = 0;
    sem_init(&chain_told, 0, 0);
    op->left = ROUNDS;
    op->last.listener.done = begin_anew;
    promise_init(&op->promise, noted.promise_loop);
    promise_listen(&op->promise, &op->last.listener);
    noted_succeed_in((enum place)_i, &op->promise);
    while (sem_wait(&chain_told) < 0)
        ;
    noted_settle((enum place)_i);
    ck_assert_uint_le(deepest, PROMISE_NESTED_MAX);
    sem_destroy(&chain_told);
}

struct passing {
    struct promise promise;
    struct promise_listener listener;
    sem_t *told;
};

static void pass_on(struct promise_listener *l, struct promise *p)
{
    (void)p;
    sem_post(CONTAINER_OF(l, struct passing, listener)->told);
}

TEST_RANGE(life, last_listener_may_hand_the_promise_to_a_thread_that_frees_it, FROM_OUTSIDE, PLACES)
{
    sem_t sem;

    noted_go_to((enum place)_i);
    sem_init(&sem, 0, 0);
    EACH_ROUND(round, ROUNDS)
    {
        struct passing *op = malloc(sizeof(*op));

        op->told = &sem;
        op->listener.done = pass_on;
        promise_init(&op->promise, noted.promise_loop);
        if (round % 2)
            promise_listen(&op->promise, &op->listener);
        noted_succeed(&op->promise);
        if (round % 2 == 0)
            promise_listen(&op->promise, &op->listener);
        while (sem_wait(&sem) < 0)
            ;
        promise_close(&op->promise);
        free(op);
    }
    sem_destroy(&sem);
}

TEST_ABORTS(life, closing_a_promise_with_a_waiting_listener_is_a_bug)
{
    noted_noting_reset();
    promise_listen(&noted.promise, &noted.a.listener);
    promise_close(&noted.promise);
}
