/*
 * names/resolver: names are looked up elsewhere, until they are known and from time to time
 * after that.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/executor.h"
#include "names/resolver_internal.h"
#include "net/resolve.h"
#include "net/srv.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define NAMES 40
#define LATER (1000 * NS_PER_S)

/*
 * What a lookup of each name gives: so many addresses, an error, or nothing until something is set.
 */
#define SILENT 0
static atomic_int answers[NAMES];
static atomic_bool only_once; /* no second lookup has an answer */
static atomic_uint shift;     /* what is added to all ports: the servers have moved */
static atomic_uint lookups[NAMES], running, most_running;
static _Atomic int64_t looked_up_at_ns;
static _Atomic int64_t ttl_ns;                /* of all answers */
static _Atomic int64_t second_at_ns[NAMES];   /* of the second lookup */
static atomic_uint order, first_order[NAMES]; /* the first lookups, from 1 on */

static struct upstream_server_conf server_confs[NAMES];
static char texts[NAMES][16], ids[NAMES][16];
static struct upstream_conf upstream_conf = {.name = "back",
                                             .servers = server_confs,
                                             .connect_timeout_ns = NS_PER_S,
                                             .resolve_hold_ns = CLOCK_NEVER};
static struct upstream *upstream;
static struct executor *executor;
static struct loop *control;
static struct resolver_conf conf;
static struct resolver *resolver;
static struct upstream_next upstream_next;
static struct resolver_next next;
static struct proxy_loop {
    atomic_int references;
} listeners;
static atomic_uint loop_port; /* addresses with this port lead back; 0: none does */

/*
 * A name is its number as text; address i of name n has the port 1000 + 100 n + i, and ${shift}
 * more.
 */
static struct upstream_server *server_at(unsigned i)
{
    return membership_now(&upstream->membership)->servers[i];
}

static int look_up(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    unsigned n = (unsigned)atoi(word), at_once = atomic_fetch_add(&running, 1) + 1;
    unsigned most = atomic_load(&most_running);
    int answer;

    while (most < at_once && !atomic_compare_exchange_weak(&most_running, &most, at_once))
        ;
    atomic_store(&looked_up_at_ns, clock_now_ns());
    if (atomic_fetch_add(&lookups[n], 1) == 0)
        atomic_store(&first_order[n], atomic_fetch_add(&order, 1) + 1);
    else if (atomic_load(&second_at_ns[n]) == 0)
        atomic_store(&second_at_ns[n], clock_now_ns());
    terms->ttl_ns = atomic_load(&ttl_ns);
    while ((answer = atomic_load(&answers[n])) == SILENT ||
           (atomic_load(&lookups[n]) > 1 && atomic_load(&only_once)))
        usleep(500);
    ck_assert_uint_ge(max, 16);
    for (int i = 0; i < answer; i++)
        sockets_loopback(&out[i], 1000 + 100 * n + (unsigned)i + atomic_load(&shift));
    atomic_fetch_sub(&running, 1);
    return answer;
}

static bool leads_back(const struct proxy_loop *p, const char *name, const struct address *a)
{
    ck_assert_ptr_eq(p, &listeners);
    ck_assert_str_eq(name, "back");
    return ntohs(a->u.in.sin_port) == atomic_load(&loop_port);
}

static void hold(struct proxy_loop *p)
{
    atomic_fetch_add(&p->references, 1);
}

static void release(struct proxy_loop *p)
{
    if (p)
        atomic_fetch_sub(&p->references, 1);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    atomic_store(&ttl_ns, CLOCK_NEVER);
    conf = (struct resolver_conf){.retry_ns = LATER,
                                  .service_ns = LATER,
                                  .lookup = look_up,
                                  .leads_back = leads_back,
                                  .hold = hold,
                                  .release = release};
    control = loop_runner_create();
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%u", i);
        snprintf(ids[i], sizeof(ids[i]), i > 0 ? "s%u" : "s", i);
        server_confs[i] = (struct upstream_server_conf){
            .id = ids[i], .address_text = texts[i], .names = UPSTREAM_NAME_ONE, .weight = 1};
        atomic_store(&answers[i], 1);
    }
}

/* A resolver for the first ${n} names. */
static void create(unsigned n, unsigned threads)
{
    struct executor_conf exec = {
        .name = "exec", .pool = 3, .threads = threads, .max_pending_tasks = 16};

    upstream_conf.n_servers = n;
    ck_assert_int_eq(executor_create(&executor, &exec), 0);
    ck_assert_int_eq(upstream_create(&upstream, &upstream_conf, NULL), 0);
    conf.executor = executor;
    conf.control = control;
    ck_assert_int_eq(resolver_create(&resolver, &conf), 0);
    upstream_next = (struct upstream_next){upstream, &upstream_conf};
    next = (struct resolver_next){.list = &upstream_next, .n = 1, .listeners = &listeners};
}

static struct resolver_change *change;
static atomic_int start_rc; /* 1: not ready yet */
static atomic_bool ready;

static void on_ready(void *cookie, int error)
{
    (void)cookie;
    start_rc = error;
    if (error < 0)
        resolver_cancel(change);
    else
        resolver_commit(change);
    atomic_store(&ready, true);
}

static void do_begin(void *arg)
{
    (void)arg;
    start_rc = resolver_prepare(resolver, &next, &change);
}

static int try_start(int64_t wait_ns)
{
    next.is_first = true;
    next.ready = on_ready;
    next.wait_ns = wait_ns;
    loop_runner_call(control, do_begin, NULL);
    if (start_rc < 0)
        return start_rc;
    UNTIL(atomic_load(&ready));
    loop_runner_turn(control); /* the answers are used now */
    return start_rc;
}

static void start(unsigned n, int64_t wait_ns)
{
    create(n, 4);
    ck_assert_int_eq(try_start(wait_ns), 0);
}

static void end_control(void)
{
    loop_runner_stop(control);
}

static void end_executor(void)
{
    executor_stop(executor, 0);
    ck_assert_int_eq(executor_join(executor, UNTIL_LIMIT_NS), 0);
}

