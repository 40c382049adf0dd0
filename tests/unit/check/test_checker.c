/*
 * check/checker: which server is looked at when, what is made of it, and that nothing is left
 * when it ends.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/checker_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define ENDPOINTS   1000
#define INTERVAL_NS (20 * NS_PER_MS)
#define LATER_NS    (1000 * NS_PER_S)

static struct loop *loop;
static struct netloop *net;
static struct checker *checker;
static unsigned max_under_way;
static struct checker_rules_conf rules_conf;
static struct checker_group_conf group_conf;
static struct checker_group *group;
static struct checker_target_conf target_conf;
static struct checker_target *targets[ENDPOINTS];
static struct endpoint endpoints[ENDPOINTS];
static _Atomic uint32_t loads[ENDPOINTS];
static struct endpoint_group group_of_all;
static unsigned before;

/* ---- what the kernel is asked for ---- */

#define CONNECTS 20000

static struct {
    unsigned host; /* the last number of an IPv4 address */
    unsigned port;
    int64_t at_ns;
} connects[CONNECTS];
static atomic_uint n_connects, most_under_way;
static atomic_int connect_error;
static atomic_uint connect_error_port; /* 0: any */

static bool fails(unsigned port)
{
    unsigned only = atomic_load(&connect_error_port);

    return atomic_load(&connect_error) != 0 && (only == 0 || only == port);
}

/* Every check connects once, on the loop. */
int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
    int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t) = dlsym(RTLD_NEXT, "connect");
    unsigned n = atomic_load(&n_connects), port;
    struct sockaddr_in in;
    struct checker_load load;

    if (!loop || !loop_is_current(loop))
        return next(fd, addr, len);
    memcpy(&in, (const void *)addr.__sockaddr__, sizeof(in));
    port = in.sin_family == AF_INET ? ntohs(in.sin_port) : 0;
    if (n < CONNECTS) {
        connects[n].host = ntohl(in.sin_addr.s_addr) & 0xff;
        connects[n].port = port;
        connects[n].at_ns = clock_now_ns();
        atomic_store(&n_connects, n + 1);
    }
    checker_load(checker, &load);
    if (load.under_way > atomic_load(&most_under_way))
        atomic_store(&most_under_way, load.under_way);
    if (!fails(port))
        return next(fd, addr, len);
    errno = atomic_load(&connect_error);
    return -1;
}

/*
 * The clock of the loop's thread stands still while this is set: targets are added at one instant.
 */
static _Atomic int64_t still_at_ns;

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int64_t at_ns = atomic_load(&still_at_ns);

    if (at_ns == 0 || id != CLOCK_MONOTONIC || !loop || !loop_is_current(loop))
        return next(id, ts);
    ts->tv_sec = (time_t)(at_ns / NS_PER_S);
    ts->tv_nsec = (long)(at_ns % NS_PER_S);
    return 0;
}

static unsigned port_of(const struct address *a)
{
    return ntohs(a->u.in.sin_port);
}

/* How often ${port} was connected to. */
static unsigned connects_to(unsigned port)
{
    unsigned n = 0;

    for (unsigned i = 0; i < atomic_load(&n_connects); i++)
        n += connects[i].port == port;
    return n;
}

/* ---- the checker, on its loop ---- */

static atomic_uint n_changes;
static struct {
    struct endpoint *endpoint;
    bool is_up;
} changes[100];
static atomic_bool remove_when_changed;

static void on_changed(void *cookie, struct endpoint *e, bool is_up)
{
    unsigned n = atomic_load(&n_changes);

    ck_assert_ptr_eq(cookie, &group_conf);
    ck_assert(loop_is_current(loop));
    ck_assert_uint_lt(n, ARRAY_LEN(changes));
    changes[n].endpoint = e;
    changes[n].is_up = is_up;
    if (atomic_load(&remove_when_changed))
        checker_remove(targets[e - endpoints]);
    atomic_store(&n_changes, n + 1);
}

static void do_create(void *arg)
{
    (void)arg;
    ck_assert_int_eq(checker_create(&checker, net, 1), 0);
    ck_assert_int_eq(checker_reserve(checker, max_under_way), 0);
    checker_set_limit(checker, max_under_way);
}

static void do_use(void *arg)
{
    struct checker_rules *rules;

    (void)arg;
    ck_assert_int_eq(checker_rules_create(&rules, &rules_conf), 0);
    checker_group_use(group, rules);
}

static void do_open(void *arg)
{
    (void)arg;
    ck_assert_int_eq(checker_group_create(&group, checker, &group_conf), 0);
    do_use(NULL);
}

static void do_add(void *arg)
{
    unsigned *n = arg;

    target_conf.endpoint = &endpoints[*n];
    if (!targets[*n])
        ck_assert_int_eq(checker_target_create(&targets[*n]), 0);
    ck_assert_int_eq(checker_add(targets[*n], group, &target_conf), 0);
}

