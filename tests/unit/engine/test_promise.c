/*
 * engine/promise: one outcome, whoever is first, and waiting for it. test_promise_listener.c is
 * about listeners.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "engine/promise.h"
#include "support/loop_runner.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/until.h"

#define ROUNDS IF_SANITIZED(1000, 10000)

#define RACERS    8
#define ONLOOKERS 3

static struct promise promise;

static void setup(void)
{
    promise_init(&promise, NULL);
}

static void teardown(void)
{
    promise_close(&promise);
}

/* ---- outcome ---- */

static bool call_fail(struct promise *p)
{
    return promise_fail(p, -EPIPE);
}

/* What each call answers in each state, and the state after it. */
static const struct row {
    enum promise_state from;
    bool (*call)(struct promise *p);
    bool answer;
    enum promise_state to;
} rows[] = {
    {PROMISE_PENDING, promise_succeed, true, PROMISE_SUCCEEDED},
    {PROMISE_PENDING, call_fail, true, PROMISE_FAILED},
    {PROMISE_PENDING, promise_cancel, true, PROMISE_CANCELLED},
    {PROMISE_PENDING, promise_set_uncancellable, true, PROMISE_UNCANCELLABLE},
    {PROMISE_UNCANCELLABLE, promise_succeed, true, PROMISE_SUCCEEDED},
    {PROMISE_UNCANCELLABLE, call_fail, true, PROMISE_FAILED},
    {PROMISE_UNCANCELLABLE, promise_cancel, false, PROMISE_UNCANCELLABLE},
    {PROMISE_UNCANCELLABLE, promise_set_uncancellable, true, PROMISE_UNCANCELLABLE},
    {PROMISE_SUCCEEDED, promise_succeed, false, PROMISE_SUCCEEDED},
    {PROMISE_SUCCEEDED, call_fail, false, PROMISE_SUCCEEDED},
    {PROMISE_SUCCEEDED, promise_cancel, false, PROMISE_SUCCEEDED},
    {PROMISE_SUCCEEDED, promise_set_uncancellable, true, PROMISE_SUCCEEDED},
    {PROMISE_FAILED, promise_succeed, false, PROMISE_FAILED},
    {PROMISE_FAILED, call_fail, false, PROMISE_FAILED},
    {PROMISE_FAILED, promise_cancel, false, PROMISE_FAILED},
    {PROMISE_FAILED, promise_set_uncancellable, true, PROMISE_FAILED},
    {PROMISE_CANCELLED, promise_succeed, false, PROMISE_CANCELLED},
    {PROMISE_CANCELLED, call_fail, false, PROMISE_CANCELLED},
    {PROMISE_CANCELLED, promise_cancel, false, PROMISE_CANCELLED},
    {PROMISE_CANCELLED, promise_set_uncancellable, false, PROMISE_CANCELLED},
};

static bool done(enum promise_state state)
{
    return state != PROMISE_PENDING && state != PROMISE_UNCANCELLABLE;
}

/* The first error is -EIO, a second one would be -EPIPE. */
static void bring_to(enum promise_state state)
{
    switch (state) {
    case PROMISE_PENDING: break;
    case PROMISE_UNCANCELLABLE: ck_assert(promise_set_uncancellable(&promise)); break;
    case PROMISE_SUCCEEDED: ck_assert(promise_succeed(&promise)); break;
    case PROMISE_FAILED: ck_assert(promise_fail(&promise, -EIO)); break;
    case PROMISE_CANCELLED: ck_assert(promise_cancel(&promise)); break;
    }
    ck_assert_int_eq(promise_state(&promise), state);
}

static void expect_outcome(enum promise_state state, bool is_first)
{
    int error = 0;

    if (state == PROMISE_FAILED)
        error = is_first ? -EIO : -EPIPE;
    else if (state == PROMISE_CANCELLED)
        error = -ECANCELED;
    ck_assert_int_eq(promise_error(&promise), error);
    ck_assert_int_eq(promise_await(&promise, CLOCK_NEVER), 0); /* whatever the outcome */
}

GROUP(outcome, setup, teardown);

TEST_EACH(outcome, first_completion_wins_and_only_a_pending_promise_is_cancelled, ARRAY_LEN(rows))
{
    const struct row *row = &rows[_i];

    bring_to(row->from);
    ck_assert_int_eq(row->call(&promise), row->answer);
    ck_assert_int_eq(promise_state(&promise), row->to);
    ck_assert_int_eq(promise_is_done(&promise), done(row->to));
    if (done(row->to))
        expect_outcome(row->to, done(row->from));
}

