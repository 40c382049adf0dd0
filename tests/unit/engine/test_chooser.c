/* engine/chooser: whose turn it is. */
#include <errno.h>

#include "engine/chooser.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define LOOPS 8

static struct loop *loops[LOOPS];
static struct chooser c;

static void setup(void)
{
    for (int i = 0; i < LOOPS; i++)
        loops[i] = loop_runner_create();
    chooser_init(&c, CHOOSER_ROUND_ROBIN);
}

static void teardown(void)
{
    for (int i = 0; i < LOOPS; i++)
        loop_runner_destroy(loops[i]);
}

/* The index of the next pick among the first ${n}; -1: none. */
static int pick(unsigned n)
{
    struct loop *loop = chooser_pick(&c, loops, n);

    for (int i = 0; i < LOOPS; i++)
        if (loops[i] == loop)
            return i;
    ck_assert_ptr_null(loop);
    return -1;
}

static const unsigned sizes[] = {1, 2, 3, 4, 5, 8};

GROUP(chooser, setup, teardown);

TEST_EACH(chooser, round_robin_begins_at_the_first_and_visits_all_in_order, ARRAY_LEN(sizes))
{
    unsigned n = sizes[_i];

    for (unsigned i = 0; i < 3 * n; i++)
        ck_assert_int_eq(pick(n), (int)(i % n));
}

/* ---- near ---- */

/* Does loop 0, with ${own} connections, keep the next one, when each of the others has ${other}? */
static bool keeps(unsigned n, int own, int other)
{
    struct loop *loop;

    loop_load_add(loops[0], own);
    for (unsigned i = 1; i < n; i++)
        loop_load_add(loops[i], other);
    loop = chooser_pick_near(&c, loops[0], loops, n);
    loop_load_add(loops[0], -own);
    for (unsigned i = 1; i < n; i++)
        loop_load_add(loops[i], -other);
    return loop == loops[0];
}

TEST_EACH(chooser, near_keeps_the_client_unless_others_have_clearly_fewer, ARRAY_LEN(sizes) - 1)
{
    unsigned n = sizes[_i + 1];

    ck_assert(keeps(n, 0, 0));
    ck_assert(keeps(n, 1, 0));
    ck_assert(!keeps(n, 2, 0));
    ck_assert(keeps(n, 3, 2));
    ck_assert(!keeps(n, 4, 2));
    ck_assert(keeps(n, 91, 80)); /* an eighth more */
    ck_assert(!keeps(n, 92, 80));
}

TEST(chooser, near_alone_keeps_the_client)
{
    ck_assert(keeps(1, 1000, 0));
}

TEST(chooser, near_finds_the_only_lighter_one_of_three)
{
    loop_load_add(loops[0], 9);
    loop_load_add(loops[1], 9);
    for (int i = 0; i < 50; i++) {
        const struct loop *picked = chooser_pick_near(&c, loops[0], loops, 3);

        ck_assert(picked == loops[2] || picked == loops[0]);
    }
    loop_load_add(loops[0], -9);
    loop_load_add(loops[1], -9);
}

TEST(chooser, near_is_nothing_for_a_loop_that_is_not_in_use)
{
    ck_assert_ptr_null(chooser_pick_near(&c, loops[4], loops, 4));
    ck_assert_ptr_null(chooser_pick_near(&c, NULL, loops, 4));
}

/* ---- shuffled ---- */

#define WORKERS 4
#define BUSY    40

static struct chooser_rounds rounds;

static void shuffle(void)
{
    chooser_init(&c, CHOOSER_SHUFFLED);
    chooser_rounds_init(&rounds);
}

static int pick_in(struct chooser_rounds *in, unsigned n)
{
    struct loop *loop = chooser_pick_in(&c, in, loops, n);

    for (int i = 0; i < LOOPS; i++)
        if (loops[i] == loop)
            return i;
    return -1;
}

TEST_EACH(chooser, shuffled_visits_every_loop_once_a_round, ARRAY_LEN(sizes))
{
    unsigned n = sizes[_i];

    shuffle();
    for (unsigned round = 0; round < 100; round++) {
        unsigned seen = 0;

        for (unsigned i = 0; i < n; i++)
            seen |= 1u << pick_in(&rounds, n);
        ck_assert_uint_eq(seen, (1u << n) - 1);
    }
}