static void do_add_all(void *arg)
{
    unsigned *n = arg;

    atomic_store(&still_at_ns, clock_now_ns());
    for (unsigned i = 0; i < *n; i++)
        do_add(&i);
    atomic_store(&still_at_ns, 0);
}

static void do_remove(void *arg)
{
    unsigned *n = arg;

    checker_remove(targets[*n]);
}

static void do_load(void *arg)
{
    checker_load(checker, arg);
}

static struct checker_stats stats;

static void do_stats(void *arg)
{
    unsigned *n = arg;

    checker_stats(targets[*n], &stats);
}

static void on_loop(void (*function)(void *), unsigned n)
{
    loop_runner_call(loop, function, &n);
}

static struct checker_load load_now(void)
{
    struct checker_load load;

    loop_runner_call(loop, do_load, &load);
    return load;
}

static void do_undecided(void *arg)
{
    unsigned *n = arg;

    *n = checker_group_undecided(group);
}

static unsigned undecided_now(void)
{
    unsigned n;

    loop_runner_call(loop, do_undecided, &n);
    return n;
}

static uint64_t checks_of(unsigned n)
{
    on_loop(do_stats, n);
    return stats.checks;
}

static bool has(unsigned n, enum endpoint_flag mark)
{
    return (endpoint_load(&endpoints[n]) & (uint32_t)mark) != 0;
}

static void set_address(unsigned n, const struct address *a)
{
    ck_assert_int_ge(endpoint_set_addresses(&endpoints[n], NULL, a, 1), 0);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    for (unsigned i = 0; i < ENDPOINTS; i++)
        endpoints[i] = (struct endpoint){.name = "a",
                                         .weight = 1,
                                         .load = &loads[i],
                                         .group = &group_of_all,
                                         .is_checked = true};
    max_under_way = 16;
    rules_conf =
        (struct checker_rules_conf){.check = {.timeout_ns = 5 * NS_PER_S},
                                    .health = {.rise = 2, .fall = 3, .interval_ns = INTERVAL_NS}};
    group_conf =
        (struct checker_group_conf){.name = "back", .changed = on_changed, .cookie = &group_conf};
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
}

/* Begin to check the first ${n} endpoints. */
static void start(unsigned n)
{
    on_loop(do_create, 0);
    on_loop(do_open, 0);
    on_loop(do_add_all, n);
}

static void teardown(void)
{
    if (loop_state(loop) != LOOP_TERMINATED)
        loop_runner_stop(loop);
    checker_destroy(checker);
    netloop_destroy(net);
    loop_destroy(loop);
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        checker_target_destroy(targets[i]);
        endpoint_close(&endpoints[i]);
    }
    ck_assert_uint_eq(process_descriptors(), before);
}

static int listen_again(const struct address *a)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, &a->u.sa, a->len), 0);
    ck_assert_int_eq(listen(fd, 100), 0);
    return fd;
}

/* ---- up and down ---- */

GROUP(checker, setup, teardown);

TEST(checker, listening_server_stays_up)
{
    struct address a;
    int listening = sockets_listen(&a, 5);

    set_address(0, &a);
    start(1);
    UNTIL(checks_of(0) >= 5);
    ck_assert(stats.is_up);
    ck_assert_uint_eq(stats.failed, 0);
    ck_assert_int_eq(stats.last, CHECK_PASSED);
    ck_assert_int_gt(stats.last_duration_ns, 0);
    ck_assert_uint_eq(endpoint_load(&endpoints[0]), 0);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    close(listening);
}

TEST(checker, a_server_without_a_weight_is_checked_and_not_counted_as_up)
{
    struct address a, other;
    int bound = sockets_bound(&a), all = sockets_listen(&other, 5);

    set_address(0, &a);
    set_address(1, &other);
    set_address(2, &other);
    atomic_store(&endpoints[2].weight, 0);
    start(3);
    UNTIL(atomic_load(&n_changes) == 1);
    EXPECT_LOG_LINES("server a: down: checks failed in a row: 3", 1);
    EXPECT_LOG_LINES("servers up: 1 of 2", 1);
    on_loop(do_stats, 2);
    UNTIL((on_loop(do_stats, 2), stats.checks > 0));
    close(bound);
    close(all);
}

/* 0: after `fall` checks; 1: after the first. */
TEST_EACH(checker, a_server_without_a_weight_that_is_down_is_no_warning, 2)
{
    struct address a;
    int bound = sockets_bound(&a);

    log_lines_capture(LOG_LEVEL_WARNING);
    if (_i == 1)
        rules_conf.health.initial = HEALTH_STARTS_CHECKED;
    for (unsigned i = 0; i < 2; i++) {
        set_address(i, &a);
        if (_i == 1)
            endpoint_set_flag(&endpoints[i], ENDPOINT_DOWN);
    }
    endpoints[1].name = "b";
    atomic_store(&endpoints[0].weight, 0);
    start(2);
    UNTIL(log_lines_with("server b: down: ") == 1);
    UNTIL((on_loop(do_stats, 0), stats.failed >= 3));
    ck_assert_uint_eq(log_lines_with("server a: down: "), 0);
    close(bound);
}

