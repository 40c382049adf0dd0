/*
 * stress/promise: threads complete, cancel, listen to and wait for the same promises, while their
 * loop starts, fails to start and ends. Each promise has one winner, each listener is told once, in
 * its order and alone, and nobody waits for ever. Then promises that are freed at the first moment
 * that is allowed, by who waited or by the last listener.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/log.h"
#include "engine/loop.h"
#include "engine/promise.h"
#include "stress/stress.h"
#include "support/fault.h"

#define BATCH  64
#define ADDERS 2
#define EACH   4 /* listeners of each adder for each promise; each adds another */
#define OWNERS 2

enum place { LOOP_LIVES, LOOP_ENDS, NO_LOOP, LOOP_STARTS_LATE, PLACES };

/* What each thread does with all promises of a round. */
enum role { SUCCEEDS, FAILS, CANCELS, FORBIDS, LISTENS, LISTENS_TOO, AWAITS, AWAITS_TOO, ROLES };

struct hearing {
    struct promise_listener listener;
    struct operation *operation;
    unsigned adder; /* of the first kind of listener; ADDERS: added by another listener */
    unsigned number;
    unsigned told;
};

struct operation {
    struct promise promise;
    struct hearing heard[ADDERS][EACH], added[ADDERS][EACH];
    unsigned next[ADDERS]; /* number of the next listener of each adder */
    atomic_bool notifier;
    atomic_uint won[FORBIDS]; /* by role */
};

static struct loop *loop;
static struct operation operations[BATCH];
static pthread_barrier_t begin, end;
static uint64_t round_no;
static atomic_bool over;
static uint64_t n_won[FORBIDS], n_told;

static void on_done(struct promise_listener *l, struct promise *p)
{
    struct hearing *h = CONTAINER_OF(l, struct hearing, listener);
    struct operation *op = h->operation;

    STRESS_CHECK(!atomic_exchange(&op->notifier, true));
    STRESS_CHECK(p == &op->promise && promise_is_done(p));
    h->told++;
    if (h->adder < ADDERS) {
        STRESS_CHECK(h->number == op->next[h->adder]);
        op->next[h->adder]++;
        promise_listen(p, &op->added[h->adder][h->number].listener);
    }
    atomic_store(&op->notifier, false);
}

static void play(enum role role, struct operation *op)
{
    switch (role) {
    case SUCCEEDS: atomic_fetch_add(&op->won[role], promise_succeed(&op->promise)); break;
    case FAILS: atomic_fetch_add(&op->won[role], promise_fail(&op->promise, -EIO)); break;
    case CANCELS: atomic_fetch_add(&op->won[role], promise_cancel(&op->promise)); break;
    case FORBIDS:
        if (promise_set_uncancellable(&op->promise))
            STRESS_CHECK(!promise_cancel(&op->promise));
        break;
    case LISTENS:
    case LISTENS_TOO:
        for (unsigned i = 0; i < EACH; i++)
            promise_listen(&op->promise, &op->heard[role - LISTENS][i].listener);
        break;
    default:
        STRESS_CHECK(promise_await(&op->promise, CLOCK_NEVER) == 0);
        STRESS_CHECK(promise_is_done(&op->promise));
        break;
    }
}

static void *player(void *arg)
{
    enum role role = (enum role)(uintptr_t)arg;
    unsigned seed = role;

    for (;;) {
        unsigned first;

        pthread_barrier_wait(&begin);
        if (atomic_load(&over))
            return NULL;
        first = round_no % 2 ? (unsigned)rand_r(&seed) : 0; /* apart, or all at the same */
        for (unsigned i = 0; i < BATCH; i++)
            play(role, &operations[(first + i) % BATCH]);
        pthread_barrier_wait(&end);
    }
}

static void hearing_init(struct hearing *h, struct operation *op, unsigned adder, unsigned number)
{
    *h = (struct hearing){
        .listener.done = on_done, .operation = op, .adder = adder, .number = number};
}

static void operation_init(struct operation *op, struct loop *told_on)
{
    memset(op, 0, sizeof(*op));
    promise_init(&op->promise, told_on);
    for (unsigned a = 0; a < ADDERS; a++)
        for (unsigned i = 0; i < EACH; i++) {
            hearing_init(&op->heard[a][i], op, a, i);
            hearing_init(&op->added[a][i], op, ADDERS, i);
        }
}

/* Whose state it is. */
static enum role operation_winner(const struct operation *op)
{
    switch (promise_state(&op->promise)) {
    case PROMISE_SUCCEEDED: STRESS_CHECK(promise_error(&op->promise) == 0); return SUCCEEDS;
    case PROMISE_FAILED: STRESS_CHECK(promise_error(&op->promise) == -EIO); return FAILS;
    default:
        STRESS_CHECK(promise_state(&op->promise) == PROMISE_CANCELLED);
        STRESS_CHECK(promise_error(&op->promise) == -ECANCELED);
        return CANCELS;
    }
}

static void operation_check(struct operation *op)
{
    enum role winner = operation_winner(op);

    for (enum role r = SUCCEEDS; r < FORBIDS; r++) {
        STRESS_CHECK(atomic_load(&op->won[r]) == (r == winner));
        n_won[r] += atomic_load(&op->won[r]);
    }
    for (unsigned a = 0; a < ADDERS; a++)
        for (unsigned i = 0; i < EACH; i++) {
            STRESS_CHECK(op->heard[a][i].told == 1 && op->added[a][i].told == 1);
            n_told += 2;
        }
    promise_close(&op->promise);
}

