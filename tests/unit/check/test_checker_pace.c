/* check/checker: when checks are made, how many at a time, and what they wait for. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "check/checker_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/check/checker_servers.h"

GROUP(checker, setup, teardown);

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