TEST(checker, first_check_takes_a_server_down_by_one_failure_and_later_checks_by_fall)
{
    struct address a;
    int bound = sockets_bound(&a), listening;

    atomic_store(&endpoints[0].is_checked, false);
    set_address(0, &a);
    start(1);
    UNTIL(atomic_load(&n_changes) == 1);
    ck_assert(!changes[0].is_up && has(0, ENDPOINT_DOWN));
    ck_assert(atomic_load(&endpoints[0].is_checked));
    EXPECT_LOG_LINES("server a: down: its first check failed: connection refused; servers up: 0 ",
                     1);
    listening = listen_again(&a);
    close(bound);
    UNTIL(atomic_load(&n_changes) == 2);
    close(listening); /* fall is 3 from here on */
    UNTIL(atomic_load(&n_changes) == 3);
    EXPECT_LOG_LINES("server a: down: checks failed in a row: 3, the last: connection refused", 1);
}

TEST(checker, server_goes_down_after_fall_failures_and_up_after_rise_successes)
{
    struct address a, other;
    int bound = sockets_bound(&a), listening, all = sockets_listen(&other, 5);

    set_address(0, &a);
    set_address(1, &other);
    start(2);
    UNTIL(atomic_load(&n_changes) == 1);
    ck_assert_ptr_eq(changes[0].endpoint, &endpoints[0]);
    ck_assert(!changes[0].is_up);
    ck_assert(has(0, ENDPOINT_DOWN));
    ck_assert_uint_ge(connects_to(port_of(&a)), 3);
    ck_assert_uint_eq(
        log_lines_with(
            "upstream back: server a: down: checks failed in a row: 3, the last: connection "
            "refused; servers up: 1 of 2"),
        1);
    listening = listen_again(&a);
    close(bound);
    UNTIL(atomic_load(&n_changes) == 2);
    ck_assert(changes[1].is_up);
    ck_assert(!has(0, ENDPOINT_DOWN));
    ck_assert(!has(0, ENDPOINT_WARMING)); /* slow_start_ns is 0 */
    ck_assert_uint_eq(
        log_lines_with("upstream back: server a: up: checks passed in a row: 2, it was down for "),
        1);
    EXPECT_LOG_LINES(" s; servers up: 2 of 2", 1);
    on_loop(do_stats, 0);
    ck_assert(stats.is_up);
    ck_assert_uint_ge(stats.failed, 3);
    ck_assert_int_gt(stats.since_at_ns, connects[0].at_ns);
    close(listening);
    close(all);
}

TEST(checker, a_wrong_answer_is_in_the_log)
{
    struct address a;
    int listening = sockets_listen(&a, 5), server;

    rules_conf.check.expect = (struct check_bytes){(const uint8_t *)"PONG", 4};
    rules_conf.health.fall = 1;
    set_address(0, &a);
    start(1);
    server = sockets_accept(listening);
    sockets_say(server, "-LOADING\r\n");
    sockets_end(server);
    UNTIL(atomic_load(&n_changes) == 1);
    ck_assert_uint_eq(
        log_lines_with(
            "server a: down: checks failed in a row: 1, the last: wrong answer: '-LOADING\r\n'; "
            "servers up: 0 of 1"),
        1);
    close(server);
    close(listening);
}

TEST(checker, server_that_comes_up_warms_for_the_slow_start_time)
{
    struct address a;
    int bound = sockets_bound(&a), listening;
    int64_t down_at_ns, since_at_ns;

    rules_conf.slow_start_ns = 150 * NS_PER_MS;
    set_address(0, &a);
    start(1);
    UNTIL(atomic_load(&n_changes) == 1);
    ck_assert(!has(0, ENDPOINT_WARMING));
    down_at_ns = clock_now_ns();
    listening = listen_again(&a);
    close(bound);
    UNTIL(atomic_load(&n_changes) == 2);
    since_at_ns = atomic_load(&endpoints[0].warming_since_ns);
    ck_assert_int_gt(since_at_ns, down_at_ns);
    ck_assert(has(0, ENDPOINT_WARMING) || since_ms(since_at_ns) >= 150);
    UNTIL(!has(0, ENDPOINT_WARMING));
    ck_assert_int_ge(since_ms(since_at_ns), 150);
    close(listening);
}

TEST(checker, server_up_from_the_start_does_not_warm)
{
    struct address a;
    int listening = sockets_listen(&a, 5);

    rules_conf.slow_start_ns = LATER_NS;
    set_address(0, &a);
    start(1);
    UNTIL(checks_of(0) >= 3);
    ck_assert(!has(0, ENDPOINT_WARMING));
    close(listening);
}

