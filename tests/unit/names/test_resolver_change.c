/*
 * names/resolver: names of another configuration are looked up before it is used, and those that
 * it does not have are forgotten.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/executor.h"
#include "names/resolver_internal.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream_change.h"

#define UPSTREAMS 4
#define THREADS   4
#define LATER     (1000 * NS_PER_S)

/* What the name of each upstream gives: so many addresses, an error, or nothing for a while. */
#define SILENT 0
static atomic_int answers[UPSTREAMS];
static atomic_uint lookups[UPSTREAMS], running;
static atomic_uint shift; /* what is added to all ports */

/* Addresses with this port lead back. */
struct proxy_loop {
    unsigned port;
    atomic_int references;
};

static struct proxy_loop listeners[2];
/* A configuration of an upstream, of one line or two. */
struct version {
    struct upstream_conf conf;
    struct upstream_server_conf lines[2]; /* the second: see add_literal() */
};

static struct version pool[UPSTREAMS + 8], *now[UPSTREAMS];
static unsigned n_pool;
static struct upstream_change *changes[UPSTREAMS]; /* NULL: no other configuration */
static bool is_other[UPSTREAMS];
static char texts[UPSTREAMS][16], names[UPSTREAMS][16];
static struct upstream *upstreams[UPSTREAMS];
static struct executor *executor;
static struct loop *control;
static struct resolver_conf conf;
static struct resolver *resolver;
static struct resolver_change *change;
static atomic_uint n_ready;
static atomic_int ready_error;

/* Address i of name n has the port 1000 + 100 n + i, and ${shift} more. */
static int look_up(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    unsigned n = (unsigned)atoi(word);
    int answer;

    atomic_fetch_add(&lookups[n], 1);
    atomic_fetch_add(&running, 1);
    terms->ttl_ns = CLOCK_NEVER;
    while ((answer = atomic_load(&answers[n])) == SILENT)
        usleep(500);
    ck_assert_uint_ge(max, 16);
    for (int i = 0; i < answer; i++)
        sockets_loopback(&out[i], 1000 + 100 * n + (unsigned)i + atomic_load(&shift));
    atomic_fetch_sub(&running, 1);
    return answer;
}

static bool leads_back(const struct proxy_loop *p, const char *name, const struct address *a)
{
    ck_assert_int_gt(atomic_load(&p->references), 0);
    ck_assert_int_eq(name[0], 'u');
    return ntohs(a->u.in.sin_port) == p->port;
}

static void hold(struct proxy_loop *p)
{
    atomic_fetch_add(&p->references, 1);
}

static void release(struct proxy_loop *p)
{
    if (p)
        ck_assert_int_gt(atomic_fetch_sub(&p->references, 1), 0);
}

static void setup(void)
{
    struct executor_conf exec = {
        .name = "exec", .pool = 3, .threads = THREADS, .max_pending_tasks = 16};

    log_lines_capture(LOG_LEVEL_INFO);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%u", i);
        snprintf(names[i], sizeof(names[i]), "u%u", i);
        now[i] = &pool[n_pool++];
        now[i]->lines[0] = (struct upstream_server_conf){
            .id = "s", .address_text = texts[i], .names = UPSTREAM_NAME_EACH, .weight = 3};
        now[i]->conf = (struct upstream_conf){.name = names[i],
                                              .servers = now[i]->lines,
                                              .n_servers = 1,
                                              .connect_timeout_ns = NS_PER_S};
        atomic_store(&answers[i], 1);
    }
    conf = (struct resolver_conf){.retry_ns = LATER,
                                  .service_ns = LATER,
                                  .lookup = look_up,
                                  .leads_back = leads_back,
                                  .hold = hold,
                                  .release = release};
    ck_assert_int_eq(executor_create(&executor, &exec), 0);
    control = loop_runner_create();
}