static void run_round(void)
{
    static const struct loop_conf conf = {.name = "stress",
                                          .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                                          .max_pending_tasks = 1024};
    enum place place = (enum place)(round_no / 2 % PLACES);

    STRESS_CHECK(loop_create(&loop, &conf) == 0);
    for (unsigned i = 0; i < BATCH; i++)
        operation_init(&operations[i], place == NO_LOOP ? NULL : loop);
    fault_plan(FAULT_PTHREAD_CREATE, 0, place == LOOP_STARTS_LATE ? 50 : 0, EAGAIN);
    pthread_barrier_wait(&begin);
    if (place == LOOP_ENDS) {
        for (uint64_t spin = 0; spin < round_no % 499 * 100; spin++)
            atomic_load(&over); /* another moment in each round */
        loop_stop(loop, 0, round_no % 3 ? 0 : NS_PER_S);
    }
    pthread_barrier_wait(&end);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
    loop_stop(loop, 0, 60 * NS_PER_S);
    STRESS_CHECK(loop_join_until(loop, CLOCK_NEVER) == 0);
    for (unsigned i = 0; i < BATCH; i++)
        operation_check(&operations[i]);
    loop_destroy(loop);
}

static void run_rounds(uint64_t load)
{
    pthread_t players[ROLES];

    pthread_barrier_init(&begin, NULL, ROLES + 1);
    pthread_barrier_init(&end, NULL, ROLES + 1);
    for (uintptr_t role = 0; role < ROLES; role++)
        STRESS_CHECK(pthread_create(&players[role], NULL, player, (void *)role) == 0);
    for (round_no = 0; stress_goes_on(round_no, load); round_no++)
        run_round();
    atomic_store(&over, true);
    pthread_barrier_wait(&begin);
    for (unsigned role = 0; role < ROLES; role++)
        pthread_join(players[role], NULL);
    STRESS_CHECK(n_won[SUCCEEDS] + n_won[FAILS] + n_won[CANCELS] == round_no * BATCH);
    STRESS_CHECK(n_told == round_no * BATCH * ADDERS * EACH * 2);
}

/* ---- short lives ---- */

struct brief {
    struct promise promise;
    struct promise_listener listener;
};

/* An owner makes promises, and somebody else completes them. */
struct owner {
    pthread_t thread, completer;
    _Atomic(struct brief *) made;
    uint64_t load, n;
    atomic_bool done;
};

static atomic_ullong n_freed;

static void brief_end(struct brief *b)
{
    promise_close(&b->promise);
    memset(b, 0xee, sizeof(*b)); /* what is used afterwards does not work */
    free(b);
    atomic_fetch_add(&n_freed, 1);
}

static void end_by_listener(struct promise_listener *l, struct promise *p)
{
    (void)p;
    brief_end(CONTAINER_OF(l, struct brief, listener));
}

static void *complete_made(void *arg)
{
    struct owner *o = arg;

    for (;;) {
        struct brief *b;

        while (!(b = atomic_exchange(&o->made, NULL))) {
            if (atomic_load(&o->done))
                return NULL;
            sched_yield();
        }
        STRESS_CHECK(promise_succeed(&b->promise));
    }
}

static void *own(void *arg)
{
    struct owner *o = arg;

    for (o->n = 0; stress_goes_on(o->n, o->load); o->n++) {
        struct brief *b = malloc(sizeof(*b));

        STRESS_CHECK(b != NULL);
        promise_init(&b->promise, o->n % 3 ? loop : NULL);
        b->listener.done = end_by_listener;
        while (atomic_load(&o->made))
            sched_yield();
        atomic_store(&o->made, b);
        if (o->n % 2) {
            promise_listen(&b->promise, &b->listener);
        } else {
            STRESS_CHECK(promise_await(&b->promise, CLOCK_NEVER) == 0);
            brief_end(b);
        }
    }
    while (atomic_load(&o->made))
        sched_yield();
    atomic_store(&o->done, true);
    return NULL;
}

static void run_lives(uint64_t load)
{
    static const struct loop_conf conf = {.name = "stress",
                                          .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                                          .max_pending_tasks = 1024};
    static struct owner owners[OWNERS];
    uint64_t n = 0;

    STRESS_CHECK(loop_create(&loop, &conf) == 0);
    for (unsigned i = 0; i < OWNERS; i++) {
        owners[i].load = load;
        STRESS_CHECK(pthread_create(&owners[i].thread, NULL, own, &owners[i]) == 0);
        STRESS_CHECK(pthread_create(&owners[i].completer, NULL, complete_made, &owners[i]) == 0);
    }
    for (unsigned i = 0; i < OWNERS; i++) {
        pthread_join(owners[i].thread, NULL);
        pthread_join(owners[i].completer, NULL);
        n += owners[i].n;
        if (i == 0)
            loop_stop(loop, 0, 0); /* the others' promises find no loop any more */
    }
    STRESS_CHECK(loop_join_until(loop, CLOCK_NEVER) == 0);
    loop_destroy(loop);
    STRESS_CHECK(atomic_load(&n_freed) == n);
}

int main(int argc, char **argv)
{
    uint64_t load = stress_load(argc, argv, 4000);

    log_set_level(LOG_LEVEL_ERROR); /* that a stop timed out is what some rounds want */
    run_rounds(load);
    stress_begin();
    run_lives(load * 50);
    printf("promise: %" PRIu64 " succeeded, %" PRIu64 " failed, %" PRIu64
           " were cancelled, %" PRIu64 " listeners were told; %llu short lives\n",
           n_won[SUCCEEDS], n_won[FAILS], n_won[CANCELS], n_told, atomic_load(&n_freed));
    return EXIT_SUCCESS;
}