static void teardown(void)
{
    end_control();
    end_executor();
    resolver_destroy(resolver);
    ck_assert_int_eq(atomic_load(&listeners.references), 0);
    upstream_destroy(upstream);
    executor_destroy(executor);
    loop_runner_destroy(control);
    UNTIL(process_loops() == 0);
}

/* What is known is replaced on the control loop, which is the one to look. */
struct look {
    unsigned server, n, port;
};

static void look(void *arg)
{
    struct look *l = arg;
    struct endpoint *e = &server_at(l->server)->endpoint;
    struct endpoint_addresses *at = endpoint_hold_addresses(e);

    ck_assert_int_eq((endpoint_load(e) & ENDPOINT_ABSENT) != 0, at == NULL);
    l->n = at ? at->n : 0;
    l->port = l->n > l->port ? ntohs(at->list[l->port].u.in.sin_port) : 0;
    endpoint_release_addresses(at);
}

/* How many addresses of server ${n} are known. */
static unsigned known(unsigned n)
{
    struct look l = {.server = n};

    loop_runner_call(control, look, &l);
    return l.n;
}

static bool is_known(unsigned n)
{
    return known(n) > 0;
}

/* The port of its address ${i}; 0: there is none. */
static unsigned port_of(unsigned n, unsigned i)
{
    struct look l = {.server = n, .port = i};

    loop_runner_call(control, look, &l);
    return l.port;
}

/* ---- the start ---- */

GROUP(resolver, setup, teardown);

TEST(resolver, names_are_resolved_when_the_start_returns)
{
    atomic_store(&answers[1], 3);
    start(3, UNTIL_LIMIT_NS);
    for (unsigned n = 0; n < 3; n++) {
        ck_assert_uint_eq(port_of(n, 0), 1000 + 100 * n);
        ck_assert_uint_eq(atomic_load(&lookups[n]), 1);
    }
    ck_assert_uint_eq(port_of(1, 2), 1102);
    ck_assert_uint_eq(
        log_lines_with(
            "upstream back: server s1 (1): the name is known: 127.0.0.1:1100 and 2 more"),
        1);
}

TEST(resolver, literal_address_is_not_looked_up)
{
    struct address literal;

    sockets_loopback(&literal, 7);
    server_confs[1].names = UPSTREAM_LITERAL;
    server_confs[1].addresses = &literal;
    server_confs[1].n_addresses = 1;
    start(3, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(resolver_names(&upstream_next, 1), 2);
    ck_assert_uint_eq(atomic_load(&lookups[1]), 0);
    ck_assert_uint_eq(port_of(1, 0), 7);
    ck_assert_uint_eq(port_of(2, 0), 1200);
}

TEST(resolver, a_disabled_name_is_not_looked_up)
{
    upstream_conf.resolve_required = true;
    for (unsigned i = 0; i < 3; i++)
        server_confs[i].disabled = true;
    server_confs[0].names = UPSTREAM_NAME_EACH;
    server_confs[2].names = UPSTREAM_SERVICE;
    for (unsigned i = 0; i < 3; i++)
        atomic_store(&answers[i], -ENOENT);
    start(4, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(resolver_names(&upstream_next, 1), 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(atomic_load(&lookups[i]), 0);
    ck_assert_uint_eq(port_of(3, 0), 1300);
    ck_assert_uint_eq(log_lines_with("cannot look up the name"), 0);
}

TEST(resolver, without_names_no_executor_thread_is_started)
{
    struct address literal;

    sockets_loopback(&literal, 7);
    server_confs[0].names = UPSTREAM_LITERAL;
    server_confs[0].addresses = &literal;
    server_confs[0].n_addresses = 1;
    start(1, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(process_loops(), 1); /* the control loop */
}

TEST(resolver, names_are_looked_up_at_the_same_time)
{
    for (unsigned n = 0; n < 4; n++)
        atomic_store(&answers[n], SILENT);
    start(4, 0);
    UNTIL(atomic_load(&most_running) == 4);
    for (unsigned n = 0; n < 4; n++)
        atomic_store(&answers[n], 1);
    UNTIL(is_known(0) && is_known(1) && is_known(2) && is_known(3));
}

TEST(resolver, names_beyond_the_executors_queue_are_all_looked_up)
{
    create(NAMES, 2);
    ck_assert_int_eq(try_start(UNTIL_LIMIT_NS), 0);
    for (unsigned n = 0; n < NAMES; n++)
        ck_assert(is_known(n));
    ck_assert_uint_le(atomic_load(&most_running), 2);
}

TEST(resolver, failed_lookup_is_not_waited_for_until_the_deadline)
{
    int64_t began_at_ns = clock_now_ns();

    atomic_store(&answers[0], -ENOENT);
    start(2, UNTIL_LIMIT_NS);
    ck_assert_int_lt(since_ms(began_at_ns), UNTIL_LIMIT_NS / NS_PER_MS);
    ck_assert(!is_known(0));
    ck_assert(is_known(1));
}

TEST(resolver, all_silent_names_have_one_deadline)
{
    int64_t began_at_ns = clock_now_ns();

    for (unsigned n = 0; n < 20; n++)
        atomic_store(&answers[n], SILENT);
    start(20, 300 * NS_PER_MS);
    ck_assert_int_ge(since_ms(began_at_ns), 300);
    ck_assert_int_lt(since_ms(began_at_ns), 20 * 300);
    EXPECT_LOG_LINES("the name is still being looked up", 20);
    for (unsigned n = 0; n < 20; n++)
        atomic_store(&answers[n], 1);
}

/* ---- afterwards ---- */

TEST(resolver, late_answer_is_used)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    atomic_store(&answers[0], SILENT);
    start(1, 50 * NS_PER_MS);
    ck_assert(!is_known(0));
    atomic_store(&answers[0], 1);
    UNTIL(is_known(0));
    UNTIL(log_lines_with("server s (0): the name is known: 127.0.0.1:1000") == 1);
}

TEST(resolver, unresolved_name_is_looked_up_again_until_it_resolves)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    conf.retry_ns = 10 * NS_PER_MS;
    atomic_store(&answers[0], -ENOENT);
    start(1, UNTIL_LIMIT_NS);
    EXPECT_LOG_LINES("upstream back: server s (0): cannot look up the name: there "
                     "is no such name; the server gets no clients; trying again within 0.01 s",
                     1);
    UNTIL(atomic_load(&lookups[0]) >= 5);
    ck_assert(!is_known(0));
    EXPECT_LOG_LINES("cannot look up", 1);
    atomic_store(&answers[0], -EAGAIN);
    UNTIL(log_lines_with("no name server answers") == 1);
    atomic_store(&answers[0], 2);
    UNTIL(log_lines_with("server s (0): the name is known: 127.0.0.1:1000 and 1 more") == 1);
    ck_assert_uint_eq(port_of(0, 1), 1001);
    EXPECT_LOG_LINES("cannot look up", 2);
}

TEST(resolver, failed_lookup_is_not_repeated_before_the_retry_time)
{
    int64_t first_at_ns;

    conf.retry_ns = 200 * NS_PER_MS;
    atomic_store(&answers[0], -ENOENT);
    start(1, UNTIL_LIMIT_NS);
    first_at_ns = atomic_load(&looked_up_at_ns);
    UNTIL(atomic_load(&lookups[0]) == 2);
    ck_assert_int_ge(atomic_load(&looked_up_at_ns) - first_at_ns, conf.retry_ns / 5 * 4);
}

/* On the control loop, which has scheduled the next lookups: when they are due. */
static void read_due(void *arg)
{
    int64_t *due_at_ns = arg;

    list_for_each (node, &resolver->names)
        *due_at_ns++ = LIST_ENTRY(node, struct resolver_name, link)->pause.at_ns;
}

TEST(resolver, names_that_fail_together_are_retried_up_to_a_fifth_earlier)
{
    int64_t from_ns = clock_now_ns(), until_ns, due_at_ns[NAMES];
    int64_t least_ns = CLOCK_NEVER, most_ns = 0;

    for (unsigned n = 0; n < NAMES; n++)
        atomic_store(&answers[n], -ENOENT);
    start(NAMES, UNTIL_LIMIT_NS);
    loop_runner_call(control, read_due, due_at_ns);
    until_ns = clock_now_ns();
    for (unsigned n = 0; n < NAMES; n++) {
        least_ns = due_at_ns[n] < least_ns ? due_at_ns[n] : least_ns;
        most_ns = due_at_ns[n] > most_ns ? due_at_ns[n] : most_ns;
    }
    ck_assert_int_ge(least_ns - from_ns, LATER / 100 * 80);
    ck_assert_int_le(least_ns - until_ns, LATER / 100 * 82);
    ck_assert_int_ge(most_ns - from_ns, LATER / 100 * 98);
    ck_assert_int_le(most_ns - until_ns, LATER);
}

/* The control loop has no space for what an executor hands to it, for a moment. */
TEST(resolver, answers_during_a_blocked_control_loop_are_not_lost)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 100 * NS_PER_MS};
    struct tasks_block block;

    loop_runner_destroy(control);
    control = loop_runner_create_with(budget, LOOP_PENDING_MIN);
    for (unsigned n = 0; n < NAMES; n++)
        atomic_store(&answers[n], SILENT);
    create(NAMES, 2);
    ck_assert_int_eq(try_start(0), 0);
    tasks_block_begin(&block, control);
    for (unsigned n = 0; n < NAMES; n++)
        atomic_store(&answers[n], 1);
    for (unsigned n = 0; n < NAMES; n++)
        UNTIL(atomic_load(&lookups[n]) == 1);
    UNTIL(atomic_load(&running) == 0);
    PAUSE_MS(10); /* from the lookup to the control loop */
    tasks_block_end(&block);
    for (unsigned n = 0; n < NAMES; n++)
        UNTIL(is_known(n));
}

