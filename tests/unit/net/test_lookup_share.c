/* net/lookup_share: who asks for the same at the same time gets one answer. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/lookup_share.h"
#include "net/name_servers.h"
#include "support/fault.h"
#include "support/suite.h"
#include "support/until.h"

#define THREADS 8

static struct lookup_share share;
static atomic_uint calls, begun;
static atomic_bool waits, exhausts_memory;
static _Atomic int answer;

/* The items are numbers from 1 on. */
static int ask(void *out, size_t max, const char *name, struct dns_terms *terms)
{
    int n = atomic_load(&answer), *items = out;

    ck_assert_uint_gt(strlen(name), 0);
    ck_assert_uint_eq(max, 4);
    atomic_fetch_add(&calls, 1);
    while (atomic_load(&waits))
        usleep(500);
    for (int i = 0; i < n; i++)
        items[i] = i + 1;
    terms->ttl_ns = 10 * NS_PER_S;
    terms->failed = 2;
    terms->error = -EAGAIN;
    if (atomic_exchange(&exhausts_memory, false))
        fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    return n;
}

static int ask_other(void *out, size_t max, const char *name, struct dns_terms *terms)
{
    return ask(out, max, name, terms);
}

static int look_up(const char *name, int64_t due_at_ns, struct dns_terms *terms)
{
    const struct lookup l = {.ask = ask, .name = name, .item_bytes = sizeof(int)};
    int items[4] = {0}, n;

    *terms = (struct dns_terms){.share = &share, .due_at_ns = due_at_ns};
    n = lookup_share_ask(items, 4, &l, terms);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(items[i], i + 1);
    ck_assert_uint_eq(terms->failed, 2);
    ck_assert_int_eq(terms->error, -EAGAIN);
    ck_assert_int_le(terms->ttl_ns, 10 * NS_PER_S);
    return n;
}

static void setup(void)
{
    lookup_share_open(&share);
    atomic_store(&answer, 3);
}

static void teardown(void)
{
    lookup_share_close(&share);
}

GROUP(share, setup, teardown);

static void *look_up_in_thread(void *arg)
{
    struct dns_terms terms;

    atomic_fetch_add(&begun, 1);
    ck_assert_int_eq(look_up(arg, clock_now_ns(), &terms), atomic_load(&answer));
    return NULL;
}

TEST_EACH(share, concurrent_lookups_of_a_name_share_one_query_and_its_result, 2)
{
    pthread_t threads[THREADS];

    atomic_store(&answer, _i == 0 ? 3 : -EREMOTEIO);
    atomic_store(&waits, true);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, look_up_in_thread, i % 2 ? "NAME.test" : "name.test");
    UNTIL(atomic_load(&begun) == THREADS);
    usleep(10000); /* the last one finds the lookup, too */
    atomic_store(&waits, false);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&calls), 1);
}

TEST(share, cached_answer_serves_lookups_that_were_due_before_it)
{
    int64_t due_at_ns = clock_now_ns();
    struct dns_terms terms;

    ck_assert_int_eq(look_up("name.test", due_at_ns, &terms), 3);
    ck_assert_int_eq(look_up("name.test", due_at_ns, &terms), 3);
    ck_assert_uint_eq(atomic_load(&calls), 1);
    ck_assert_int_lt(terms.ttl_ns, 10 * NS_PER_S); /* less the time since */
    ck_assert_int_eq(look_up("name.test", clock_now_ns(), &terms), 3);
    ck_assert_uint_eq(atomic_load(&calls), 2);
}

TEST(share, other_questions_are_not_shared)
{
    int64_t due_at_ns = clock_now_ns();
    struct dns_terms terms;
    int items[4];
    const struct lookup l = {.ask = ask_other, .name = "name.test", .item_bytes = sizeof(int)};
    struct address at[2];
    struct name_servers_conf conf = {.name = "own", .addresses = at, .n_addresses = 1};

    ck_assert_int_eq(look_up("name.test", due_at_ns, &terms), 3);
    ck_assert_int_eq(look_up("name.tes", due_at_ns, &terms), 3);
    terms = (struct dns_terms){.share = &share, .due_at_ns = due_at_ns};
    ck_assert_int_eq(lookup_share_ask(items, 4, &l, &terms), 3);
    terms.timeout_s = 1;
    ck_assert_int_eq(lookup_share_ask(items, 4, &l, &terms), 3);
    ck_assert_int_eq(address_parse(at, 2, "192.0.2.53:53"), 1);
    ck_assert_int_eq(name_servers_create(&terms.servers, &conf), 0);
    ck_assert_int_eq(lookup_share_ask(items, 4, &l, &terms), 3);
    ck_assert_int_eq(lookup_share_ask(items, 4, &l, &terms), 3);
    name_servers_release(terms.servers);
    terms = (struct dns_terms){.share = NULL};
    ck_assert_int_eq(lookup_share_ask(items, 4, &l, &terms), 3);
    ck_assert_uint_eq(atomic_load(&calls), 6);
}

TEST_EACH(share, without_memory_each_lookup_queries_by_itself, 2)
{
    int64_t due_at_ns = clock_now_ns();
    struct dns_terms terms;

    if (_i == 0)
        fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    else
        atomic_store(&exhausts_memory, true);
    ck_assert_int_eq(look_up("name.test", due_at_ns, &terms), 3);
    ck_assert_int_eq(look_up("name.test", due_at_ns, &terms), 3);
    ck_assert_uint_eq(atomic_load(&calls), 2);
}
