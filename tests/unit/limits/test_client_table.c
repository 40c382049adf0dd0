/*
 * limits/client_table: who counts as one client, who is forgotten when, and that memory is bounded.
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "limits/client_table.h"
#include "net/address.h"
#include "support/sanitized.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct client_table *t;
static int64_t now_ns = 1000 * NS_PER_S;

static unsigned prefix_v4, prefix_v6;

static void setup(void)
{
    prefix_v4 = 32;
    prefix_v6 = 64;
}

static void create(unsigned places, unsigned connections, unsigned tokens)
{
    struct client_table_conf conf = {
        .max_clients = places,
        .name = {.prefix_v4 = prefix_v4, .prefix_v6 = prefix_v6},
        .each = {.max_connections = connections, .rate = {tokens, NS_PER_S, tokens ? tokens : 1}}};

    ck_assert_int_eq(client_table_create(&t, &conf), 0);
}

static void teardown(void)
{
    client_table_release(t);
    t = NULL;
}

static struct address numbered(uint32_t n)
{
    struct address a = {.len = sizeof(a.u.in)};

    a.u.in.sin_family = AF_INET;
    a.u.in.sin_addr.s_addr = htonl(n);
    return a;
}

static enum client_table_answer enter(const struct address *a, struct client **c)
{
    bool forgot;

    return client_table_enter(t, a, now_ns, c, &forgot);
}

/* The client must be let in, and counted. No ck_assert(), a system call: called a million times. */
static struct client *in(const struct address *a)
{
    struct client *c;

    if (enter(a, &c) != CLIENT_TABLE_IN || c == NULL)
        ck_abort_msg("not let in, or not counted");
    return c;
}

static void expect_clients(unsigned clients)
{
    ck_assert_uint_eq(client_table_clients(t), clients);
}

GROUP(client_table, setup, teardown);

TEST(client_table, client_has_at_most_max_connections)
{
    struct address a = sockets_address("192.0.2.1:1"), other = sockets_address("192.0.2.2:1");
    struct client *first, *none;

    create(8, 2, 0);
    first = in(&a);
    (void)in(&a);
    ck_assert_int_eq(enter(&a, &none), CLIENT_TABLE_TOO_MANY);
    ck_assert_ptr_null(none);
    (void)in(&other);
    client_table_leave(t, first);
    (void)in(&a);
    ck_assert_int_eq(enter(&a, &none), CLIENT_TABLE_TOO_MANY);
    expect_clients(2);
}

TEST(client_table, client_above_its_rate_is_refused_even_without_open_connections)
{
    struct address a = sockets_address("192.0.2.1:1");
    struct client *none;

    create(8, 0, 2);
    client_table_leave(t, in(&a));
    client_table_leave(t, in(&a));
    ck_assert_int_eq(enter(&a, &none), CLIENT_TABLE_TOO_FAST);
    now_ns += NS_PER_S / 2;
    client_table_leave(t, in(&a));
    ck_assert_int_eq(enter(&a, &none), CLIENT_TABLE_TOO_FAST);
}

/* Two addresses with these prefixes: are they one client? */
static const struct {
    const char *one, *other;
    unsigned prefix_v4, prefix_v6;
    bool same;
} pairs[] = {
    {"192.0.2.1:1", "192.0.2.1:2", 32, 64, true},
    {"192.0.2.1:1", "192.0.2.3:1", 32, 64, false},
    {"192.0.2.1:1", "192.0.2.254:1", 24, 64, true},
    {"192.0.2.1:1", "192.0.3.1:1", 24, 64, false},
    {"192.0.2.1:1", "192.0.3.1:1", 23, 64, true},
    {"127.0.0.1:1", "128.0.0.1:1", 1, 64, false},
    {"[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff::2]:9", 32, 64, true},
    {"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", 32, 64, false},
    {"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", 32, 48, true},
    {"[2001:db8:0:1::1]:1", "[2001:db8:1:1::1]:1", 32, 48, false},
    {"[2001:db8:0:1::1]:1", "[2001:db8:0:1::2]:1", 32, 128, false},
    {"[2001:db8:0:1::1]:1", "[2001:db8:0:1::1]:2", 32, 128, true},
    {"[::ffff:192.0.2.1]:1", "192.0.2.1:1", 32, 64, true},
    {"[::ffff:192.0.2.1]:1", "192.0.2.9:1", 24, 64, true},
    {"0.0.0.1:1", "[0:1::]:1", 32, 64, false},
    {"32.1.13.184:1", "[2001:db8::]:1", 32, 64,
     false}, /* the same bytes, were they not told apart */
    {"[fe80::2%1]:1", "[fe80::3%1]:1", 32, 64, false},
    {"[fe80::2%1]:1", "[fe80::2%2]:1", 32, 64, false},
    {"[fe80::2%1]:1", "[fe80::2%1]:2", 32, 64, true},
};