/* 0: of the control loop; 1: of the executor */
TEST(resolver, start_without_an_executor_thread_fails)
{
    fault_plan(FAULT_PTHREAD_CREATE, 1, 1, EAGAIN); /* the control loop has one */
    create(2, 1);
    ck_assert_int_eq(try_start(UNTIL_LIMIT_NS), -EAGAIN);
    EXPECT_LOG_LINES("executor: cannot start a thread", 1);
}

/* ---- names that are known ---- */

/* Wait until name ${n} was looked up and answered ${more} times more. */
static void pass_lookups(unsigned n, unsigned more)
{
    unsigned before = atomic_load(&lookups[n]);

    UNTIL(atomic_load(&lookups[n]) > before + more); /* the one before was answered */
}

TEST(resolver, without_an_interval_a_resolved_name_is_not_looked_up_again)
{
    conf.retry_ns = 5 * NS_PER_MS;
    atomic_store(&answers[0], -ENOENT);
    start(2, UNTIL_LIMIT_NS);
    pass_lookups(0, 10);
    ck_assert_uint_eq(atomic_load(&lookups[1]), 1);
}

TEST(resolver, with_an_interval_a_changed_answer_is_used_and_logged)
{
    upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    log_lines_capture(LOG_LEVEL_NOTICE);
    atomic_store(&answers[0], 2);
    start(1, UNTIL_LIMIT_NS);
    pass_lookups(0, 3);
    ck_assert_uint_eq(log_lines_with("upstream"), 0); /* known in time, and nothing new since */
    atomic_store(&shift, 5000);
    UNTIL(port_of(0, 0) == 6000);
    ck_assert_uint_eq(port_of(0, 1), 6001);
    UNTIL(log_lines_with("upstream back: server s (0): the name resolves to other addresses: "
                         "127.0.0.1:6000 and 1 more") == 1);
    pass_lookups(0, 3);
    EXPECT_LOG_LINES("upstream", 1);
    atomic_store(&answers[0], 1);
    UNTIL(known(0) == 1);
    UNTIL(log_lines_with("resolves to other addresses: 127.0.0.1:6000") == 2);
}

TEST(resolver, interval_begins_with_the_answer_even_if_the_start_waits_for_others)
{
    int64_t due_at_ns[NAMES], started_at_ns;

    upstream_conf.resolve_interval_ns = 100 * NS_PER_MS;
    atomic_store(&answers[1], SILENT);
    atomic_store(&only_once, true);
    start(2, 300 * NS_PER_MS);
    loop_runner_call(control, read_due, due_at_ns);
    started_at_ns = clock_now_ns();
    ck_assert_int_gt(due_at_ns[0], 0);
    ck_assert_int_le(due_at_ns[0], started_at_ns);
    atomic_store(&only_once, false);
    atomic_store(&answers[1], 1);
}