/* Give upstream ${i}, before start(), a server that needs no name. */
static void add_literal(unsigned i)
{
    static struct address at;

    sockets_loopback(&at, 1);
    now[i]->lines[1] = (struct upstream_server_conf){
        .id = "t", .address_text = "127.0.0.1:1", .addresses = &at, .n_addresses = 1, .weight = 1};
    now[i]->conf.n_servers = 2;
}

/* ---- on the control loop ---- */

/* Upstreams as bits. */
struct wanted {
    unsigned bits;
    int64_t wait_ns;
    struct proxy_loop *listeners;
    int rc;
};

static void on_ready(void *cookie, int error)
{
    ck_assert_ptr_eq(cookie, &change);
    ck_assert(loop_is_current(control));
    atomic_store(&ready_error, error);
    atomic_fetch_add(&n_ready, 1);
}

static unsigned list_of(unsigned bits, struct upstream_next *list)
{
    unsigned n = 0;

    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (bits & 1u << i)
            list[n++] = (struct upstream_next){upstreams[i], &now[i]->conf};
    return n;
}

static int try_prepare(void *cookie)
{
    struct wanted *w = cookie;
    struct upstream_next list[UPSTREAMS];
    struct resolver_next next = {.list = list,
                                 .n = list_of(w->bits, list),
                                 .listeners = w->listeners,
                                 .wait_ns = w->wait_ns,
                                 .ready = on_ready,
                                 .cookie = &change};

    return resolver_prepare(resolver, &next, &change);
}

/* Another configuration for upstream ${i}, as the one before; prepare() uses it. */
static struct version *other(unsigned i)
{
    struct version *v = &pool[n_pool++];

    ck_assert_uint_le(n_pool, ARRAY_LEN(pool));
    *v = *now[i];
    v->conf.servers = v->lines;
    now[i] = v;
    is_other[i] = true;
    return v;
}

static void do_prepare(void *arg)
{
    unsigned before = atomic_load(&n_ready);
    struct wanted *w = arg;

    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (is_other[i] && !changes[i])
            ck_assert_int_eq(upstream_change_prepare(&changes[i], upstreams[i], &now[i]->conf), 0);
    w->rc = try_prepare(w);
    ck_assert_uint_eq(atomic_load(&n_ready), before); /* later */
}

static void commit_upstream(unsigned i)
{
    struct membership_place places[RESOLVER_ADDRESSES];
    unsigned n = resolver_find_places(change, upstreams[i], now[i]->lines, places);

    if (n > 0)
        ck_assert_int_eq(
            upstream_change_places(changes[i], upstream_change_line(changes[i], "s"), places, n),
            0);
    ck_assert_int_eq(upstream_change_build(changes[i]), 0);
    upstream_change_commit(changes[i]);
    changes[i] = NULL;
    is_other[i] = false;
}

static void do_commit(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (changes[i])
            commit_upstream(i);
    resolver_commit(change);
}

static void do_cancel(void *arg)
{
    (void)arg;
    resolver_cancel(change);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        upstream_change_cancel(changes[i]);
        changes[i] = NULL;
    }
}

static int prepare_with(unsigned bits, int64_t wait_ns, struct proxy_loop *p)
{
    struct wanted w = {.bits = bits, .wait_ns = wait_ns, .listeners = p};

    loop_runner_call(control, do_prepare, &w);
    return w.rc;
}

static void prepare(unsigned bits)
{
    ck_assert_int_eq(prepare_with(bits, UNTIL_LIMIT_NS, &listeners[0]), 0);
}

static void until_ready(unsigned n)
{
    UNTIL(atomic_load(&n_ready) == n);
}

static void commit(void)
{
    loop_runner_call(control, do_commit, NULL);
}

static void cancel(void)
{
    loop_runner_call(control, do_cancel, NULL);
}

static void do_create(void *arg)
{
    unsigned *i = arg;

    ck_assert_int_eq(upstream_create(&upstreams[*i], &now[*i]->conf, NULL), 0);
}

static atomic_bool is_started;

