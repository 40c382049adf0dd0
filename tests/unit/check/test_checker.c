/*
 * check/checker: which server is looked at when, what is made of it, and that nothing is left
 * when it ends.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "check/checker_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/check/checker_servers.h"

/* How often ${port} was connected to. */
static unsigned connects_to(unsigned port)
{
    unsigned n = 0;

    for (unsigned i = 0; i < atomic_load(&n_connects); i++)
        n += connects[i].port == port;
    return n;
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

TEST(checker, a_target_can_have_its_own_interval_and_thresholds)
{
    struct address served;
    int listening = sockets_listen(&served, 50);

    set_address(0, &served);
    rules_conf.health.interval_ns = LATER_NS;
    rules_conf.health.fast_interval_ns = LATER_NS;
    rules_conf.health.fall = 1000;
    target_conf.interval_ns = INTERVAL_NS;
    target_conf.fall = 2;
    target_conf.rise = 3;
    start(1);
    UNTIL(checks_of(0) >= 3);
    ck_assert_uint_eq(stats.failed, 0);
    close(listening);
    UNTIL(has(0, ENDPOINT_DOWN));
    on_loop(do_stats, 0);
    ck_assert_uint_ge(stats.failed, 2);
    listening = listen_again(&served);
    UNTIL(!has(0, ENDPOINT_DOWN));
    EXPECT_LOG_LINES("up: checks passed in a row: 3", 1);
    close(listening);
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

static void on_passed(void *cookie, struct endpoint *e, bool as_sessions)
{
    if (!as_sessions)
        return;
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
