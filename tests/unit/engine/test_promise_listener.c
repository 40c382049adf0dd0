/*
 * engine/promise, its listeners: in which order, on which thread and how deep they are told, and
 * what they may free.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

#include "engine/promise.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define ROUNDS IF_SANITIZED(1000, 5000)

#define CHAIN 100000

/* Where the promise's listeners are told, and who completes it. */
enum place {
    ON_ITS_LOOP,
    FROM_OUTSIDE,
    WITHOUT_LOOP,
    LOOP_ENDED,
    LOOP_NEVER_RAN, /* and has ended */
    PLACES
};

static struct loop *loop, *promise_loop;
static struct promise promise;
static struct tasks_trace trace;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    loop = promise_loop = loop_runner_create();
    trace = (struct tasks_trace){.len = 0};
    promise_init(&promise, loop);
}

static void teardown(void)
{
    promise_close(&promise);
    loop_runner_destroy(loop);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void go_to(enum place place)
{
    if (place == WITHOUT_LOOP)
        promise_loop = NULL;
    if (place == LOOP_ENDED)
        loop_runner_call(loop, nothing, NULL);
    if (place >= LOOP_ENDED)
        loop_runner_stop(loop);
    promise_close(&promise);
    promise_init(&promise, promise_loop);
}

static void succeed(void *arg)
{
    ck_assert(promise_succeed(arg));
}

/* Complete ${p}; unless that is FROM_OUTSIDE, it has told all listeners when it returns. */
static void succeed_in(enum place place, struct promise *p)
{
    if (place == ON_ITS_LOOP)
        loop_runner_call(loop, succeed, p);
    else
        succeed(p);
}

/* What was submitted to the loop so far has run. */
static void settle(enum place place)
{
    if (place <= FROM_OUTSIDE)
        loop_runner_call(loop, nothing, NULL);
}

/* Adds its letter to the trace; if it adds another listener, its capital letter after that. */
struct noting {
    struct promise_listener listener;
    char letter;
    struct noting *adds;
};

static void note(struct promise_listener *l, struct promise *p)
{
    struct noting *n = CONTAINER_OF(l, struct noting, listener);

    tasks_trace_add(&trace, n->letter);
    if (n->adds) {
        promise_listen(p, &n->adds->listener);
        tasks_trace_add(&trace, (char)(n->letter - 'a' + 'A'));
    }
}

static void noting_init(struct noting *n, char letter)
{
    *n = (struct noting){.listener.done = note, .letter = letter};
}

static struct noting a, b, c, d;

static void noting_reset(void)
{
    trace = (struct tasks_trace){.len = 0};
    noting_init(&a, 'a');
    noting_init(&b, 'b');
    noting_init(&c, 'c');
    noting_init(&d, 'd');
}

static void listen_for(void *arg)
{
    struct noting *n = arg;

    promise_listen(&promise, &n->listener);
    tasks_trace_add(&trace, '.');
}

/* ---- order ---- */

GROUP(order, setup, teardown);

TEST_EACH(order, listeners_are_called_in_the_order_they_were_added, PLACES)
{
    struct noting n[26];

    go_to((enum place)_i);
    for (int i = 0; i < 26; i++) {
        noting_init(&n[i], (char)('a' + i));
        promise_listen(&promise, &n[i].listener);
    }
    ck_assert_uint_eq(trace.len, 0);
    succeed_in((enum place)_i, &promise);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "abcdefghijklmnopqrstuvwxyz");
}

TEST_EACH(order, listener_added_after_completion_is_called, PLACES)
{
    noting_reset();
    go_to((enum place)_i);
    promise_listen(&promise, &a.listener);
    succeed_in((enum place)_i, &promise);
    promise_listen(&promise, &b.listener);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "ab");
    promise_listen(&promise, &c.listener);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "abc");
}

struct late {
    struct task task;
    struct noting *listener;
};

static void late_run(struct task *t)
{
    listen_for(CONTAINER_OF(t, struct late, task)->listener);
}

static void late_drop(struct task *t)
{
    (void)t;
    ck_abort();
}

/*
 * The loop gets to the one that adds before the one that tells, and still adds behind the others.
 */