static void on_first(void *cookie, int error)
{
    (void)cookie;
    ck_assert_int_eq(error, 0);
    resolver_commit(change);
    atomic_store(&is_started, true);
}

static void do_begin(void *arg)
{
    struct upstream_next list[UPSTREAMS];
    const struct resolver_next next = {.list = list,
                                       .n = list_of(1, list),
                                       .listeners = &listeners[0],
                                       .is_first = true,
                                       .wait_ns = UNTIL_LIMIT_NS,
                                       .ready = on_first};

    (void)arg;
    ck_assert_int_eq(resolver_prepare(resolver, &next, &change), 0);
}

/* A resolver for the first upstream; all exist. */
static void start(void)
{
    for (unsigned i = 0; i < UPSTREAMS; i++)
        do_create(&i);
    conf.executor = executor;
    conf.control = control;
    ck_assert_int_eq(resolver_create(&resolver, &conf), 0);
    loop_runner_call(control, do_begin, NULL);
    UNTIL(atomic_load(&is_started));
    loop_runner_turn(control); /* the answers are used now */
}

static void end_threads(void)
{
    loop_runner_stop(control);
    executor_stop(executor, 0);
    ck_assert_int_eq(executor_join(executor, UNTIL_LIMIT_NS), 0);
}

static void teardown(void)
{
    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (atomic_load(&answers[i]) == SILENT)
            atomic_store(&answers[i], 1);
    end_threads();
    resolver_destroy(resolver);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(atomic_load(&listeners[i].references), 0);
    for (unsigned i = 0; i < UPSTREAMS; i++)
        upstream_destroy(upstreams[i]);
    executor_destroy(executor);
    loop_runner_destroy(control);
}

struct look {
    unsigned upstream;
    unsigned n; /* servers with an address */
    unsigned port;
};

static void do_look(void *arg)
{
    struct look *l = arg;
    const struct server_set *set = membership_now(&upstreams[l->upstream]->membership);

    for (unsigned i = 0; i < set->n; i++) {
        struct endpoint_addresses *at = endpoint_hold_addresses(&set->servers[i]->endpoint);

        if (at && l->n++ == 0)
            l->port = ntohs(at->list[0].u.in.sin_port);
        endpoint_release_addresses(at);
    }
}

/* How many servers of upstream ${i} have an address. */
static unsigned known(unsigned i)
{
    struct look l = {.upstream = i};

    loop_runner_call(control, do_look, &l);
    return l.n;
}

static unsigned port_of(unsigned i)
{
    struct look l = {.upstream = i};

    loop_runner_call(control, do_look, &l);
    return l.port;
}

/* ---- names that come ---- */

GROUP(change, setup, teardown);

TEST(change, new_name_is_looked_up_at_prepare_and_used_at_commit)
{
    atomic_store(&answers[1], 2);
    start();
    prepare(1 | 2);
    until_ready(1);
    ck_assert_int_eq(atomic_load(&ready_error), 0);
    ck_assert_uint_eq(known(1), 0);
    commit();
    ck_assert_uint_eq(known(1), 2);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 1); /* it stays */
    ck_assert_uint_eq(atomic_load(&lookups[1]), 1);
    ck_assert_uint_eq(
        log_lines_with("upstream u1: server s (1): the name is known: 127.0.0.1:1100 and 1 more"),
        1);
}

TEST(change, change_without_new_names_is_ready_at_once)
{
    start();
    prepare(1);
    until_ready(1);
    commit();
    ck_assert_uint_eq(atomic_load(&lookups[0]), 1);
    prepare(0);
    until_ready(2);
    cancel();
    ck_assert_uint_eq(known(0), 1);
}