/* 24 orders of four loops: a thousand rounds have all of them, and few follow themselves. */
TEST(chooser, shuffled_has_a_new_order_each_round)
{
    unsigned seen[1 << 8] = {0}, n_seen = 0, repeated = 0, before = 0;

    shuffle();
    for (unsigned round = 0; round < 1000; round++) {
        unsigned order = 0;

        for (unsigned i = 0; i < WORKERS; i++)
            order = order << 2 | (unsigned)pick_in(&rounds, WORKERS);
        n_seen += seen[order]++ == 0;
        repeated += order == before;
        before = order;
    }
    ck_assert_uint_eq(n_seen, 24);
    ck_assert_uint_lt(repeated, 100);
}

/* Of how many arrivals one is busy, and how many come to another listener after each. */
static const struct {
    unsigned each, others;
} patterns[] = {{4, 0}, {2, 0}, {1, 1}, {1, 3}, {2, 1}};

static void count_busy(unsigned pattern, unsigned busy[WORKERS])
{
    struct chooser_rounds other;

    chooser_rounds_init(&other);
    for (unsigned i = 0; i < WORKERS; i++)
        busy[i] = 0;
    for (unsigned i = 0; i < BUSY * patterns[pattern].each; i++) {
        int to = pick_in(&rounds, WORKERS);

        if (i % patterns[pattern].each == 0)
            busy[to]++;
        for (unsigned k = 0; k < patterns[pattern].others; k++)
            (void)pick_in(&other, WORKERS);
    }
}

/* With round_robin 40 of 40 are one worker's, or two share them. */
TEST_EACH(chooser, busy_arrivals_with_a_pattern_are_spread_evenly, ARRAY_LEN(patterns))
{
    unsigned busy[WORKERS];

    for (unsigned attempt = 0; attempt < 100; attempt++) {
        shuffle();
        count_busy((unsigned)_i, busy);
        for (unsigned i = 0; i < WORKERS; i++) {
            ck_assert_uint_ge(busy[i], 8);
            ck_assert_uint_le(busy[i], 13);
        }
    }
}

TEST(chooser, picks_of_other_listeners_do_not_shift_a_shuffled_round)
{
    struct chooser_rounds other = {.seed = 1}, same = {.seed = 1};

    shuffle();
    for (unsigned i = 0; i < 100; i++) {
        int to = pick_in(&other, WORKERS);

        (void)pick_in(&rounds, WORKERS);
        ck_assert_int_eq(pick_in(&same, WORKERS), to);
    }
}

TEST(chooser, round_robin_has_one_round_for_all_listeners)
{
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(pick_in(&rounds, WORKERS), i % WORKERS);
    }
}

/* Where 32 bits end; over a power of two, where the counter itself does. */
static const struct {
    uint64_t next;
    int n;
} wraps[] = {{UINT32_MAX - UINT64_C(5), 3}, {UINT64_MAX - 5, 4}};

TEST_EACH(chooser, round_robin_neither_skips_nor_repeats_where_its_counter_wraps, ARRAY_LEN(wraps))
{
    int n = wraps[_i].n, last;

    atomic_store(&c.next, wraps[_i].next);
    last = pick((unsigned)n);
    for (int i = 0; i < 12; i++) {
        int next = pick((unsigned)n);

        ck_assert_int_eq(next, (last + 1) % n);
        last = next;
    }
}

TEST_EACH(chooser, loop_that_has_ended_is_skipped, CHOOSER_P2C + 1)
{
    chooser_init(&c, (enum chooser_kind)_i);
    loop_stop(loops[1], 0, 0);
    for (int i = 0; i < 300; i++)
        ck_assert_int_ne(pick(3), 1);
}

TEST_EACH(chooser, pick_fails_when_all_loops_have_ended, CHOOSER_P2C + 1)
{
    chooser_init(&c, (enum chooser_kind)_i);
    for (int i = 0; i < 3; i++)
        loop_stop(loops[i], 0, 0);
    ck_assert_int_eq(pick(3), -1);
    ck_assert_int_eq(pick(1), -1);
}

static void fail_to_start(int i, struct tasks_counted *t)
{
    tasks_counted_init(t);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(loop_submit(loops[i], LOOP_TASKS, &t->task), -EAGAIN);
}

TEST_EACH(chooser, loop_that_could_not_start_is_skipped_for_a_while, CHOOSER_P2C + 1)
{
    struct tasks_counted t;
    bool found = false;

    log_lines_capture(LOG_LEVEL_INFO);
    chooser_init(&c, (enum chooser_kind)_i);
    fail_to_start(1, &t);
    for (int i = 0; i < 300; i++) {
        int picked = pick(4);

        if (loop_availability(loops[1]) == LOOP_NO_THREAD) /* it still is */
            ck_assert_int_ne(picked, 1);
    }
    for (int i = 0; i < 4; i++)
        loop_load_add(loops[i], i == 1 ? 0 : 1);
    UNTIL(loop_availability(loops[1]) == LOOP_AVAILABLE);
    for (int i = 0; i < 300; i++)
        found |= pick(4) == 1;
    ck_assert(found);
    ck_assert_int_eq(loop_submit(loops[1], LOOP_TASKS, &t.task), 0);
    UNTIL(atomic_load(&t.run) == 1);
    EXPECT_LOG_LINES("loop test: cannot start its thread: Resource", 1);
    EXPECT_LOG_LINES("loop test: thread started after", 1);
}

