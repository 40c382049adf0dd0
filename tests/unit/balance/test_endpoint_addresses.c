/*
 * balance/endpoint, where it is: answers replace each other as a whole, and the old one lives as
 * long as it is used.
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <pthread.h>

#include "balance/endpoint.h"
#include "engine/loop_group.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define READERS 3
#define MOST    8 /* addresses of an answer */

static struct address list[MOST];
static struct endpoint_group endpoint_group;
static _Atomic uint32_t load;
static struct endpoint endpoint;
static struct loop_group *readers; /* NULL: none */

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING); /* a stop that cuts tasks off is worth one */
    atomic_store(&load, ENDPOINT_ABSENT);
    endpoint = (struct endpoint){.name = "a", .load = &load, .group = &endpoint_group};
}

static void open_readers(void)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = READERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    ck_assert_int_eq(loop_group_create(&readers, &conf), 0);
}

static void end_readers(void)
{
    if (!readers)
        return;
    loop_group_stop(readers, 0, NS_PER_S);
    loop_runner_join_group(readers);
    loop_group_destroy(readers);
    readers = NULL;
}

static void teardown(void)
{
    end_readers();
    endpoint_close(&endpoint);
}

/* ${n} addresses with the ports ${port}, ${port} + 1 ... are set; what that returned. */
static int set(unsigned n, unsigned port)
{
    for (unsigned i = 0; i < n; i++)
        sockets_loopback(&list[i], port + i);
    return endpoint_set_addresses(&endpoint, readers, list, n);
}

static unsigned port_at(const struct endpoint_addresses *at, unsigned i)
{
    return ntohs(at->list[i].u.in.sin_port);
}