TEST(change, change_is_ready_when_each_new_name_has_an_answer_or_an_error)
{
    add_literal(2);
    start();
    atomic_store(&answers[1], SILENT);
    atomic_store(&answers[2], -ENOENT);
    prepare(1 | 2 | 4);
    UNTIL(atomic_load(&lookups[2]) == 1 && atomic_load(&running) == 1);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&n_ready), 0);
    atomic_store(&answers[1], 1);
    until_ready(1);
    ck_assert_int_eq(atomic_load(&ready_error), 0);
    commit();
    ck_assert_uint_eq(known(1), 1);
    ck_assert_uint_eq(known(2), 1); /* only the other server */
    EXPECT_LOG_LINES("u2: server s (2): cannot look up the name: there is no such", 1);
}

TEST(change, change_is_ready_at_the_deadline_and_late_answers_are_used)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    add_literal(1);
    start();
    atomic_store(&answers[1], SILENT);
    ck_assert_int_eq(prepare_with(1 | 2, 30 * NS_PER_MS, &listeners[0]), 0);
    until_ready(1);
    ck_assert_int_eq(atomic_load(&ready_error), 0);
    EXPECT_LOG_LINES("u1: server s (1): the name is still being looked up", 1);
    commit();
    ck_assert_uint_eq(known(1), 1);
    atomic_store(&answers[1], 1);
    UNTIL(known(1) == 2);
    UNTIL(log_lines_with("u1: server s (1): the name is known: 127.0.0.1:1100") == 1);
}

TEST(change, upstream_without_any_resolved_name_refuses_the_change)
{
    start();
    atomic_store(&answers[1], -ENOENT);
    prepare(1 | 2);
    until_ready(1);
    ck_assert_int_eq(atomic_load(&ready_error), -ENODATA);
    EXPECT_LOG_LINES(
        "u1: server s (1): the name has no address yet: there is no such name; without it", 1);
    cancel();
    ck_assert_uint_eq(known(0), 1);
}

TEST(change, name_used_by_another_line_needs_no_lookup)
{
    atomic_store(&answers[0], 2);
    start();
    strcpy(texts[1], texts[0]);
    atomic_store(&answers[0], -EAGAIN);
    prepare(1 | 2);
    until_ready(1);
    ck_assert_int_eq(atomic_load(&ready_error), 0);
    commit();
    ck_assert_uint_eq(known(1), 2);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 1);
}

static void do_due(void *arg)
{
    int64_t *due_at_ns = arg;

    list_for_each (node, &resolver->names) {
        const struct resolver_name *name = LIST_ENTRY(node, struct resolver_name, link);

        if (name->upstream == upstreams[1])
            *due_at_ns = name->pause.at_ns;
    }
}

TEST(change, interval_begins_with_the_answer_however_long_the_change_waits)
{
    int64_t due_at_ns = 0;

    now[1]->conf.resolve_interval_ns = 50 * NS_PER_MS;
    start();
    atomic_store(&answers[2], SILENT);
    ck_assert_int_eq(prepare_with(1 | 2 | 4, 200 * NS_PER_MS, &listeners[0]), 0);
    until_ready(1);
    atomic_store(&answers[1], SILENT); /* the second time */
    commit();
    ck_assert_uint_eq(known(1), 1);
    loop_runner_call(control, do_due, &due_at_ns);
    ck_assert_int_gt(due_at_ns, 0);
    ck_assert_int_le(due_at_ns, clock_now_ns());
}

/* 0: there is none; 1: no answer in time */
TEST_EACH(change, unresolved_required_name_refuses_the_change, 2)
{
    start();
    now[1]->conf.resolve_required = true;
    atomic_store(&answers[1], _i == 0 ? -ENOENT : SILENT);
    ck_assert_int_eq(prepare_with(1 | 2, 30 * NS_PER_MS, &listeners[0]), 0);
    until_ready(1);
    ck_assert_int_eq(atomic_load(&ready_error), -ENODATA);
    EXPECT_LOG_LINES("u1: server s (1): the name has no address yet: ", 1);
    EXPECT_LOG_LINES("; resolve_required demands one", 1);
    cancel();
    atomic_store(&answers[1], 1);
    prepare(1 | 2);
    until_ready(2);
    ck_assert_int_eq(atomic_load(&ready_error), 0);
    commit();
    ck_assert_uint_eq(known(1), 1);
}