TEST(resolver, lookup_is_not_repeated_before_the_interval_is_over)
{
    int64_t first_at_ns;

    upstream_conf.resolve_interval_ns = 200 * NS_PER_MS;
    conf.retry_ns = 0;
    start(1, UNTIL_LIMIT_NS);
    first_at_ns = atomic_load(&looked_up_at_ns);
    UNTIL(atomic_load(&lookups[0]) == 2);
    ck_assert_int_ge(atomic_load(&looked_up_at_ns) - first_at_ns,
                     upstream_conf.resolve_interval_ns / 2);
}

TEST(resolver, failed_lookup_keeps_the_addresses_and_is_logged_once)
{
    upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    conf.retry_ns = 2 * NS_PER_MS;
    log_lines_capture(LOG_LEVEL_NOTICE);
    start(1, UNTIL_LIMIT_NS);
    atomic_store(&answers[0], -EAGAIN);
    pass_lookups(0, 5);
    ck_assert_uint_eq(port_of(0, 0), 1000);
    ck_assert_uint_eq(
        log_lines_with("server s (0): cannot look up the name: no name server "
                       "answers; its addresses stay in use; trying again within 0.002 s"),
        1);
    EXPECT_LOG_LINES("upstream", 1);
    atomic_store(&answers[0], 1);
    UNTIL(log_lines_with("server s (0): the name is known again: 127.0.0.1:1000") == 1);
    pass_lookups(0, 3);
    EXPECT_LOG_LINES("upstream", 2);
}

TEST(resolver, addresses_that_changed_during_failed_lookups_are_used)
{
    upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    conf.retry_ns = 2 * NS_PER_MS;
    start(1, UNTIL_LIMIT_NS);
    atomic_store(&answers[0], -ENOENT);
    UNTIL(log_lines_with("cannot look up") == 1);
    atomic_store(&shift, 5000);
    atomic_store(&answers[0], 1);
    UNTIL(port_of(0, 0) == 6000);
    UNTIL(log_lines_with("the name resolves to other addresses: 127.0.0.1:6000") == 1);
}

TEST(resolver, failed_lookup_is_retried_after_the_retry_time_and_not_the_interval)
{
    upstream_conf.resolve_interval_ns = LATER;
    conf.retry_ns = 5 * NS_PER_MS;
    atomic_store(&answers[0], -ENOENT);
    start(2, UNTIL_LIMIT_NS);
    pass_lookups(0, 3);
    atomic_store(&answers[0], 1);
    UNTIL(is_known(0));
    ck_assert_uint_eq(atomic_load(&lookups[1]), 1);
}

TEST(resolver, no_pause_after_a_failure_is_longer_than_the_interval)
{
    upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    atomic_store(&answers[0], -ENOENT);
    start(1, UNTIL_LIMIT_NS);
    EXPECT_LOG_LINES("trying again within 0.005 s", 1);
    pass_lookups(0, 3);
}

/* When the next lookup of the first and of the last name is planned. */
struct pauses {
    int64_t first_ns, last_ns;
};

static void do_pauses(void *arg)
{
    struct pauses *p = arg;

    *p = (struct pauses){.first_ns = CLOCK_NEVER};
    list_for_each (node, &resolver->names) {
        int64_t at_ns = LIST_ENTRY(node, struct resolver_name, link)->pause.at_ns;

        p->first_ns = at_ns < p->first_ns ? at_ns : p->first_ns;
        p->last_ns = at_ns > p->last_ns ? at_ns : p->last_ns;
    }
}

TEST(resolver, lookups_made_together_spread_over_time)
{
    int64_t began_at_ns = clock_now_ns();
    struct pauses p;

    upstream_conf.resolve_interval_ns = LATER;
    upstream_conf.resolve_interval_min_ns = 2 * LATER; /* above the interval it means nothing */
    start(NAMES, UNTIL_LIMIT_NS);
    loop_runner_call(control, do_pauses, &p);
    ck_assert_int_ge(p.first_ns - began_at_ns, LATER / 2);
    ck_assert_int_ge(p.last_ns - p.first_ns, LATER / 4);
    ck_assert_int_le(p.last_ns - clock_now_ns(), LATER);
}

TEST(resolver, a_ttl_shorter_than_the_interval_decides)
{
    upstream_conf.resolve_interval_ns = LATER;
    atomic_store(&ttl_ns, 5 * NS_PER_MS);
    start(1, UNTIL_LIMIT_NS);
    pass_lookups(0, 3);
}

TEST_EACH(resolver, a_ttl_is_kept_within_bounds, 2)
{
    int64_t first_at_ns;

    atomic_store(&ttl_ns, _i ? LATER : 0);
    upstream_conf.resolve_interval_ns = _i ? 5 * NS_PER_MS : LATER;
    upstream_conf.resolve_interval_min_ns = _i ? 1 : 200 * NS_PER_MS;
    start(1, UNTIL_LIMIT_NS);
    first_at_ns = atomic_load(&looked_up_at_ns);
    UNTIL(atomic_load(&second_at_ns[0]) > 0);
    if (_i == 0)
        ck_assert_int_ge(atomic_load(&second_at_ns[0]) - first_at_ns, 200 * NS_PER_MS);
}

/* A session that connects to an address keeps it; under ASan it would be seen if not. */
TEST(resolver, replaced_addresses_are_kept_while_in_use)
{
    struct endpoint_addresses *at;

    upstream_conf.resolve_interval_ns = NS_PER_MS;
    start(1, UNTIL_LIMIT_NS);
    at = endpoint_hold_addresses(&server_at(0)->endpoint); /* nobody replaces it yet */
    for (unsigned i = 1; i <= 20; i++) {
        atomic_store(&shift, i);
        UNTIL(port_of(0, 0) == 1000 + i);
    }
    ck_assert_uint_eq(ntohs(at->list[0].u.in.sin_port), 1000);
    endpoint_release_addresses(at);
}

/* ---- names of several servers ---- */