/* ---- when ---- */

/*
 * The shortest and the mean time between two connects to the same place, of those from ${from} to
 * ${to}.
 */
static int64_t gap_ns(unsigned from, unsigned to, int64_t *mean_ns)
{
    int64_t least_ns = INT64_MAX;

    for (unsigned i = from + 1; i <= to; i++) {
        int64_t ns = connects[i].at_ns - connects[i - 1].at_ns;

        least_ns = ns < least_ns ? ns : least_ns;
    }
    *mean_ns = (connects[to].at_ns - connects[from].at_ns) / (to - from);
    return least_ns;
}

/* How many of these times are shorter than ${ns}. */
static unsigned shorter_gaps(unsigned from, unsigned to, int64_t ns)
{
    unsigned n = 0;

    for (unsigned i = from + 1; i <= to; i++)
        n += connects[i].at_ns - connects[i - 1].at_ns < ns;
    return n;
}

TEST_EACH(checker, checks_are_at_least_an_interval_apart, 2)
{
    struct address a;
    int fd = _i ? sockets_bound(&a) : sockets_listen(&a, 5);
    int64_t mean_ns;

    rules_conf.health.jitter_percent = 50;
    set_address(0, &a);
    start(1);
    UNTIL(atomic_load(&n_connects) > 40);
    ck_assert_uint_eq(has(0, ENDPOINT_DOWN), (unsigned)_i);
    /*
     * connect(2) is some way behind the beginning that the interval counts from; on a busy machine
     * now and then far.
     */
    ck_assert_uint_le(shorter_gaps(0, 40, INTERVAL_NS - 5 * NS_PER_MS), 10);
    (void)gap_ns(0, 40, &mean_ns);
    ck_assert_int_ge(mean_ns, INTERVAL_NS + INTERVAL_NS / 8);
    ck_assert_int_lt(mean_ns, 10 * INTERVAL_NS);
    ck_assert_uint_eq(atomic_load(&most_under_way), 1);
    close(fd);
}

TEST(checker, between_the_states_the_fast_interval_applies)
{
    struct address a;
    int bound = sockets_bound(&a);
    int64_t began_at_ns = clock_now_ns();

    rules_conf.health.interval_ns = LATER_NS;
    rules_conf.health.fast_interval_ns = INTERVAL_NS;
    set_address(0, &a);
    start(1);
    UNTIL(atomic_load(&n_changes) == 1);
    ck_assert_int_ge(since_ms(began_at_ns), 30);
    PAUSE_MS(100);
    ck_assert_uint_eq(atomic_load(&n_connects), 3); /* it is down for certain: no hurry */
    close(bound);
}

TEST(checker, check_longer_than_the_interval_does_not_overlap_the_next)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);
    int64_t mean_ns;

    rules_conf.check.timeout_ns = 3 * INTERVAL_NS;
    set_address(0, &a);
    start(1);
    UNTIL(atomic_load(&n_connects) > 5);
    ck_assert_int_ge(gap_ns(0, 5, &mean_ns), 3 * INTERVAL_NS - 5 * NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&most_under_way), 1);
    UNTIL(has(0, ENDPOINT_DOWN));
    EXPECT_LOG_LINES("the last: timed out connecting;", 1);
    close(filler);
    close(deaf);
}

/* In one task: a check that has begun would have another instant. */
static void do_add_and_note(void *arg)
{
    int64_t *first_ns = arg;
    unsigned n = 200;

    do_add_all(&n);
    for (unsigned i = 0; i < n; i++)
        first_ns[i] = targets[i]->due_at_ns - targets[0]->due_at_ns;
}

TEST(checker, the_first_checks_are_spread_over_the_interval)
{
    struct address a;
    int listening = sockets_listen(&a, 5);
    unsigned quarters[4] = {0};
    int64_t first_ns[200];

    rules_conf.health.interval_ns = LATER_NS;
    for (unsigned i = 0; i < 200; i++)
        set_address(i, &a);
    on_loop(do_create, 0);
    on_loop(do_open, 0);
    loop_runner_call(loop, do_add_and_note, first_ns);
    for (unsigned i = 0; i < 200; i++) {
        ck_assert(first_ns[i] >= 0 && first_ns[i] < LATER_NS);
        quarters[first_ns[i] / (LATER_NS / 4)]++;
    }
    for (unsigned q = 0; q < 4; q++)
        ck_assert_uint_ge(quarters[q], 48);
    UNTIL(atomic_load(&n_connects) >= 1);
    close(listening);
}

/* ---- many ---- */

static uint64_t checks_of_all(void)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < ENDPOINTS; i++) {
        all += checks_of(i);
        ck_assert_msg(stats.failed == 0, "outcome %d", stats.last);
    }
    return all;
}