/* 0: a server for each address; 1: one server */
TEST_EACH(change, resolved_addresses_of_a_new_name_become_its_servers, 2)
{
    struct membership_place places[RESOLVER_ADDRESSES];

    now[1]->lines[0].names = _i == 0 ? UPSTREAM_NAME_EACH : UPSTREAM_NAME_ONE;
    atomic_store(&answers[1], 3);
    atomic_store(&answers[2], -ENOENT);
    start();
    prepare(1 | 2 | 4);
    until_ready(1);
    ck_assert_uint_eq(resolver_find_places(change, upstreams[1], &now[1]->lines[0], places),
                      _i ? 1 : 3);
    ck_assert_uint_eq(places[0].n, _i ? 3 : 1);
    ck_assert_uint_eq(places[0].weight, 3);
    ck_assert_uint_eq(ntohs(places[0].list[0].u.in.sin_port), 1100);
    ck_assert_uint_eq(resolver_find_places(change, upstreams[0], &now[0]->lines[0], places),
                      0); /* old */
    ck_assert_uint_eq(resolver_find_places(change, upstreams[2], &now[2]->lines[0], places), 0);
    ck_assert_uint_eq(resolver_find_places(change, upstreams[3], &now[3]->lines[0], places), 0);
    cancel();
}

/* ---- names that go ---- */

TEST(change, removed_name_is_not_looked_up_again)
{
    now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    start();
    UNTIL(atomic_load(&lookups[0]) >= 3);
    prepare(2);
    until_ready(1);
    commit();
    PAUSE_MS(20); /* one under way */
    atomic_store(&lookups[0], 0);
    PAUSE_MS(50);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 0);
    ck_assert_uint_eq(known(1), 1);
}

static void do_destroy(void *arg)
{
    unsigned *i = arg;

    upstream_destroy(upstreams[*i]);
    upstreams[*i] = NULL;
}

static void do_count(void *arg)
{
    unsigned *n = arg;

    *n = 0;
    list_for_each (node, &resolver->removed)
        ++*n;
}

/* Names that are gone and still being looked up. */
static unsigned removed(void)
{
    unsigned n;

    loop_runner_call(control, do_count, &n);
    return n;
}

TEST(change, a_lookup_under_way_outlives_its_upstream)
{
    unsigned gone = 0;

    now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    start();
    atomic_store(&answers[0], SILENT);
    UNTIL(atomic_load(&running) == 1);
    prepare(2);
    until_ready(1);
    commit();
    ck_assert_uint_eq(removed(), 1);
    loop_runner_call(control, do_destroy, &gone);
    atomic_store(&answers[0], 1);
    UNTIL(removed() == 0);
}

TEST(change, cancelled_change_can_be_tried_again_during_its_lookups)
{
    start();
    atomic_store(&answers[1], SILENT);
    prepare(1 | 2);
    UNTIL(atomic_load(&running) == 1);
    cancel();
    ck_assert_uint_eq(removed(), 1);
    prepare(1 | 2); /* another lookup of the same name */
    UNTIL(atomic_load(&running) == 2);
    cancel();
    ck_assert_uint_eq(removed(), 2);
    atomic_store(&answers[1], 1);
    UNTIL(removed() == 0);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&n_ready), 0);
    ck_assert_uint_eq(known(1), 0);
}

TEST(change, change_cancelled_when_ready_changes_nothing)
{
    start();
    prepare(2);
    until_ready(1);
    cancel();
    ck_assert_uint_eq(known(1), 0);
    ck_assert_uint_eq(removed(), 0);
    ck_assert_uint_eq(known(0), 1);
    prepare(1);
    until_ready(2);
    commit();
    ck_assert_uint_eq(atomic_load(&lookups[0]), 1);
}

/* ---- names that stay ---- */