TEST_ABORTS(outcome, asking_a_pending_promise_for_its_error_is_a_bug)
{
    (void)promise_error(&promise);
}

TEST_ABORTS(outcome, failing_without_an_error_is_a_bug)
{
    (void)promise_fail(&promise, 0);
}

/*
 * ---- races: all threads make their call in each round, and the test looks at what came of it ----
 */

struct racer {
    pthread_t thread;
    unsigned id;
    bool answer;
};

static struct racer racers[RACERS];
static pthread_barrier_t begin, end;
static atomic_bool over;
static bool (*race_call)(const struct racer *r);

static void *race(void *arg)
{
    struct racer *r = arg;

    for (;;) {
        pthread_barrier_wait(&begin);
        if (atomic_load(&over))
            return NULL;
        r->answer = race_call(r);
        pthread_barrier_wait(&end);
    }
}

static void race_rounds(unsigned n_racers, bool (*call)(const struct racer *r), void (*check)(void))
{
    race_call = call;
    pthread_barrier_init(&begin, NULL, n_racers + 1);
    pthread_barrier_init(&end, NULL, n_racers + 1);
    for (unsigned i = 0; i < n_racers; i++) {
        racers[i].id = i;
        ck_assert_int_eq(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    EACH_ROUND(round, ROUNDS / 4)
    {
        promise_close(&promise);
        promise_init(&promise, NULL);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        check();
    }
    atomic_store(&over, true);
    pthread_barrier_wait(&begin);
    for (unsigned i = 0; i < n_racers; i++)
        pthread_join(racers[i].thread, NULL);
}

/* Racer 0 cancels, odd ones succeed, the error of the others is their own. */
static bool complete_somehow(const struct racer *r)
{
    if (r->id == 0)
        return promise_cancel(&promise);
    if (r->id % 2)
        return promise_succeed(&promise);
    return promise_fail(&promise, -(int)r->id);
}

static void check_one_winner(void)
{
    const struct racer *winner = NULL;

    for (unsigned i = 0; i < RACERS; i++)
        if (racers[i].answer) {
            ck_assert_ptr_null(winner);
            winner = &racers[i];
        }
    ck_assert_ptr_nonnull(winner);
    ck_assert_int_eq(promise_state(&promise), winner->id == 0  ? PROMISE_CANCELLED
                                              : winner->id % 2 ? PROMISE_SUCCEEDED
                                                               : PROMISE_FAILED);
    if (promise_state(&promise) == PROMISE_FAILED)
        ck_assert_int_eq(promise_error(&promise), -(int)winner->id);
}

TEST(outcome, one_of_eight_completing_threads_wins_with_its_own_outcome)
{
    race_rounds(RACERS, complete_somehow, check_one_winner);
}

static bool cancel_or_forbid(const struct racer *r)
{
    return r->id == 0 ? promise_cancel(&promise) : promise_set_uncancellable(&promise);
}

static void check_either(void)
{
    ck_assert_int_ne(racers[0].answer, racers[1].answer);
    ck_assert_int_eq(promise_state(&promise),
                     racers[0].answer ? PROMISE_CANCELLED : PROMISE_UNCANCELLABLE);
}

TEST(outcome, promise_is_either_cancelled_or_made_uncancellable)
{
    race_rounds(2, cancel_or_forbid, check_either);
}

/* Racer 0 completes, the others look on. */
static bool complete_or_look(const struct racer *r)
{
    if (r->id == 0)
        return promise_fail(&promise, -EIO);
    while (!promise_is_done(&promise))
        sched_yield();
    return promise_error(&promise) == -EIO;
}

static void check_all_saw_it(void)
{
    for (unsigned i = 0; i <= ONLOOKERS; i++)
        ck_assert(racers[i].answer);
}

TEST(outcome, thread_that_sees_completion_sees_the_outcome)
{
    race_rounds(1 + ONLOOKERS, complete_or_look, check_all_saw_it);
}

/* ---- waiting: where nothing limits it, the time limit of the case ends what hangs ---- */

GROUP(await, setup, teardown);

TEST(await, await_never_times_out_early)
{
    int64_t began_at_ns = clock_now_ns();

    ck_assert_int_eq(promise_await(&promise, 50 * NS_PER_MS), -ETIMEDOUT);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 50 * NS_PER_MS);
    ck_assert_int_eq(promise_state(&promise), PROMISE_PENDING);
}

TEST(await, await_without_a_timeout_does_not_block)
{
    static const int64_t none[] = {0, -1, -NS_PER_S, INT64_MIN};
    int64_t began_at_ns = clock_now_ns();

    for (unsigned i = 0; i < ARRAY_LEN(none); i++)
        ck_assert_int_eq(promise_await(&promise, none[i]), -ETIMEDOUT);
    ck_assert(promise_cancel(&promise));
    for (unsigned i = 0; i < ARRAY_LEN(none); i++)
        ck_assert_int_eq(promise_await(&promise, none[i]), 0);
    ck_assert_int_lt(since_ms(began_at_ns), UNTIL_LIMIT_NS / NS_PER_MS);
}

static void *succeed_soon(void *arg)
{
    PAUSE_MS(30);
    ck_assert(promise_succeed(&promise));
    return arg;
}

TEST_EACH(await, await_with_an_endless_timeout_does_not_overflow, 3)
{
    static const int64_t for_ever[] = {CLOCK_NEVER, CLOCK_NEVER - 1, CLOCK_NEVER / 2};
    pthread_t thread;

    pthread_create(&thread, NULL, succeed_soon, NULL);
    ck_assert_int_eq(promise_await(&promise, for_ever[_i]), 0);
    pthread_join(thread, NULL);
}

static void *await(void *arg)
{
    ck_assert_int_eq(promise_await(arg, CLOCK_NEVER), 0);
    return NULL;
}

TEST(await, completion_wakes_all_waiting_threads)
{
    pthread_t threads[RACERS];

    for (unsigned i = 0; i < RACERS; i++)
        pthread_create(&threads[i], NULL, await, &promise);
    PAUSE_MS(20);
    ck_assert(promise_fail(&promise, -EIO));
    for (unsigned i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- waiting on a loop ---- */

static const int64_t timeouts[] = {CLOCK_NEVER, NS_PER_S, 0, -1};

static void expect_deadlock(void *arg)
{
    for (unsigned i = 0; i < ARRAY_LEN(timeouts); i++)
        ck_assert_int_eq(promise_await(arg, timeouts[i]), -EDEADLK);
}

static void expect_complete(void *arg)
{
    for (unsigned i = 0; i < ARRAY_LEN(timeouts); i++)
        ck_assert_int_eq(promise_await(arg, timeouts[i]), 0);
}

TEST(await, await_on_any_loop_is_refused_while_pending)
{
    struct loop *own = loop_runner_create(), *other = loop_runner_create();
    struct promise p;

    promise_init(&p, own);
    loop_runner_call(own, expect_deadlock, &p);
    loop_runner_call(other, expect_deadlock, &p);
    loop_runner_call(own, expect_deadlock, &promise); /* which has none */
    ck_assert(promise_set_uncancellable(&p));
    loop_runner_call(own, expect_deadlock, &p);
    ck_assert(promise_succeed(&p));
    loop_runner_call(own, expect_complete, &p);
    loop_runner_call(other, expect_complete, &p);
    promise_close(&p);
    loop_runner_destroy(own);
    loop_runner_destroy(other);
}

/* ---- who waits may end its life ---- */

static _Atomic(struct promise *) to_complete;
static atomic_bool no_more;

static void *complete_what_comes(void *arg)
{
    while (!atomic_load(&no_more)) {
        struct promise *p = atomic_exchange(&to_complete, NULL);

        if (p)
            ck_assert(promise_succeed(p));
        else
            sched_yield();
    }
    return arg;
}

TEST(await, thread_that_awaited_may_free_the_promise_at_once)
{
    pthread_t thread;

    pthread_create(&thread, NULL, complete_what_comes, NULL);
    EACH_ROUND(round, ROUNDS)
    {
        struct promise *p = malloc(sizeof(*p));

        promise_init(p, NULL);
        atomic_store(&to_complete, p);
        if (round % 3 == 0)
            ck_assert_int_eq(promise_await(p, CLOCK_NEVER), 0); /* in time to sleep */
        else
            while (promise_await(p, 0) < 0) /* never asleep */
                sched_yield();
        promise_close(p);
        free(p);
    }
    atomic_store(&no_more, true);
    pthread_join(thread, NULL);
}