TEST_EACH(client_table, a_client_is_a_prefix_of_its_address, ARRAY_LEN(pairs))
{
    struct address one = sockets_address(pairs[_i].one), other = sockets_address(pairs[_i].other);
    struct client *c;

    prefix_v4 = pairs[_i].prefix_v4;
    prefix_v6 = pairs[_i].prefix_v6;
    create(8, 1, 0);
    (void)in(&one);
    ck_assert_int_eq(enter(&other, &c), pairs[_i].same ? CLIENT_TABLE_TOO_MANY : CLIENT_TABLE_IN);
}

/* All clients have the same bucket of the hash table: only the comparison tells them apart. */
TEST(client_table, link_local_clients_in_two_zones_are_distinct_in_one_bucket)
{
    struct address one = sockets_address("[fe80::2%1]:1"), other = sockets_address("[fe80::2%2]:1");
    struct client *c;

    create(1, 1, 0);
    (void)in(&one);
    ck_assert_int_eq(enter(&other, &c), CLIENT_TABLE_IN);
    ck_assert_ptr_null(c); /* not counted: there is one place */
    ck_assert_int_eq(enter(&one, &c), CLIENT_TABLE_TOO_MANY);
}

TEST(client_table, clients_of_unix_sockets_are_not_limited)
{
    struct address a = sockets_address("@x");
    struct client *c;

    create(1, 1, 1);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(enter(&a, &c), CLIENT_TABLE_IN);
        ck_assert_ptr_null(c);
        client_table_leave(t, c);
    }
    expect_clients(0);
}

TEST(client_table, full_table_evicts_the_client_seen_longest_ago)
{
    struct address a[3] = {sockets_address("192.0.2.1:1"), sockets_address("192.0.2.2:1"),
                           sockets_address("192.0.2.3:1")};
    struct client *none;

    create(2, 0, 1);
    client_table_leave(t, in(&a[0]));
    client_table_leave(t, in(&a[1]));
    ck_assert_int_eq(enter(&a[0], &none), CLIENT_TABLE_TOO_FAST); /* seen again */
    client_table_leave(t, in(&a[2]));
    ck_assert_int_eq(enter(&a[0], &none), CLIENT_TABLE_TOO_FAST);
    client_table_leave(t, in(&a[1])); /* new: it was forgotten */
    expect_clients(2);
}

TEST(client_table, link_local_clients_are_evicted_as_others)
{
    char text[64];

    create(64, 1, 0);
    for (unsigned i = 1; i <= 128; i++) {
        struct address a;

        snprintf(text, sizeof(text), "[fe80::%x%%1]:1", i);
        a = sockets_address(text);
        client_table_leave(t, in(&a));
        client_table_leave(t, in(&a));
    }
    expect_clients(64);
}

TEST(client_table, evicting_a_client_before_its_rate_is_over_is_counted)
{
    struct address a[3] = {sockets_address("192.0.2.1:1"), sockets_address("192.0.2.2:1"),
                           sockets_address("192.0.2.3:1")};
    struct client *c;
    bool forgot;

    create(2, 0, 1);
    client_table_leave(t, in(&a[0]));
    client_table_leave(t, in(&a[1]));
    ck_assert_int_eq(client_table_enter(t, &a[2], now_ns, &c, &forgot), CLIENT_TABLE_IN);
    ck_assert(forgot);
    client_table_leave(t, c);
    now_ns += NS_PER_S; /* from now on all rates are over */
    ck_assert_int_eq(client_table_enter(t, &a[0], now_ns, &c, &forgot), CLIENT_TABLE_IN);
    ck_assert(!forgot);
    client_table_leave(t, c);
}

#define FULL 1024

TEST(client_table, table_holds_as_many_clients_as_configured)
{
    struct client *c;

    create(FULL, 1, 0);
    for (uint32_t i = 0; i < FULL; i++) {
        struct address a = numbered(i);

        (void)in(&a);
    }
    expect_clients(FULL);
    for (uint32_t i = 0; i < FULL; i++) {
        struct address a = numbered(i);

        ck_assert_int_eq(enter(&a, &c), CLIENT_TABLE_TOO_MANY);
    }
}

TEST(client_table, connected_clients_are_not_evicted_and_a_new_client_is_not_counted)
{
    struct address a[3] = {sockets_address("192.0.2.1:1"), sockets_address("192.0.2.2:1"),
                           sockets_address("192.0.2.3:1")};
    struct client *first, *c;

    create(2, 1, 0);
    first = in(&a[0]);
    (void)in(&a[1]);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(enter(&a[2], &c), CLIENT_TABLE_IN);
        ck_assert_ptr_null(c);
    }
    expect_clients(2);
    ck_assert_int_eq(enter(&a[0], &c), CLIENT_TABLE_TOO_MANY);
    client_table_leave(t, first);
    (void)in(&a[2]); /* in its place */
    ck_assert_int_eq(enter(&a[2], &c), CLIENT_TABLE_TOO_MANY);
    client_table_leave(t, NULL);
}