static void change_interval(int64_t interval_ns)
{
    unsigned n = atomic_load(&n_ready);

    other(0)->conf.resolve_interval_ns = interval_ns;
    prepare(1);
    until_ready(n + 1);
    commit();
}

TEST(change, changed_interval_applies_at_once)
{
    unsigned before;

    now[0]->conf.resolve_interval_ns = LATER;
    start();
    change_interval(LATER);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 1);
    change_interval(5 * NS_PER_MS);
    UNTIL(atomic_load(&lookups[0]) >= 3);
    change_interval(0);
    before = atomic_load(&lookups[0]);
    PAUSE_MS(70);
    ck_assert_uint_le(atomic_load(&lookups[0]), before + 1); /* one was under way */
    change_interval(5 * NS_PER_MS);
    UNTIL(atomic_load(&lookups[0]) >= before + 4);
}

static void do_weigh(void *arg)
{
    const struct server_set *set = membership_now(&upstreams[0]->membership);
    unsigned *weight = arg;

    *weight = set->n == 1 ? atomic_load(&set->servers[0]->endpoint.weight) : 0;
}

TEST(change, unchanged_name_gets_the_new_settings_of_its_line)
{
    unsigned weight;

    start();
    other(0)->lines[0].weight = 7;
    now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    prepare(1);
    until_ready(1);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 1);
    commit();
    atomic_store(&shift, 5000);
    UNTIL(port_of(0) == 6000);
    loop_runner_call(control, do_weigh, &weight);
    ck_assert_uint_eq(weight, 7);
}

TEST(change, line_with_another_name_is_looked_up_as_a_new_name)
{
    now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    start();
    other(0)->lines[0].address_text = "3";
    prepare(1);
    until_ready(1);
    ck_assert_uint_ge(atomic_load(&lookups[3]), 1);
    ck_assert_uint_eq(port_of(0), 1000);
    commit();
    ck_assert_uint_eq(port_of(0), 1300);
    ck_assert_uint_eq(known(0), 1);
    PAUSE_MS(20);
    atomic_store(&lookups[0], 0);
    atomic_store(&answers[3], 2);
    UNTIL(known(0) == 2);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 0);
}

/* 0: the other configuration is cancelled; 1: used */
TEST_EACH(change, answers_that_arrive_during_a_change_are_applied_after_it, 2)
{
    now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    start();
    (void)other(0);
    prepare(1);
    until_ready(1);
    atomic_store(&shift, 5000);
    PAUSE_MS(50);
    ck_assert_uint_eq(port_of(0), 1000);
    if (_i == 0)
        cancel();
    else
        commit();
    UNTIL(port_of(0) == 6000);
    ck_assert_uint_eq(log_lines_with("cannot look up"), 0);
}

TEST(change, disabled_line_removes_its_name)
{
    start();
    other(0)->lines[0].disabled = true;
    prepare(1);
    until_ready(1);
    commit();
    ck_assert_uint_eq(known(0), 0);
    other(0)->lines[0].disabled = false;
    prepare(1);
    until_ready(2);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 2);
    commit();
    ck_assert_uint_eq(known(0), 1);
}

/* ---- proxy loops ---- */

TEST(change, addresses_of_a_new_name_are_compared_with_the_new_listeners)
{
    listeners[1].port = 1101;
    atomic_store(&answers[1], 2);
    start();
    ck_assert_int_eq(prepare_with(1 | 2, UNTIL_LIMIT_NS, &listeners[1]), 0);
    until_ready(1);
    ck_assert_int_gt(atomic_load(&listeners[0].references), 0);
    commit();
    ck_assert_int_eq(atomic_load(&listeners[0].references), 0);
    ck_assert_uint_eq(known(1), 1);
    EXPECT_LOG_LINES("u1: server s (1): proxy loop: 127.0.0.1:1101 is a listener", 1);
}