TEST(order, late_listener_is_called_after_earlier_ones_even_if_added_on_the_loop)
{
    static const struct task_type type = {.name = "late", .run = late_run, .drop = late_drop};
    struct late late = {.task.type = &type, .listener = &c};
    struct tasks_block block;

    noting_reset();
    promise_listen(&promise, &a.listener);
    tasks_block_begin(&block, loop);
    ck_assert_int_eq(loop_submit(loop, LOOP_CONTROL, &late.task), 0);
    succeed(&promise);
    promise_listen(&promise, &b.listener);
    ck_assert_uint_eq(trace.len, 0);
    tasks_block_end(&block);
    settle(FROM_OUTSIDE);
    ck_assert_str_eq(trace.text, ".abc");
}

TEST_EACH(order, listener_added_by_a_listener_is_called_after_that_has_returned, PLACES)
{
    noting_reset();
    go_to((enum place)_i);
    a.adds = &c;
    c.adds = &d;
    promise_listen(&promise, &a.listener);
    promise_listen(&promise, &b.listener);
    succeed_in((enum place)_i, &promise);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "aAbcCd");
}

static void *listen_for_b(void *arg)
{
    promise_listen(arg, &b.listener);
    return NULL;
}

static void note_while_another_adds(struct promise_listener *l, struct promise *p)
{
    pthread_t adder;

    note(l, p);
    pthread_create(&adder, NULL, listen_for_b, p);
    pthread_join(adder, NULL);
    tasks_trace_add(&trace, '.');
}

TEST_EACH(order, listener_added_by_another_thread_during_a_call_is_called_after_it, PLACES)
{
    noting_reset();
    go_to((enum place)_i);
    a.listener.done = note_while_another_adds;
    promise_listen(&promise, &a.listener);
    succeed_in((enum place)_i, &promise);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "a.b");
}

/* ---- where ---- */

static struct loop *told_on;
static pthread_t told_by;

static void note_where(struct promise_listener *l, struct promise *p)
{
    note(l, p);
    told_on = loop_current();
    told_by = pthread_self();
}

GROUP(where, setup, teardown);

TEST_RANGE(where, listener_is_called_on_the_loop_of_the_promise, ON_ITS_LOOP, FROM_OUTSIDE + 1)
{
    noting_reset();
    go_to((enum place)_i);
    a.listener.done = note_where;
    promise_listen(&promise, &a.listener);
    succeed_in((enum place)_i, &promise);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "a");
    ck_assert_ptr_eq(told_on, loop);
}

TEST_RANGE(where, without_a_running_loop_the_listener_is_called_by_the_completing_thread,
           WITHOUT_LOOP, PLACES)
{
    noting_reset();
    go_to((enum place)_i);
    a.listener.done = b.listener.done = note_where;
    promise_listen(&promise, &a.listener);
    succeed(&promise);
    ck_assert_str_eq(trace.text, "a");
    ck_assert(pthread_equal(told_by, pthread_self()));
    listen_for(&b);
    ck_assert_str_eq(trace.text, "ab.");
    ck_assert(pthread_equal(told_by, pthread_self()));
}

static void succeed_and_listen(void *arg)
{
    promise_listen(&promise, &a.listener);
    succeed(&promise);
    tasks_trace_add(&trace, '.');
    listen_for(arg);
}

TEST(where, completion_on_the_loop_calls_the_listener_without_a_task)
{
    struct loop_stats stats;

    noting_reset();
    loop_runner_call(loop, succeed_and_listen, &b);
    ck_assert_str_eq(trace.text, "a.b.");
    loop_runner_stop(loop);
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.tasks_run, 1); /* the call */
}

TEST(where, completion_without_listeners_submits_no_task)
{
    ck_assert(promise_cancel(&promise));
    ck_assert(!promise_succeed(&promise));
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
}

TEST(where, a_loop_that_cannot_start_its_thread_loses_no_listener)
{
    noting_reset();
    a.listener.done = note_where;
    promise_listen(&promise, &a.listener);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    succeed(&promise);
    ck_assert_str_eq(trace.text, "a");
    ck_assert(pthread_equal(told_by, pthread_self()));
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
}

TEST(where, a_loop_that_drops_the_task_loses_no_listener)
{
    struct tasks_block block;
    struct loop_stats stats;

    noting_reset();
    a.adds = &b;
    promise_listen(&promise, &a.listener);
    tasks_block_begin(&block, loop);
    succeed(&promise);
    loop_stop(loop, 0, 0); /* no time for what is queued */
    tasks_block_end(&block);
    loop_runner_join(loop);
    ck_assert_str_eq(trace.text, "aAb");
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.tasks_dropped, 1);
}

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
        promise_init(&chain[i].promise, promise_loop);
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