#define MANY   IF_SANITIZED(200000, 1000000)
#define PLACES 65536

TEST(client_table, a_million_addresses_take_no_more_memory_than_an_empty_table)
{
    size_t before, used;

    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    create(PLACES, 1, 1);
    used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    ck_assert_uint_le(used, PLACES * 56);
    for (uint32_t i = 0; i < MANY; i++) {
        struct address a = numbered(i);

        client_table_leave(t, in(&a));
    }
    ck_assert_uint_le(mallinfo2().uordblks + mallinfo2().hblkhd - before, used);
    expect_clients(PLACES);
}

#define THREADS 4
#define ROUNDS  20000
#define CLIENTS 300

static void *come_and_go(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct client *open[8] = {NULL};

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct address a = numbered((uint32_t)rand_r(&seed) % CLIENTS);
        struct client **c = &open[i % 8];
        enum client_table_answer answer;

        client_table_leave(t, *c);
        answer = enter(&a, c);
        if (answer != CLIENT_TABLE_IN && *c != NULL)
            ck_abort_msg("a client that is not let in");
    }
    for (int i = 0; i < 8; i++)
        client_table_leave(t, open[i]);
    return NULL;
}

TEST(client_table, threads_entering_and_leaving_leak_no_connection)
{
    pthread_t threads[THREADS];

    create(128, 3, 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect_clients(128);
    for (uint32_t i = 0; i < CLIENTS; i++) { /* nobody holds a connection: each has three */
        struct address a = numbered(i);
        struct client *c[3];

        for (int j = 0; j < 3; j++)
            c[j] = in(&a);
        for (int j = 0; j < 3; j++)
            client_table_leave(t, c[j]);
    }
}

TEST(client_table, table_of_one_client_works)
{
    struct address a = sockets_address("192.0.2.1:1"), other = sockets_address("192.0.2.2:1");

    create(1, 1, 0);
    for (int i = 0; i < 10; i++)
        client_table_leave(t, in(i % 2 ? &a : &other));
    expect_clients(1);
}

/* ---- limits that change ---- */

static void change(unsigned connections, unsigned tokens)
{
    client_table_set(t,
                     &(struct quota_conf){.max_connections = connections,
                                          .rate = {tokens, NS_PER_S, tokens ? tokens : 1}},
                     now_ns);
}

TEST(client_table, lowered_limit_counts_connections_that_are_open)
{
    struct address a = numbered(1);
    struct client *c[3], *refused;

    create(4, 0, 1000);
    for (int i = 0; i < 3; i++)
        c[i] = in(&a);
    change(2, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(enter(&a, &refused), CLIENT_TABLE_TOO_MANY);
        client_table_leave(t, c[i]);
    }
    c[0] = in(&a);
    client_table_leave(t, c[0]);
    client_table_leave(t, c[2]);
}

TEST(client_table, raised_rate_does_not_wait_for_tokens_of_the_old_rate)
{
    struct address a = numbered(1);
    struct client *refused;

    create(4, 0, 1);
    client_table_leave(t, in(&a));
    ck_assert_int_eq(enter(&a, &refused), CLIENT_TABLE_TOO_FAST);
    change(0, 100);
    client_table_leave(t, in(&a));
}

TEST(client_table, a_connection_can_be_counted_above_the_limits)
{
    struct address a = numbered(1);
    struct client *c, *refused;

    create(4, 1, 1);
    c = client_table_count(t, &a, now_ns);
    ck_assert_ptr_nonnull(c);
    ck_assert_ptr_eq(client_table_count(t, &a, now_ns), c);
    client_table_leave(t, c);
    ck_assert_int_eq(enter(&a, &refused), CLIENT_TABLE_TOO_MANY);
    client_table_leave(t, c);
    client_table_leave(t, in(&a)); /* counting took no token */
}

TEST(client_table, a_successor_fits_if_only_limits_differ)
{
    struct client_table_conf conf = {
        .max_clients = 4, .name = {32, 64}, .each = {.max_connections = 1}};
    struct client_table *old;
    struct address a = numbered(1);
    struct client *c, *refused;

    create(4, 1, 0);
    c = in(&a);
    ck_assert_int_eq(enter(&a, &refused), CLIENT_TABLE_TOO_MANY);
    client_table_leave(t, c);
    ck_assert(client_table_fits(t, &conf));
    conf.name.prefix_v6 = 48;
    ck_assert(!client_table_fits(t, &conf));
    old = t;
    ck_assert_int_eq(client_table_create(&t, &conf), 0);
    client_table_release(old);
    expect_clients(0);
    ck_assert_ptr_eq(client_table_hold(t), t);
    client_table_release(t);
    expect_clients(0);
}