TEST(change, address_that_becomes_our_own_listener_is_no_longer_used)
{
    listeners[1].port = 1001;
    now[0]->conf.resolve_interval_ns = LATER;
    atomic_store(&answers[0], 2);
    start();
    ck_assert_uint_eq(known(0), 2);
    ck_assert_int_eq(prepare_with(1, UNTIL_LIMIT_NS, &listeners[1]), 0);
    until_ready(1);
    commit();
    UNTIL(known(0) == 1);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 2);
}

/* Prepare other listeners while a lookup with the old ones is under way. */
static void prepare_during_a_lookup(void)
{
    listeners[1].port = 1001;
    now[0]->conf.resolve_interval_ns = 200 * NS_PER_MS;
    start();
    atomic_store(&answers[0], SILENT);
    UNTIL(atomic_load(&running) == 1);
    other(0)->conf.resolve_interval_ns = LATER;
    ck_assert_int_eq(prepare_with(1, UNTIL_LIMIT_NS, &listeners[1]), 0);
    until_ready(1);
}

TEST(change, answer_of_a_lookup_begun_before_the_change_is_compared_with_the_new_listeners)
{
    prepare_during_a_lookup();
    commit();
    atomic_store(&answers[0], 2); /* was asked with the old listeners */
    UNTIL(atomic_load(&lookups[0]) == 3);
    UNTIL(log_lines_with("proxy loop: 127.0.0.1:1001 is a listener") == 1);
    UNTIL(known(0) == 1);
}

TEST(change, answer_held_during_the_change_is_compared_with_the_new_listeners)
{
    prepare_during_a_lookup();
    atomic_store(&answers[0], 2); /* was asked with the old listeners */
    UNTIL(atomic_load(&running) == 0);
    PAUSE_MS(20); /* until it has come, for what is tested; the test passes without, too */
    commit();
    UNTIL(log_lines_with("proxy loop: 127.0.0.1:1001 is a listener") == 1);
    UNTIL(known(0) == 1);
}

/* ---- what fails ---- */

static void do_fail(void *arg)
{
    /* A change, and each of three names. */
    ck_assert_uint_eq(fault_each_allocation(try_prepare, arg), 4);
}

/* All threads are busy: only the loop allocates. */
TEST(change, failed_allocation_changes_nothing)
{
    struct wanted w = {
        .bits = 1 | 2 | 4 | 8, .wait_ns = UNTIL_LIMIT_NS, .listeners = &listeners[0]};

    start();
    for (unsigned i = 1; i < UPSTREAMS; i++)
        atomic_store(&answers[i], SILENT);
    prepare(2 | 4 | 8);
    UNTIL(atomic_load(&running) == 3);
    cancel();
    prepare(2);
    UNTIL(atomic_load(&running) == THREADS);
    cancel();
    loop_runner_call(control, do_fail, &w);
    ck_assert_uint_eq(removed(), 4);
    for (unsigned i = 1; i < UPSTREAMS; i++)
        atomic_store(&answers[i], 1);
    until_ready(1);
    commit();
    ck_assert_uint_eq(known(3), 1);
}

TEST(change, change_without_a_lookup_thread_is_refused)
{
    start();
    executor_stop(executor, 0);
    ck_assert_int_eq(prepare_with(1 | 2, UNTIL_LIMIT_NS, &listeners[0]), -ESHUTDOWN);
    EXPECT_LOG_LINES("executor: cannot start a thread", 1);
}

/* 0: it is waiting; 1: it is ready; 2: some names are gone, with lookups under way */
TEST_EACH(change, control_loop_may_end_in_any_state_of_a_change, 3)
{
    log_lines_capture(LOG_LEVEL_ERROR);
    now[0]->conf.resolve_interval_ns = _i == 2 ? NS_PER_MS : 0;
    start();
    atomic_store(&answers[1], _i == 0 ? SILENT : 1);
    if (_i == 2) {
        atomic_store(&answers[0], SILENT);
        UNTIL(atomic_load(&running) == 1);
    }
    prepare(2);
    if (_i > 0)
        until_ready(1);
    if (_i == 2)
        commit();
}