/* Which part of the checks that are due in two seconds begins in them. */
static double part_of_due_checks(void)
{
    int64_t began_at_ns = clock_now_ns();
    uint64_t earlier = checks_of_all();

    PAUSE_MS(2000);
    return (double)(checks_of_all() - earlier) /
           (ENDPOINTS * (double)since_ms(began_at_ns) / 1000 / 1.05);
}

/* The best of several: the machine may be busy. */
TEST(checker, the_interval_holds_for_a_thousand_servers_and_few_checks_at_a_time)
{
    struct address a;
    int listening = sockets_listen(&a, 1000);
    double part, most = 0;

    rules_conf.health.interval_ns = NS_PER_S;
    rules_conf.health.jitter_percent = 10;
    rules_conf.check.timeout_ns = LATER_NS; /* a busy machine is late, or its listen queue full */
    max_under_way = 8;
    for (unsigned i = 0; i < ENDPOINTS; i++)
        set_address(i, &a);
    start(ENDPOINTS);
    for (unsigned i = 0; i < ENDPOINTS; i++)
        UNTIL(checks_of(i) >= 1);
    for (unsigned i = 0; i < 5 && most < 0.7; i++) {
        part = part_of_due_checks();
        most = part > most ? part : most;
        ck_assert_double_lt(part, 1.3);
    }
    ck_assert_double_ge(most, 0.7);
    ck_assert_uint_le(atomic_load(&most_under_way), 8);
    close(listening);
}

static int by_first(const void *a, const void *b)
{
    int64_t x = health_first_ns(&rules_conf.health, *(const unsigned *)a);
    int64_t y = health_first_ns(&rules_conf.health, *(const unsigned *)b);

    return (x > y) - (x < y);
}

/* 20 addresses at which nobody answers; the last number of address i is i + 1. */
static int listen_deaf_everywhere(struct address *list, int *filler)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sockets_loopback(&list[0], 0);
    list[0].u.in.sin_addr.s_addr = htonl(INADDR_ANY);
    ck_assert_int_eq(bind(fd, &list[0].u.sa, list[0].len), 0);
    ck_assert_int_eq(getsockname(fd, &list[0].u.sa, &list[0].len), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    for (unsigned i = 0; i < 20; i++) {
        list[i] = list[0];
        list[i].u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
    }
    *filler = sockets_connect(&list[0]);
    return fd;
}

TEST(checker, checks_beyond_the_limit_wait_in_the_order_in_which_they_are_due)
{
    struct address list[20];
    int filler, deaf = listen_deaf_everywhere(list, &filler);
    unsigned order[20];

    max_under_way = 2;
    rules_conf.check.timeout_ns = 30 * NS_PER_MS;
    for (unsigned i = 0; i < 20; i++) {
        order[i] = i;
        set_address(i, &list[i]);
    }
    qsort(order, 20, sizeof(order[0]), by_first);
    start(20);
    UNTIL(atomic_load(&n_connects) >= 60);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(connects[i].host, 1 + order[i]);
    for (unsigned i = 0; i < 40; i++) /* nobody comes again before all others came */
        for (unsigned other = i + 1; other < i + 15; other++)
            ck_assert_uint_ne(connects[i].host, connects[other].host);
    ck_assert_uint_eq(atomic_load(&most_under_way), 2);
    ck_assert_int_ge(connects[40].at_ns - connects[0].at_ns, 20 * 30 * NS_PER_MS);
    close(filler);
    close(deaf);
}

/* ---- where ---- */

TEST(checker, server_of_an_unresolved_name_is_not_checked)
{
    struct address a;
    int listening = sockets_listen(&a, 5);

    start(1);
    PAUSE_MS(100);
    ck_assert_uint_eq(checks_of(0), 0);
    ck_assert(stats.is_up);
    ck_assert_uint_eq(load_now().under_way, 0);
    set_address(0, &a);
    UNTIL(checks_of(0) >= 2);
    ck_assert_uint_eq(stats.failed, 0);
    close(listening);
}

TEST(checker, a_new_address_of_the_name_is_used_at_once)
{
    struct address a, b;
    int first = sockets_listen(&a, 5), second = sockets_listen(&b, 5);

    set_address(0, &a);
    start(1);
    UNTIL(connects_to(port_of(&a)) >= 2);
    set_address(0, &b);
    UNTIL(connects_to(port_of(&b)) >= 2);
    close(first);
    close(second);
}

TEST_EACH(checker, configured_check_address_and_port_replace_those_of_the_endpoint, 3)
{
    struct address served, own, asked;
    int listening = sockets_listen(&own, 5);

    sockets_loopback(&served, 9);
    asked = own;
    if (_i == 0) { /* both */
        asked.u.in.sin_port = htons(9);
        target_conf.address = &asked;
    } else if (_i == 1) { /* the address */
        target_conf.address = &asked;
    }
    if (_i != 1)
        target_conf.port = port_of(&own);
    set_address(0, &served);
    start(1);
    UNTIL(checks_of(0) >= 3);
    ck_assert_uint_eq(stats.failed, 0);
    ck_assert_uint_eq(connects_to(9), 0);
    ck_assert_uint_eq(port_of(&atomic_load(&endpoints[0].addresses)->list[0]), 9);
    close(listening);
}