TEST_EACH(chooser, loop_that_could_not_start_is_picked_if_no_other_is_left, CHOOSER_P2C + 1)
{
    struct tasks_counted t[3];

    log_lines_capture(LOG_LEVEL_INFO);
    chooser_init(&c, (enum chooser_kind)_i);
    for (int i = 0; i < 3; i++)
        fail_to_start(i, &t[i]);
    for (int i = 0; i < 30; i++)
        ck_assert_int_ge(pick(3), 0);
}

/* Submit control tasks to loop ${i} until it is full. */
static void fill(int i, struct tasks_block *block, struct tasks_counted *tasks)
{
    unsigned n = 0;

    tasks_block_begin(block, loops[i]);
    while (loop_availability(loops[i]) == LOOP_AVAILABLE) {
        tasks_counted_init(&tasks[n]);
        ck_assert_int_eq(loop_submit(loops[i], LOOP_CONTROL, &tasks[n++].task), 0);
    }
    ck_assert_uint_eq(n, LOOP_PENDING_MIN);
    ck_assert_int_eq(loop_availability(loops[i]), LOOP_FULL);
}

TEST_EACH(chooser, full_loop_is_skipped_unless_all_are_full, CHOOSER_P2C + 1)
{
    static struct tasks_counted tasks[2][LOOP_PENDING_MIN];
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS};
    static struct tasks_block blocks[2];
    bool found[2] = {false};

    chooser_init(&c, (enum chooser_kind)_i);
    for (int i = 0; i < 2; i++) {
        loop_runner_destroy(loops[i]);
        loops[i] = loop_runner_create_with(budget, LOOP_PENDING_MIN);
    }
    fill(0, &blocks[0], tasks[0]);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(pick(2), 1);
    ck_assert_int_eq(chooser_availability(&c, loops, 2), LOOP_AVAILABLE);
    fill(1, &blocks[1], tasks[1]);
    ck_assert_int_eq(chooser_availability(&c, loops, 2), LOOP_FULL);
    for (int i = 0; i < 300; i++)
        found[pick(2)] = true;
    ck_assert(found[0] && found[1]);
    for (int i = 0; i < 2; i++)
        tasks_block_end(&blocks[i]);
}

TEST_EACH(chooser, single_loop_is_always_picked, CHOOSER_P2C + 1)
{
    chooser_init(&c, (enum chooser_kind)_i);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(pick(1), 0);
}

TEST(chooser, least_connections_fills_the_emptiest_loop)
{
    chooser_init(&c, CHOOSER_LEAST_CONNECTIONS);
    for (int i = 0; i < 4; i++)
        loop_load_add(loops[i], 10);
    loop_load_add(loops[2], -4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pick(4), 2);
        loop_load_add(loops[2], 1);
    }
}

TEST(chooser, least_connections_shares_evenly_among_equals)
{
    unsigned picked[4] = {0};

    chooser_init(&c, CHOOSER_LEAST_CONNECTIONS);
    for (int i = 0; i < 400; i++) /* the loads stay equal */
        picked[pick(4)]++;
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(picked[i], 100);
}

TEST(chooser, two_choices_refill_a_loop_that_was_emptied)
{
    unsigned spread;

    chooser_init(&c, CHOOSER_P2C);
    for (int i = 1; i < 4; i++)
        loop_load_add(loops[i], 100);
    for (int i = 0; i < 300; i++)
        loop_load_add(loops[pick(4)], 1);
    spread = loop_load(loops[0]);
    ck_assert_uint_gt(spread, 90); /* blind it would have 75, and the others 175 */
}

TEST(chooser, two_choices_keep_loads_close)
{
    unsigned least = 1000000, most = 0;

    chooser_init(&c, CHOOSER_P2C);
    for (int i = 0; i < 8000; i++)
        loop_load_add(loops[pick(8)], 1);
    for (int i = 0; i < 8; i++) {
        unsigned load = loop_load(loops[i]);

        least = load < least ? load : least;
        most = load > most ? load : most;
    }
    ck_assert_uint_le(most - least, 20);
}