static struct srv_record records[RESOLVER_ADDRESSES / ENDPOINT_ADDRESSES + 1];
static atomic_int n_records;

static int look_up_service(struct srv_record *out, size_t max, const char *name,
                           struct dns_terms *terms)
{
    int n = atomic_load(&n_records);

    terms->ttl_ns = CLOCK_NEVER;
    ck_assert_uint_ge(max, ARRAY_LEN(records));
    ck_assert_str_eq(name, "0");
    for (int i = 0; i < n; i++)
        out[i] = records[i];
    return n;
}

/* Two of IPv6 for "5" and for "6", the second of which has one of IPv4 as well. */
static int look_up_families(struct address *out, size_t max, const char *word,
                            struct dns_terms *terms)
{
    struct address list[2];

    (void)terms;
    ck_assert_uint_ge(max, 2);
    ck_assert_int_eq(address_parse(list, 2, "[::1]:5"), 1);
    out[0] = list[0];
    if (strcmp(word, "6") == 0)
        sockets_loopback(&out[1], 6);
    else
        ck_assert_int_eq(address_parse(&out[1], 2, "[::1]:6"), 1);
    return 2;
}

/* "NAME load n-of-addresses" of each server. */
static void list_servers(void *arg)
{
    const struct server_set *set = membership_now(&upstream->membership);
    char *text = arg;

    *text = '\0';
    for (unsigned i = 0; i < set->n; i++) {
        const struct endpoint *e = &set->servers[i]->endpoint;

        text += sprintf(text, "%s%s*%u/%u", i > 0 ? " " : "", e->name, atomic_load(&e->weight),
                        e->level);
    }
}

static const char *servers_now(void)
{
    static char text[1024];

    loop_runner_call(control, list_servers, text);
    return text;
}

static void name_is(unsigned n, enum upstream_names names)
{
    server_confs[n].names = names;
}

TEST(resolver, each_address_of_a_name_is_a_server)
{
    name_is(0, UPSTREAM_NAME_EACH);
    server_confs[0].weight = 3;
    upstream_conf.resolve_interval_ns = conf.retry_ns = 5 * NS_PER_MS;
    atomic_store(&answers[0], 3);
    start(1, UNTIL_LIMIT_NS);
    ck_assert_str_eq(servers_now(),
                     "s@127.0.0.1:1000*3/0 s@127.0.0.1:1001*3/0 s@127.0.0.1:1002*3/0");
    atomic_store(&answers[0], 1);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1000*3/0") == 0);
    atomic_store(&answers[0], -ENOENT);
    pass_lookups(0, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1000*3/0");
}

TEST(resolver, each_family_of_a_name_adds_its_addresses_as_servers)
{
    conf.lookup = look_up_families;
    snprintf(texts[0], sizeof(texts[0]), "5");
    snprintf(texts[1], sizeof(texts[1]), "6");
    server_confs[1].id = "t";
    name_is(0, UPSTREAM_NAME_EACH);
    name_is(1, UPSTREAM_NAME_EACH);
    start(2, UNTIL_LIMIT_NS);
    ck_assert_str_eq(servers_now(), "s@[::1]:5*1/0 s@[::1]:6*1/0 t@[::1]:5*1/0");
    ck_assert_uint_eq(known(2), 2);
}

/* 300 addresses, of which another one comes first each time. */
static int look_up_many(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    unsigned first = atomic_fetch_add(&lookups[0], 1) * 71, n = 300;

    (void)terms;
    ck_assert_str_eq(word, "0");
    for (unsigned i = 0; i < n && i < max; i++)
        sockets_loopback(&out[i], 1000 + (first + i) % n);
    return (int)(n < max ? n : max);
}

static void count_servers(void *arg)
{
    *(unsigned *)arg = membership_now(&upstream->membership)->n;
}

TEST_EACH(resolver, choice_among_too_many_addresses_is_stable, 2)
{
    unsigned n = 0;

    conf.lookup = look_up_many;
    name_is(0, _i ? UPSTREAM_NAME_ONE : UPSTREAM_NAME_EACH);
    upstream_conf.resolve_interval_ns = NS_PER_MS;
    start(1, UNTIL_LIMIT_NS);
    pass_lookups(0, 5);
    loop_runner_call(control, count_servers, &n);
    ck_assert_uint_eq(n, _i ? 1 : RESOLVER_ADDRESSES);
    ck_assert_uint_eq(known(0), _i ? ENDPOINT_ADDRESSES : 1);
    ck_assert_uint_eq(log_lines_with("resolves to other addresses"), 0);
}

static void record(unsigned i, const char *target, unsigned priority, unsigned weight)
{
    snprintf(records[i].target, sizeof(records[i].target), "%s", target);
    records[i].priority = (uint16_t)priority;
    records[i].weight = (uint16_t)weight;
}

static void start_service(int n)
{
    conf.lookup_service = look_up_service;
    name_is(0, UPSTREAM_SERVICE);
    atomic_store(&n_records, n);
    start(1, UNTIL_LIMIT_NS);
}

TEST(resolver, each_host_of_a_service_has_its_weight_and_its_priority)
{
    record(0, "8", 10, 40000);
    record(1, "9", 10, 20000);
    record(2, "7", 20, 0);
    atomic_store(&answers[8], 2);
    start_service(3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/1 s@127.0.0.1:1800*256/0 "
                                    "s@127.0.0.1:1801*256/0 s@127.0.0.1:1900*128/0");
}

TEST_EACH(resolver, a_host_without_an_address_is_left_out, 3)
{
    static const int errors[] = {-ENOENT, -EINVAL, -ERANGE}; /* the name of it is none */

    log_lines_capture(LOG_LEVEL_NOTICE);
    record(0, "7", 1, 1);
    record(1, "8", 1, 2);
    atomic_store(&answers[7], errors[_i]);
    start_service(2);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1800*2/0");
    ck_assert_uint_eq(log_lines_with("cannot be looked up"), 0); /* nothing to try again */
}

TEST(resolver, host_whose_lookup_fails_keeps_its_addresses)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    upstream_conf.resolve_interval_ns = conf.retry_ns = 5 * NS_PER_MS;
    record(0, "7", 1, 1);
    record(1, "8", 1, 1);
    start_service(2);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0");
    atomic_store(&answers[7], -EAGAIN);
    pass_lookups(7, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0");
    ck_assert_uint_eq(
        log_lines_with("s (0): 1 of 2 SRV hosts cannot be looked up, such as 7: no name "
                       "server answers; their last known addresses, if any, stay in use"),
        1);
    atomic_store(&shift, 5000);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:6800*1/0") == 0);
    atomic_store(&shift, 0);
    atomic_store(&answers[8], -EREMOTEIO); /* that is news */
    UNTIL(log_lines_with(
              "2 of 2 SRV hosts cannot be looked up, such as 8: the name server fails") == 1);
    atomic_store(&answers[7], 1);
    atomic_store(&answers[8], 1);
    UNTIL(log_lines_with("lookups of its SRV hosts no longer fail") == 1);
    atomic_store(&n_records, 1);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0") == 0);
}

TEST(resolver, host_that_fails_from_the_start_does_not_delay_the_others)
{
    record(0, "7", 1, 1);
    record(1, "8", 1, 1);
    atomic_store(&answers[7], -EAGAIN);
    conf.retry_ns = 5 * NS_PER_MS; /* also with an interval of 0, until it is known */
    start_service(2);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1800*1/0");
    atomic_store(&answers[7], 1);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0") == 0);
}

/* ---- what fails, and what is said not to exist ---- */

static atomic_uint failing; /* enum resolve_family */

static int look_up_unless_failing(struct address *out, size_t max, const char *word,
                                  struct dns_terms *terms)
{
    static const char *const all[] = {"127.0.0.1:1", "127.0.0.1:2", "[::1]:1", "[::1]:2"};
    unsigned n = 0;

    atomic_fetch_add(&lookups[atoi(word)], 1);
    terms->failed = atomic_load(&failing);
    terms->error = -EREMOTEIO;
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        struct address list[2];

        ck_assert_int_eq(address_parse(list, 2, all[i]), 1);
        if (resolve_family(&list[0]) & ~terms->failed && n < max)
            out[n++] = list[0];
    }
    return (int)n;
}