TEST(checker, check_of_an_ipv6_address_can_have_its_own_port)
{
    struct address served, v6 = {.len = sizeof(v6.u.in6)};
    int listening = sockets_listen(&served, 5);

    /*
     * An IPv4-mapped one leads to the IPv4 listener, so that this works on a host without IPv6, if
     * it has the family.
     */
    v6.u.in6.sin6_family = AF_INET6;
    v6.u.in6.sin6_port = htons(9);
    ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.u.in6.sin6_addr), 1);
    set_address(0, &v6);
    target_conf.port = port_of(&served);
    start(1);
    UNTIL(checks_of(0) >= 2);
    ck_assert_uint_eq(stats.failed, 0);
    close(listening);
}

static atomic_uint n_passed;

static void on_passed(void *cookie, struct endpoint *e)
{
    (void)cookie;
    ck_assert_ptr_eq(e, &endpoints[0]);
    atomic_fetch_add(&n_passed, 1);
}

/*
 * 0: checked where sessions connect; 1: the same, as configured; 2: at another port; 3: at another
 * address.
 */
TEST_EACH(checker, only_a_check_where_sessions_connect_is_like_a_session, 4)
{
    struct address served, other;
    int listening = sockets_listen(&served, 50), elsewhere;

    other = served;
    other.u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    elsewhere = _i == 3 ? listen_again(&other) : sockets_listen(&other, 50);
    set_address(0, &served);
    target_conf.address = _i == 1 ? &served : _i == 3 ? &other : NULL;
    target_conf.port = _i == 0 ? 0 : _i == 2 ? port_of(&other) : port_of(&served);
    group_conf.passed = on_passed;
    start(1);
    UNTIL(checks_of(0) >= 3);
    ck_assert_uint_eq(stats.failed, 0);
    ck_assert_int_eq(atomic_load(&n_passed) > 0, _i < 2);
    close(listening);
    close(elsewhere);
}

/* ---- the first state ---- */

static atomic_uint n_decided;

static void on_decided(void *cookie)
{
    ck_assert_ptr_eq(cookie, &group_conf);
    atomic_fetch_add(&n_decided, 1);
}

TEST(checker, endpoint_checked_first_is_used_after_its_first_passed_check)
{
    struct address a, b;
    int listening = sockets_listen(&a, 5), bound = sockets_bound(&b);

    group_conf.decided = on_decided;
    rules_conf.health.initial = HEALTH_STARTS_CHECKED;
    rules_conf.health.interval_ns = LATER_NS;
    set_address(0, &a);
    set_address(1, &b);
    endpoint_set_flag(&endpoints[0], ENDPOINT_DOWN);
    endpoint_set_flag(&endpoints[1], ENDPOINT_DOWN);
    start(2); /* both are checked at once */
    UNTIL(atomic_load(&n_decided) == 1);
    ck_assert(!has(0, ENDPOINT_DOWN));
    ck_assert(has(1, ENDPOINT_DOWN));
    ck_assert_uint_eq(undecided_now(), 0);
    EXPECT_LOG_LINES("upstream back: server a: up: its first check passed; servers up: ", 1);
    EXPECT_LOG_LINES("upstream back: server a: down: its first check failed: "
                     "connection refused; servers up: ",
                     1);
    close(listening);
    close(bound);
}

TEST(checker, endpoint_that_starts_down_is_used_after_rise_checks)
{
    struct address a;
    int listening = sockets_listen(&a, 5);

    rules_conf.health.initial = HEALTH_STARTS_DOWN;
    rules_conf.health.rise = 3;
    set_address(0, &a);
    endpoint_set_flag(&endpoints[0], ENDPOINT_DOWN);
    start(1);
    UNTIL(!has(0, ENDPOINT_DOWN));
    ck_assert_uint_ge(checks_of(0), 3);
    ck_assert_uint_eq(undecided_now(), 0);
    close(listening);
}

static void do_look(void *arg)
{
    unsigned *n = arg;

    checker_retry_now(targets[*n]);
}

TEST(checker, endpoint_without_an_address_is_checked_as_soon_as_it_is_set)
{
    struct address a;
    int listening = sockets_listen(&a, 5);

    rules_conf.health.initial = HEALTH_STARTS_CHECKED;
    rules_conf.health.interval_ns = LATER_NS;
    endpoint_set_flag(&endpoints[0], ENDPOINT_DOWN);
    start(1);
    UNTIL(load_now().waiting == 0);
    ck_assert_uint_eq(undecided_now(), 1);
    set_address(0, &a);
    PAUSE_MS(20);
    on_loop(do_look, 0);
    UNTIL(!has(0, ENDPOINT_DOWN));
    close(listening);
}