GROUP(depth, setup, teardown);

TEST_EACH(depth, chain_of_a_hundred_thousand_promises_does_not_exhaust_the_stack, PLACES)
{
    go_to((enum place)_i);
    chain_create(CHAIN);
    succeed_in((enum place)_i, &chain[0].promise);
    while (sem_wait(&chain_told) < 0)
        ;
    settle((enum place)_i); /* the last done() has returned */
    ck_assert_uint_eq(told, CHAIN);
    ck_assert_uint_eq(deepest, PROMISE_NESTED_MAX);
    chain_free(CHAIN);
}

static void succeed_and_count(void *arg)
{
    succeed(&chain[0].promise);
    *(unsigned *)arg = told;
}

TEST(depth, nested_completions_are_called_directly_to_depth_eight_and_then_by_a_task)
{
    unsigned told_inside = 0;

    chain_create(2 * PROMISE_NESTED_MAX + 1);
    loop_runner_call(loop, succeed_and_count, &told_inside);
    ck_assert_uint_eq(told_inside, PROMISE_NESTED_MAX);
    UNTIL(sem_trywait(&chain_told) == 0);
    settle(ON_ITS_LOOP);
    ck_assert_uint_eq(told, 2 * PROMISE_NESTED_MAX + 1);
    chain_free(2 * PROMISE_NESTED_MAX + 1);
}

/* ---- who may free what ---- */

static void free_noting(struct promise_listener *l, struct promise *p)
{
    note(l, p);
    free(CONTAINER_OF(l, struct noting, listener));
}

GROUP(life, setup, teardown);

TEST_EACH(life, listener_may_free_the_object_that_embeds_it, PLACES)
{
    go_to((enum place)_i);
    for (int i = 0; i < 5; i++) {
        struct noting *n = malloc(sizeof(*n));

        noting_init(n, (char)('a' + i));
        n->listener.done = free_noting;
        promise_listen(&promise, &n->listener);
    }
    succeed_in((enum place)_i, &promise);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "abcde");
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

    note(l, p);
    promise_close(p);
    free(op);
}

static struct operation *operation_create(void)
{
    struct operation *op = malloc(sizeof(*op));

    ck_assert_ptr_nonnull(op);
    promise_init(&op->promise, promise_loop);
    noting_init(&op->first, 'a');
    noting_init(&op->second, 'b');
    noting_init(&op->last, 'c');
    op->last.listener.done = free_operation;
    promise_listen(&op->promise, &op->first.listener);
    promise_listen(&op->promise, &op->second.listener);
    return op;
}

TEST_EACH(life, last_listener_may_free_the_promise_even_if_added_by_another, PLACES)
{
    struct operation *op;

    go_to((enum place)_i);
    op = operation_create();
    op->second.adds = &op->last;
    succeed_in((enum place)_i, &op->promise);
    settle((enum place)_i);
    ck_assert_str_eq(trace.text, "abBc");
}

static void begin_anew(struct promise_listener *l, struct promise *p)
{
    struct operation *op = CONTAINER_OF(l, struct operation, last.listener);

    nested++;
    deepest = nested > deepest ? nested : deepest;
    promise_close(p);
    if (op->left-- > 0) {
        promise_init(p, promise_loop);
        promise_listen(p, &op->last.listener);
        succeed(p);
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

    go_to((enum place)_i);
    nested = deepest = 0;
    sem_init(&chain_told, 0, 0);
    op->left = ROUNDS;
    op->last.listener.done = begin_anew;
    promise_init(&op->promise, promise_loop);
    promise_listen(&op->promise, &op->last.listener);
    succeed_in((enum place)_i, &op->promise);
    while (sem_wait(&chain_told) < 0)
        ;
    settle((enum place)_i);
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

    go_to((enum place)_i);
    sem_init(&sem, 0, 0);
    EACH_ROUND(round, ROUNDS)
    {
        struct passing *op = malloc(sizeof(*op));

        op->told = &sem;
        op->listener.done = pass_on;
        promise_init(&op->promise, promise_loop);
        if (round % 2)
            promise_listen(&op->promise, &op->listener);
        succeed(&op->promise);
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
    noting_reset();
    promise_listen(&promise, &a.listener);
    promise_close(&promise);
}