static void start_failing(enum upstream_names names)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    conf.lookup = look_up_unless_failing;
    upstream_conf.resolve_interval_ns = conf.retry_ns = 5 * NS_PER_MS;
    if (names == UPSTREAM_SERVICE) {
        record(0, "7", 1, 1);
        start_service(1);
    } else {
        name_is(0, names);
        start(1, UNTIL_LIMIT_NS);
    }
}

#define ALL_FOUR "s@127.0.0.1:1*1/0 s@127.0.0.1:2*1/0 s@[::1]:1*1/0 s@[::1]:2*1/0"

TEST_EACH(resolver, failed_family_keeps_its_addresses_and_is_logged_once, 2)
{
    const char *family = _i ? "IPv6" : "IPv4";
    char text[128];

    start_failing(UPSTREAM_NAME_EACH);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    atomic_store(&failing, 1u << _i);
    pass_lookups(0, 3);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    snprintf(text, sizeof(text),
             "cannot look up the %s addresses of the name: the name server fails; they stay in use",
             family);
    ck_assert_uint_eq(log_lines_with(text), 1);
    atomic_store(&failing, 0);
    snprintf(text, sizeof(text), "lookups of its %s addresses no longer fail", family);
    UNTIL(log_lines_with(text) == 1);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    ck_assert_uint_eq(log_lines_with("resolves to other addresses"), 0);
}

TEST_EACH(resolver, failed_family_keeps_its_addresses_of_a_single_server, 2)
{
    start_failing(UPSTREAM_NAME_ONE);
    atomic_store(&failing, 1u << _i);
    pass_lookups(0, 3);
    ck_assert_uint_eq(known(0), 4);
    ck_assert_uint_eq(log_lines_with("resolves to other addresses"), 0);
}

TEST_EACH(resolver, failed_family_keeps_its_addresses_of_a_host_of_a_service, 2)
{
    start_failing(UPSTREAM_SERVICE);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    atomic_store(&failing, 1u << _i);
    pass_lookups(7, 3);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    ck_assert_uint_eq(log_lines_with("1 of 1 SRV hosts cannot be looked up, such as 7"), 1);
    atomic_store(&failing, 0);
    UNTIL(log_lines_with("lookups of its SRV hosts no longer fail") == 1);
}