TEST(checker, new_address_of_an_endpoint_that_waits_for_a_slot_does_not_disturb_the_wait)
{
    struct address a, served;
    int filler, deaf = sockets_listen_deaf(&a, &filler), listening = sockets_listen(&served, 5);

    max_under_way = 1;
    rules_conf.check.timeout_ns = LATER_NS;
    rules_conf.health.initial = HEALTH_STARTS_CHECKED;
    endpoint_set_flag(&endpoints[0], ENDPOINT_DOWN);
    endpoint_set_flag(&endpoints[1], ENDPOINT_DOWN);
    set_address(1, &a);
    start(1);
    PAUSE_MS(20); /* it was due, and had no address */
    on_loop(do_add, 1);
    UNTIL(load_now().under_way == 1 && load_now().waiting == 1);
    set_address(0, &served);
    on_loop(do_look, 0);
    PAUSE_MS(20);
    on_loop(do_remove, 1); /* its slot becomes free */
    UNTIL(!has(0, ENDPOINT_DOWN));
    close(filler);
    close(deaf);
    close(listening);
}

/* ---- what is ours ---- */

TEST(checker, without_descriptors_checks_wait_and_no_server_goes_down)
{
    struct address a;
    int listening = sockets_listen(&a, 5);
    uint64_t checks;
    int64_t began_at_ns;
    unsigned from;

    for (unsigned i = 0; i < 30; i++)
        set_address(i, &a);
    atomic_store(&connect_error, EMFILE);
    start(30);
    UNTIL(load_now().waiting == 30);
    from = atomic_load(&n_connects);
    began_at_ns = clock_now_ns();
    PAUSE_MS(300);
    UNTIL(load_now().waiting == 30); /* fewer while they try */
    /* It does not try all the time. */
    ck_assert_uint_le(atomic_load(&n_connects) - from, (unsigned)since_ms(began_at_ns));
    on_loop(do_stats, 0);
    ck_assert(stats.is_up);
    ck_assert_uint_ge(stats.undecided, 1);
    ck_assert_uint_eq(stats.failed, 0);
    ck_assert_int_eq(stats.last, CHECK_NO_RESOURCES);
    ck_assert_uint_eq(
        log_lines_with("health checks: paused: Too many open files; servers keep their state"), 1);
    checks = stats.checks;
    atomic_store(&connect_error, 0);
    UNTIL(checks_of(0) > checks + 3);
    UNTIL(log_lines_with("health checks: resumed after ") == 1);
    EXPECT_LOG_LINES("health checks: paused", 1);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    close(listening);
}

static void do_end_of_lack(void *arg)
{
    unsigned *connected = arg;

    atomic_store(&connect_error, 0);
    *connected = atomic_load(&n_connects);
}

TEST(checker, checks_that_waited_for_descriptors_keep_their_order)
{
    struct address list[20];
    int filler, deaf = listen_deaf_everywhere(list, &filler);
    unsigned order[20], from;

    max_under_way = 4;
    rules_conf.check.timeout_ns = 10 * NS_PER_MS;
    for (unsigned i = 0; i < 20; i++) {
        order[i] = i;
        set_address(i, &list[i]);
    }
    qsort(order, 20, sizeof(order[0]), by_first);
    atomic_store(&connect_error, EMFILE);
    start(20);
    UNTIL(load_now().waiting == 20 && atomic_load(&n_connects) > 8);
    loop_runner_call(loop, do_end_of_lack, &from);
    UNTIL(atomic_load(&n_connects) >= from + 20);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(connects[from + i].host, 1 + order[i]);
    close(filler);
    close(deaf);
}

TEST(checker, lack_of_ports_to_one_server_fails_no_check_and_delays_no_other)
{
    struct address a, b;
    int first = sockets_listen(&a, 5), second = sockets_listen(&b, 5);

    set_address(0, &a);
    set_address(1, &b);
    atomic_store(&connect_error_port, port_of(&a));
    atomic_store(&connect_error, EADDRNOTAVAIL);
    start(2);
    UNTIL(checks_of(0) >= 5 && checks_of(1) >= 5);
    ck_assert_uint_eq(stats.undecided, 0);
    on_loop(do_stats, 0);
    ck_assert_uint_eq(stats.undecided, stats.checks);
    ck_assert(stats.is_up);
    EXPECT_LOG_LINES("upstream back: server a: cannot be checked: no local port or "
                     "address to connect from; it keeps its state",
                     1);
    close(first);
    close(second);
}

/* ---- life ---- */

GROUP(life, setup, teardown);