/* ${at} are ${n} addresses, with ports from ${port} on. */
static void expect(struct endpoint_addresses *at, unsigned n, unsigned port)
{
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq(at->n, n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_uint_eq(port_at(at, i), port + i);
}

static void expect_now(unsigned n, unsigned port)
{
    struct endpoint_addresses *at = endpoint_hold_addresses(&endpoint);

    expect(at, n, port);
    endpoint_release_addresses(at);
}

/* ---- one after the other ---- */

GROUP(addresses, setup, teardown);

TEST(addresses, endpoint_without_addresses_is_absent)
{
    ck_assert_ptr_null(endpoint_hold_addresses(&endpoint));
    endpoint_release_addresses(NULL);
    ck_assert_uint_eq(endpoint_load(&endpoint), ENDPOINT_ABSENT);
}

TEST(addresses, addresses_are_kept_in_order_and_end_the_absence)
{
    ck_assert_int_eq(set(3, 100), 1);
    expect_now(3, 100);
    ck_assert_uint_eq(endpoint_load(&endpoint), 0);
}

TEST(addresses, setting_addresses_keeps_other_flags)
{
    endpoint_set_flag(&endpoint, ENDPOINT_DOWN);
    ck_assert_int_eq(set(1, 100), 1);
    ck_assert_uint_eq(endpoint_load(&endpoint), ENDPOINT_DOWN);
}

TEST(addresses, changed_answer_replaces_the_addresses)
{
    ck_assert_int_eq(set(2, 100), 1);
    ck_assert_int_eq(set(2, 101), 1); /* one of them is the same */
    expect_now(2, 101);
    ck_assert_int_eq(set(1, 101), 1); /* a part of it */
    expect_now(1, 101);
    ck_assert_int_eq(set(2, 101), 1); /* and one more */
    expect_now(2, 101);
}

TEST(addresses, the_same_answer_in_another_order_changes_nothing)
{
    struct endpoint_addresses *at;
    struct address turned[3];

    ck_assert_int_eq(set(3, 100), 1);
    at = endpoint_hold_addresses(&endpoint);
    ck_assert_int_eq(set(3, 100), 0);
    for (unsigned i = 0; i < 3; i++)
        turned[i] = list[2 - i];
    ck_assert_int_eq(endpoint_set_addresses(&endpoint, NULL, turned, 3), 0);
    expect_now(3, 100);
    ck_assert_ptr_eq(endpoint.addresses, at);
    endpoint_release_addresses(at);
}

TEST(addresses, an_answer_is_copied)
{
    ck_assert_int_eq(set(2, 100), 1);
    sockets_loopback(&list[0], 999);
    expect_now(2, 100);
}

TEST(addresses, replaced_addresses_live_until_their_last_user_releases_them)
{
    struct endpoint_addresses *first, *second;

    ck_assert_int_eq(set(2, 100), 1);
    first = endpoint_hold_addresses(&endpoint);
    ck_assert_int_eq(set(3, 200), 1);
    second = endpoint_hold_addresses(&endpoint);
    endpoint_close(&endpoint);
    ck_assert_ptr_null(endpoint_hold_addresses(&endpoint));
    expect(first, 2, 100);
    expect(second, 3, 200);
    endpoint_release_addresses(first);
    endpoint_release_addresses(second);
}

/* ---- with loops that read ---- */

static void nothing(void *arg)
{
    (void)arg;
}

static void come_round(unsigned i)
{
    loop_runner_call(loop_group_at(readers, i), nothing, NULL);
}

TEST(addresses, replaced_addresses_are_kept_until_each_loop_has_run_a_task)
{
    struct tasks_block block;
    struct endpoint_addresses *old;

    open_readers();
    ck_assert_int_eq(set(2, 100), 1);
    for (unsigned i = 0; i < READERS; i++)
        come_round(i);
    old = endpoint_hold_addresses(&endpoint);
    tasks_block_begin(&block, loop_group_at(readers, 1));
    ck_assert_int_eq(set(2, 200), 1);
    expect_now(2, 200); /* whoever comes now finds the new ones */
    come_round(0);
    come_round(2);
    ck_assert_uint_eq(ref_count(&old->references), 2); /* the endpoint is still one of them */
    tasks_block_end(&block);
    UNTIL(ref_count(&old->references) == 1);
    expect(old, 2, 100);
    endpoint_release_addresses(old);
}

TEST(addresses, without_loop_threads_replaced_addresses_are_released_at_once)
{
    struct endpoint_addresses *old;

    open_readers();
    ck_assert_int_eq(set(2, 100), 1);
    old = endpoint_hold_addresses(&endpoint);
    ck_assert_int_eq(set(2, 200), 1);
    ck_assert_uint_eq(ref_count(&old->references), 1);
    endpoint_release_addresses(old);
}

/* An answer that a loop still has to let go of is none of the endpoint's any more. */
TEST(addresses, endpoint_can_be_closed_after_its_readers_were_stopped)
{
    struct tasks_block block;

    open_readers();
    ck_assert_int_eq(set(2, 100), 1);
    tasks_block_begin(&block, loop_group_at(readers, 1));
    for (unsigned i = 1; i < 10; i++)
        ck_assert_int_eq(set(2, 100 + 100 * i), 1);
    loop_group_stop(readers, 0, 0);
    tasks_block_end(&block);
    end_readers();
    endpoint_close(&endpoint);
}

/* ---- many at once ---- */

#define CHANGES 3000

static atomic_bool reading_over;
static atomic_uint reads;

/*
 * What a session does: it counts itself in, uses what it has found for some turns of its loop, and
 * then lets go.
 */
struct reader {
    struct task task;
    struct endpoint_addresses *at;
    unsigned turns;
};

/*
 * An answer is whole: `n` addresses, the first with the port 100 times ${n}, and one more from
 * place to place.
 */
static void read_addresses(struct task *t)
{
    struct reader *r = CONTAINER_OF(t, struct reader, task);

    if (!r->at)
        r->at = endpoint_hold_addresses(&endpoint);
    expect(r->at, r->at->n, 100 * r->at->n);
    atomic_fetch_add(&reads, 1);
    if (++r->turns % 3 == 0 || atomic_load(&reading_over)) {
        endpoint_release_addresses(r->at);
        r->at = NULL;
    }
    if (!atomic_load(&reading_over))
        ck_assert_int_eq(loop_submit(loop_current(), LOOP_TASKS, t), 0);
}

static void drop_reader(struct task *t)
{
    (void)t;
    ck_abort_msg("a reader was dropped");
}

static const struct task_type reader_type = {
    .name = "reader", .run = read_addresses, .drop = drop_reader};

/*
 * Bytes that malloc() has given out, of all threads. Sanitizers have an allocator of their own, and
 * look for leaks.
 */
static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

/* The loops start, and with them their readers, while the answers change. */
TEST(addresses, readers_see_whole_answers_and_replaced_addresses_are_freed)
{
    struct reader reader[READERS] = {{.at = NULL}};
    size_t before;

    open_readers();
    ck_assert_int_eq(set(1, 100), 1);
    before = allocated();
    for (unsigned change = 1; change <= CHANGES; change++) {
        unsigned n = 1 + change % MOST;

        if (change % 200 == 0 && change / 200 <= READERS) {
            struct reader *r = &reader[change / 200 - 1];

            r->task.type = &reader_type;
            ck_assert_int_eq(
                loop_submit(loop_group_at(readers, change / 200 - 1), LOOP_TASKS, &r->task), 0);
        }
        ck_assert_int_eq(set(n, 100 * n), 1);
        if (change % 32 == 0)
            usleep(500);
    }
    UNTIL(atomic_load(&reads) > 100 * READERS);
    atomic_store(&reading_over, true);
    end_readers();
    ck_assert_int_lt((int64_t)allocated() - (int64_t)before,
                     (int64_t)(CHANGES * sizeof(struct address)) / 4);
}