/* Some name servers drop queries for AAAA: nothing is lost by that. */
TEST(resolver, failed_family_without_addresses_is_not_logged)
{
    atomic_store(&failing, RESOLVE_IPV6);
    start_failing(UPSTREAM_NAME_EACH);
    pass_lookups(0, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1*1/0 s@127.0.0.1:2*1/0");
    ck_assert_uint_eq(log_lines_with("cannot"), 0);
}

static const enum upstream_names all_names[] = {UPSTREAM_NAME_EACH, UPSTREAM_NAME_ONE,
                                                UPSTREAM_SERVICE};

static void start_held(enum upstream_names names, int64_t hold_ns)
{
    log_lines_capture(LOG_LEVEL_INFO);
    upstream_conf.resolve_interval_ns = conf.retry_ns = 5 * NS_PER_MS;
    upstream_conf.resolve_hold_ns = hold_ns;
    if (names == UPSTREAM_SERVICE) {
        record(0, "7", 1, 1);
        start_service(1);
    } else {
        name_is(0, names);
        start(1, UNTIL_LIMIT_NS);
    }
}

static void answer_all(int answer)
{
    atomic_store(&n_records, answer);
    atomic_store(&answers[0], answer);
}

static void count_present(void *arg)
{
    const struct server_set *set = membership_now(&upstream->membership);

    *(unsigned *)arg = 0;
    for (unsigned i = 0; i < set->n; i++)
        *(unsigned *)arg += (endpoint_load(&set->servers[i]->endpoint) & ENDPOINT_ABSENT) == 0;
}

static unsigned present(void)
{
    unsigned n;

    loop_runner_call(control, count_present, &n);
    return n;
}

TEST_EACH(resolver, servers_of_a_missing_name_are_removed_after_resolve_hold_and_return,
          ARRAY_LEN(all_names))
{
    const int64_t hold_ns = 300 * NS_PER_MS;
    int64_t began_ns;

    start_held(all_names[_i], hold_ns);
    ck_assert_uint_eq(present(), 1);
    began_ns = clock_now_ns();
    answer_all(-ENOENT);
    UNTIL(present() == 0);
    ck_assert_int_ge(clock_now_ns() - began_ns, hold_ns);
    ck_assert_uint_eq(log_lines_with("there is no such name; its addresses stay in use for 0.3 s"),
                      1);
    ck_assert_uint_eq(log_lines_with("s (0): the name does not exist any more: no new clients"), 1);
    UNTIL(log_lines_with("cannot look up") == 1);
    answer_all(1);
    UNTIL(present() == 1);
    ck_assert_uint_eq(log_lines_with("the name is known: 127.0.0.1:"), 2);
}

TEST_EACH(resolver, with_a_hold_of_0_servers_are_removed_with_the_first_answer,
          ARRAY_LEN(all_names))
{
    start_held(all_names[_i], 0);
    answer_all(-ENOENT);
    UNTIL(present() == 0);
    ck_assert_uint_eq(log_lines_with("stay in use"), 0);
}

TEST_EACH(resolver, only_an_answer_that_the_name_does_not_exist_ends_the_hold, ARRAY_LEN(all_names))
{
    start_held(all_names[_i], 20 * NS_PER_MS);
    answer_all(-EREMOTEIO);
    UNTIL(log_lines_with("the name server fails") == 1);
    usleep(60000);
    ck_assert_uint_eq(present(), 1);
    answer_all(-ENOENT);
    UNTIL(present() == 0);
}

TEST_EACH(resolver, address_in_two_records_has_the_weight_of_the_first, 2)
{
    record(0, "7", 1, 1);
    record(1, "8", 2, 1);
    record(2, "7", 3, 1);
    conf.service_ns = _i ? 1 : LATER; /* 1: each lookup begins with another host */
    conf.retry_ns = NS_PER_MS;
    start_service(3);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/1") == 0);
    if (_i)
        pass_lookups(8, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/1");
}

/* Any host has as many addresses as count. */
static int look_up_sixteen(struct address *out, size_t max, const char *word,
                           struct dns_terms *terms)
{
    ck_assert_uint_ge(max, ENDPOINT_ADDRESSES);
    terms->ttl_ns = CLOCK_NEVER;
    for (unsigned i = 0; i < ENDPOINT_ADDRESSES; i++)
        sockets_loopback(&out[i], 1000 + 100 * (unsigned)atoi(word) + i);
    atomic_fetch_add(&lookups[0], 1);
    return ENDPOINT_ADDRESSES;
}

/* How many servers there are on each level. */
static void count_levels(void *arg)
{
    const struct server_set *set = membership_now(&upstream->membership);
    unsigned *n = arg;

    memset(n, 0, BALANCER_LEVELS * sizeof(*n));
    for (unsigned i = 0; i < set->n; i++)
        n[atomic_load(&set->servers[i]->endpoint.level)]++;
}

/*
 * Each lookup begins with another host, so that those of the first priority are often looked up
 * last.
 */
TEST(resolver, too_many_addresses_of_a_service_are_cut_by_priority)
{
    unsigned hosts = RESOLVER_ADDRESSES / ENDPOINT_ADDRESSES + 1, n[BALANCER_LEVELS] = {0};
    char name[8];

    for (unsigned i = 0; i < hosts; i++) {
        snprintf(name, sizeof(name), "%u", i);
        record(i, name, i == 0 ? 1 : i < hosts - 1 ? 2 : 3, 1);
    }
    conf.lookup = look_up_sixteen;
    conf.service_ns = 1;
    conf.retry_ns = upstream_conf.resolve_interval_ns = NS_PER_MS;
    start_service((int)hosts);
    UNTIL((loop_runner_call(control, count_levels, n), n[0] + n[1] == RESOLVER_ADDRESSES));
    for (unsigned i = 0; i < 2 * hosts; i++) {
        pass_lookups(0, 1);
        loop_runner_call(control, count_levels, n);
        ck_assert_uint_eq(n[0], ENDPOINT_ADDRESSES);
        ck_assert_uint_eq(n[1], RESOLVER_ADDRESSES - ENDPOINT_ADDRESSES);
    }
}

/* Time for one host only: the next lookup begins with the one after it. */
TEST(resolver, lookups_of_all_hosts_share_one_deadline)
{
    record(0, "7", 1, 1);
    record(1, "8", 1, 1);
    record(2, "9", 1, 1);
    conf.service_ns = 1;
    start_service(3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0");
    ck_assert_uint_eq(atomic_load(&lookups[8]) + atomic_load(&lookups[9]), 0);
    ck_assert_uint_eq(
        log_lines_with("2 of 3 SRV hosts cannot be looked up, such as 8: no time is left"), 1);
}

TEST(resolver, hosts_not_looked_up_in_time_come_first_in_the_next_lookup)
{
    record(0, "7", 1, 1);
    record(1, "8", 1, 1);
    record(2, "9", 1, 1);
    conf.service_ns = 1;
    conf.retry_ns = NS_PER_MS;
    start_service(3);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0 s@127.0.0.1:1900*1/0") ==
          0);
}

/* One thread: name 1 waits while host 7 is looked up. */
TEST(resolver, other_names_are_looked_up_between_two_hosts)
{
    record(0, "7", 1, 1);
    record(1, "8", 1, 1);
    record(2, "9", 1, 1);
    conf.lookup_service = look_up_service;
    name_is(0, UPSTREAM_SERVICE);
    atomic_store(&n_records, 3);
    atomic_store(&answers[7], SILENT);
    create(2, 1);
    ck_assert_int_eq(try_start(0), 0);
    UNTIL(atomic_load(&lookups[7]) == 1);
    atomic_store(&answers[7], 1);
    UNTIL(atomic_load(&first_order[9]) > 0 && atomic_load(&first_order[1]) > 0);
    ck_assert_uint_lt(atomic_load(&first_order[1]), atomic_load(&first_order[9]));
}

TEST_EACH(resolver, start_fails_while_a_required_name_is_unresolved, 2)
{
    upstream_conf.resolve_required = true;
    atomic_store(&answers[1], _i ? -ENOENT : SILENT);
    create(2, 4);
    ck_assert_int_eq(try_start(_i ? UNTIL_LIMIT_NS : 500 * NS_PER_MS), -ENODATA);
    ck_assert_uint_eq(log_lines_with("server s1 (1): the name has no address yet: "), 1);
    EXPECT_LOG_LINES("resolve_required", 1);
    atomic_store(&answers[1], 1);
}

/* ---- proxy loops ---- */

TEST(resolver, address_of_our_own_listener_is_left_out_and_logged)
{
    atomic_store(&answers[0], 3);
    atomic_store(&loop_port, 1001);
    start(1, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(known(0), 2);
    ck_assert_uint_eq(port_of(0, 0), 1000);
    ck_assert_uint_eq(port_of(0, 1), 1002);
    ck_assert_uint_eq(
        log_lines_with("server s (0): proxy loop: 127.0.0.1:1001 is a listener of this process"),
        1);
}

TEST(resolver, name_with_own_listeners_only_is_retried_and_logged_once)
{
    conf.retry_ns = 10 * NS_PER_MS;
    atomic_store(&loop_port, 1000);
    start(1, UNTIL_LIMIT_NS);
    UNTIL(atomic_load(&lookups[0]) >= 5);
    ck_assert(!is_known(0));
    EXPECT_LOG_LINES("is a listener of this process", 1);
    EXPECT_LOG_LINES("none of its addresses can be used", 1);
    atomic_store(&loop_port, 0);
    UNTIL(is_known(0));
}

TEST(resolver, repeated_address_of_our_own_listener_is_logged_once)
{
    upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    atomic_store(&answers[0], 3);
    atomic_store(&loop_port, 1001);
    start(1, UNTIL_LIMIT_NS);
    pass_lookups(0, 4);
    EXPECT_LOG_LINES("is a listener of this process", 1);
    atomic_store(&loop_port, 0);
    UNTIL(known(0) == 3);
    atomic_store(&loop_port, 1002);
    UNTIL(log_lines_with("127.0.0.1:1002 is a listener of this process") == 1);
    pass_lookups(0, 4);
    EXPECT_LOG_LINES("is a listener of this process", 2);
}

/* ---- the end ---- */

TEST(resolver, stopping_does_not_wait_for_the_next_retry)
{
    int64_t began_at_ns = clock_now_ns();

    atomic_store(&answers[0], -ENOENT);
    start(1, UNTIL_LIMIT_NS);
    executor_stop(executor, 0);
    ck_assert_int_eq(executor_join(executor, UNTIL_LIMIT_NS), 0);
    ck_assert_int_lt(since_ms(began_at_ns), LATER / NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&lookups[0]), 1);
}

TEST_EACH(resolver, hanging_lookup_is_named_and_ends_when_it_returns, 2)
{
    struct executor_stats stats;

    for (unsigned n = 0; n < 10; n++) /* more than there are threads */
        atomic_store(&answers[n], SILENT);
    start(10, 0);
    UNTIL(atomic_load(&running) == 4);
    executor_stop(executor, 0);
    ck_assert_int_eq(executor_join(executor, 50 * NS_PER_MS), -ETIMEDOUT);
    executor_stats(executor, &stats);
    ck_assert_str_eq(stats.running_name, "look up a host name");
    for (unsigned n = 0; n < 10; n++)
        atomic_store(&answers[n], _i ? 1 : -ENOENT);
    ck_assert_int_eq(executor_join(executor, UNTIL_LIMIT_NS), 0);
    for (unsigned n = 4; n < 10; n++)
        ck_assert_uint_eq(atomic_load(&lookups[n]), 0); /* dropped */
}

static unsigned names_looked_up(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < NAMES; i++)
        n += atomic_load(&lookups[i]);
    return n;
}

enum end_state {
    END_LOOKING_UP,  /* lookups are under way, and more wait for a thread */
    END_ANSWERED,    /* answers wait for the control loop */
    END_WAITING,     /* for the next time */
    END_ALL_THE_TIME /* it goes round as fast as it can */
};

static void reach(enum end_state state, struct tasks_block *block)
{
    if (state <= END_ANSWERED)
        for (unsigned n = 0; n < 8; n++)
            atomic_store(&answers[n], SILENT);
    if (state == END_ALL_THE_TIME)
        upstream_conf.resolve_interval_ns = conf.retry_ns = 1;
    create(8, 2);
    ck_assert_int_eq(try_start(state < END_WAITING ? 0 : UNTIL_LIMIT_NS), 0);
    if (state == END_LOOKING_UP)
        UNTIL(atomic_load(&running) == 2);
    if (state != END_ANSWERED)
        return;
    tasks_block_begin(block, control);
    for (unsigned n = 0; n < 8; n++)
        atomic_store(&answers[n], 1);
    UNTIL(atomic_load(&lookups[7]) == 1);
}

/* What it holds the control loop or the lookups by is let go of when they have been told to end. */
static void let_go(enum end_state state, struct tasks_block *block)
{
    if (state == END_ANSWERED)
        tasks_block_end(block);
    for (unsigned n = 0; n < 8; n++)
        atomic_store(&answers[n], n % 2 ? 1 : -ENOENT);
}

/* The control loop first, as the server does it, or last. */
TEST_EACH(resolver, resolver_can_be_stopped_in_any_state, 2 * (END_ALL_THE_TIME + 1))
{
    enum end_state state = (enum end_state)(_i / 2);
    bool control_first = _i % 2;
    struct tasks_block block;
    unsigned before;

    log_lines_capture(LOG_LEVEL_ERROR); /* what is cut off is worth a warning */
    upstream_conf.resolve_interval_ns = LATER;
    reach(state, &block);
    if (control_first)
        loop_stop(control, 0, 0);
    else
        executor_stop(executor, 0);
    let_go(state, &block);
    if (control_first)
        end_control();
    end_executor();
    end_control();
    before = names_looked_up();
    PAUSE_MS(10);
    ck_assert_uint_eq(names_looked_up(), before);
}

GROUP(none, NULL, NULL);

TEST(none, destroying_null_is_allowed)
{
    resolver_destroy(NULL);
}