TEST(life, removed_endpoint_ends_its_check_without_an_outcome)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);
    unsigned descriptors;

    set_address(0, &a);
    rules_conf.check.timeout_ns = LATER_NS;
    rules_conf.health.fall = 1;
    on_loop(do_create, 0);
    on_loop(do_open, 0);
    descriptors = process_descriptors();
    on_loop(do_add_all, 1);
    UNTIL(load_now().under_way == 1);
    on_loop(do_remove, 0);
    UNTIL(load_now().under_way == 0);
    ck_assert_uint_eq(load_now().targets, 0);
    ck_assert_uint_eq(process_descriptors(), descriptors);
    PAUSE_MS(200);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    ck_assert_uint_eq(atomic_load(&n_connects), 1);
    close(filler);
    close(deaf);
}

TEST(life, removing_an_endpoint_that_waits_for_its_answer_closes_the_connection)
{
    struct address a;
    int listening = sockets_listen(&a, 5), server;

    rules_conf.check.timeout_ns = LATER_NS;
    rules_conf.check.expect = (struct check_bytes){(const uint8_t *)"PONG", 4};
    set_address(0, &a);
    start(1);
    server = sockets_accept(listening);
    on_loop(do_remove, 0);
    sockets_hear_end(server);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    close(server);
    close(listening);
}

TEST(life, endpoint_that_waits_for_a_slot_can_be_removed)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    max_under_way = 1;
    rules_conf.health.interval_ns = NS_PER_MS;
    for (unsigned i = 0; i < 3; i++)
        set_address(i, &a);
    start(3);
    UNTIL(load_now().waiting == 2);
    on_loop(do_remove, 1);
    ck_assert_uint_eq(load_now().waiting, 1);
    on_loop(do_remove, 2);
    on_loop(do_remove, 0);
    UNTIL(load_now().under_way == 0);
    ck_assert_uint_eq(load_now().waiting, 0);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&n_connects), 1);
    close(filler);
    close(deaf);
}

TEST(life, endpoint_can_be_removed_in_its_down_callback)
{
    struct address a;
    int bound = sockets_bound(&a);

    atomic_store(&remove_when_changed, true);
    set_address(0, &a);
    start(1);
    UNTIL(atomic_load(&n_changes) == 1);
    ck_assert_uint_eq(load_now().targets, 0);
    ck_assert(has(0, ENDPOINT_DOWN));
    PAUSE_MS(60);
    ck_assert_uint_eq(atomic_load(&n_connects), 3);
    close(bound);
}

TEST(life, all_endpoints_can_be_removed_in_any_state)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    max_under_way = 2;
    for (unsigned i = 0; i < 10; i++)
        set_address(i, &a);
    start(10);
    UNTIL(load_now().waiting == 8);
    for (unsigned i = 0; i < 10; i++)
        on_loop(do_remove, i);
    ck_assert_uint_eq(load_now().targets, 0);
    ck_assert_uint_eq(load_now().waiting, 0);
    UNTIL(load_now().under_way == 0);
    on_loop(do_add_all, 1); /* there is space for others */
    UNTIL(load_now().under_way == 1);
    close(filler);
    close(deaf);
}

TEST(life, the_end_of_the_loop_ends_the_checks)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    max_under_way = 5;
    for (unsigned i = 0; i < 10; i++)
        set_address(i, &a);
    start(10);
    UNTIL(load_now().waiting == 5 && load_now().under_way == 5);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    ck_assert_uint_eq(atomic_load(&n_connects), 5);
    close(filler);
    close(deaf); /* teardown() counts descriptors */
}

TEST(life, end_of_the_loop_closes_checks_that_wait_for_an_answer)
{
    struct address a;
    int listening = sockets_listen(&a, 5), server;

    rules_conf.check.send = (struct check_bytes){(const uint8_t *)"PING", 4};
    rules_conf.check.expect = (struct check_bytes){(const uint8_t *)"PONG", 4};
    set_address(0, &a);
    start(1);
    server = sockets_accept(listening);
    sockets_hear(server, "PING");
    loop_runner_stop(loop);
    sockets_hear_end(server);
    close(server);
    close(listening);
}

static atomic_int added_late;

static void run_late(struct task *t)
{
    struct checker_target_conf late = {.endpoint = &endpoints[0]};

    (void)t;
    ck_assert_int_eq(checker_target_create(&targets[0]), 0);
    atomic_store(&added_late, checker_add(targets[0], group, &late));
}

static const struct task_type late_type = {.name = "late", .run = run_late, .drop = run_late};

static void add_at_stop(void *arg)
{
    loop_at_stop(loop, arg);
}

TEST(life, endpoint_cannot_be_added_while_the_loop_stops)
{
    static struct task late = {.type = &late_type};

    start(0);
    loop_runner_call(loop, add_at_stop, &late);
    loop_runner_stop(loop);
    ck_assert_int_eq(atomic_load(&added_late), -ESHUTDOWN);
}

TEST(life, checker_whose_loop_never_ran_can_be_destroyed)
{
    do_create(NULL);
    loop_stop(loop, 0, 0);
}

TEST_ABORTS(life, adding_on_another_thread_than_the_loops_is_a_bug)
{
    start(0);
    do_add(&(unsigned){0});
}
