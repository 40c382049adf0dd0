/*
 * check/checker: groups get other rules, come and go while checks run, and more or fewer checks
 * run at once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/check/checker_on_loop.h"

#define SERVERS     6
#define INTERVAL_NS (10 * NS_PER_MS)

static atomic_uint n_changes;

static void on_changed(void *cookie, struct endpoint *e, bool is_up)
{
    (void)cookie;
    (void)e;
    (void)is_up;
    atomic_fetch_add(&n_changes, 1);
}

/* ---- on the loop ---- */

static void do_limit(void *arg)
{
    unsigned *n = arg;

    ck_assert_int_eq(checker_reserve(checker, *n), 0);
    checker_set_limit(checker, *n);
}

static void do_open(void *arg)
{
    struct checker_group_conf conf = {.name = "back", .changed = on_changed};

    ck_assert_int_eq(checker_group_create(&group, checker, &conf), 0);
    do_use(arg);
}

static void do_add(void *arg)
{
    unsigned *n = arg;
    struct checker_target_conf conf = {.endpoint = &endpoints[*n]};

    ck_assert_int_eq(checker_add(targets[*n], group, &conf), 0);
}

static void do_close(void *arg)
{
    (void)arg;
    checker_group_close(group);
}

static bool is_down(unsigned n)
{
    return (endpoint_load(&endpoints[n]) & ENDPOINT_DOWN) != 0;
}

static void setup(void)
{
    loop_setup();
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert_int_eq(checker_target_create(&targets[i]), 0);
    rules_conf =
        (struct checker_rules_conf){.check = {.timeout_ns = LATER_NS},
                                    .health = {.rise = 1, .fall = 1, .interval_ns = INTERVAL_NS}};
    ck_assert_int_eq(checker_create(&checker, net, 1), 0);
    on_loop(do_limit, 4);
}

/* Begin to check the first ${n} endpoints. */
static void start(unsigned n)
{
    on_loop(do_open, 0);
    for (unsigned i = 0; i < n; i++)
        on_loop(do_add, i);
}

/* ---- rules ---- */

GROUP(rules, setup, teardown);

TEST(rules, health_and_statistics_are_kept)
{
    struct address a;
    int bound = sockets_bound(&a);
    int64_t since_at_ns;
    uint64_t checks;

    set_address(0, &a);
    start(1);
    UNTIL(is_down(0));
    UNTIL(checks_of(0) >= 3);
    checks = stats.checks;
    since_at_ns = stats.since_at_ns;
    rules_conf.health.initial = HEALTH_STARTS_CHECKED;
    rules_conf.health.rise = 2;
    on_loop(do_use, 0);
    ck_assert_uint_ge(checks_of(0), checks);
    ck_assert_int_eq(stats.since_at_ns, since_at_ns);
    ck_assert_uint_eq(undecided_now(), 0);
    ck_assert(is_down(0));
    UNTIL(checks_of(0) > checks);
    ck_assert_uint_eq(atomic_load(&n_changes), 1);
    close(bound);
}

TEST(rules, a_shorter_interval_applies_at_once)
{
    struct address a;
    int listening = sockets_listen(&a, 5);

    rules_conf.health.interval_ns = LATER_NS;
    set_address(0, &a);
    set_address(1, &a);
    start(2); /* the first is due at once */
    UNTIL(checks_of(0) == 1);
    ck_assert_uint_eq(checks_of(1), 0);
    rules_conf.health.interval_ns = INTERVAL_NS;
    on_loop(do_use, 0);
    UNTIL(checks_of(0) >= 3 && checks_of(1) >= 3);
    close(listening);
}

TEST(rules, a_longer_interval_begins_with_the_next_check)
{
    struct address a;
    int listening = sockets_listen(&a, 5);
    uint64_t checks;

    set_address(0, &a);
    start(1);
    UNTIL(checks_of(0) >= 1);
    rules_conf.health.interval_ns = LATER_NS;
    on_loop(do_use, 0);
    checks = checks_of(0);
    PAUSE_MS(100);
    ck_assert_uint_le(checks_of(0), checks + 2); /* under way, and due */
    close(listening);
}

TEST(rules, lower_threshold_counts_the_failures_so_far)
{
    struct address a;
    int bound = sockets_bound(&a);
    char line[64];

    rules_conf.health.fall = 1000000;
    set_address(0, &a);
    start(1);
    UNTIL(checks_of(0) >= 5);
    ck_assert(!is_down(0));
    rules_conf.health.fall = 4;
    rules_conf.health.interval_ns = LATER_NS; /* behind the next: there are no four more */
    on_loop(do_use, 0);
    UNTIL(is_down(0));
    on_loop(do_stats, 0);
    ck_assert_uint_gt(stats.failed, 5); /* the line has their number, not the threshold */
    snprintf(line, sizeof(line), "checks failed in a row: %" PRIu64 ", the last: ", stats.failed);
    EXPECT_LOG_LINES(line, 1);
    close(bound);
}

/* The text of the first rules is gone when nothing needs them. */
TEST(rules, check_under_way_keeps_the_rules_that_it_began_with)
{
    struct address a;
    int listening = sockets_listen(&a, 5), server, next;
    uint8_t *expected;

    ck_assert_int_eq(arena_create(&rules_conf.memory), 0);
    expected = arena_alloc(rules_conf.memory, 4, 1);
    memcpy(expected, "PONG", 4);
    rules_conf.check.expect = (struct check_bytes){expected, 4};
    set_address(0, &a);
    start(1);
    arena_release(rules_conf.memory);
    server = sockets_accept(listening);
    rules_conf.memory = NULL;
    rules_conf.check.expect = (struct check_bytes){(const uint8_t *)"MORE", 4};
    on_loop(do_use, 0);
    sockets_say(server, "PONG");
    sockets_hear_end(server);
    next = sockets_accept(listening);
    ck_assert_uint_eq(checks_of(0), 1);
    ck_assert_uint_eq(stats.failed, 0);
    sockets_say(next, "MORE");
    sockets_hear_end(next);
    UNTIL(checks_of(0) == 2);
    ck_assert_uint_eq(stats.failed, 0);
    close(server);
    close(next);
    close(listening);
}

/* 0: it was up; 1: it was down */
TEST_EACH(rules, added_server_starts_with_its_current_flags, 2)
{
    struct address a;
    int listening = sockets_listen(&a, 5);
    bool down;

    rules_conf.health.initial = _i == 0 ? HEALTH_STARTS_CHECKED : HEALTH_STARTS_UP;
    rules_conf.health.rise = 2;
    if (_i == 1)
        (void)endpoint_set_flag(&endpoints[0], ENDPOINT_DOWN);
    set_address(0, &a);
    start(1);
    ck_assert_uint_eq(undecided_now(), 0);
    down = is_down(0);
    ck_assert(_i == 0 ? !down : down || checks_of(0) >= 2);
    if (_i == 1) {
        UNTIL(!is_down(0));
        ck_assert_uint_ge(checks_of(0), 2);
        close(listening);
    } else {
        close(listening);
        UNTIL(is_down(0));
    }
}

static int create_rules(void *cookie)
{
    return checker_rules_create(cookie, &rules_conf);
}

TEST(rules, creating_without_memory_fails)
{
    struct checker_rules *rules;

    ck_assert_uint_eq(fault_each_allocation(create_rules, &rules), 3);
    checker_rules_release(rules);
    checker_rules_release(NULL);
}

/* ---- groups ---- */

GROUP(groups, setup, teardown);

TEST(groups, closing_a_group_removes_its_servers_and_ends_their_checks)
{
    struct address a, served;
    int filler, deaf = sockets_listen_deaf(&a, &filler), listening = sockets_listen(&served, 5);
    unsigned descriptors = process_descriptors();

    for (unsigned i = 0; i < SERVERS; i++)
        set_address(i, &a);
    start(SERVERS);
    UNTIL(load_now().under_way == 4 && load_now().waiting == SERVERS - 4);
    on_loop(do_close, 0);
    UNTIL(load_now().under_way == 0);
    ck_assert_uint_eq(load_now().targets, 0);
    ck_assert_uint_eq(load_now().waiting, 0);
    ck_assert_uint_eq(process_descriptors(), descriptors);
    ck_assert(!checker_has(targets[0]));
    set_address(0, &served);
    start(1); /* a new one */
    UNTIL(checks_of(0) >= 2);
    ck_assert_uint_eq(stats.failed, 0);
    close(filler);
    close(deaf);
    close(listening);
}

TEST(groups, group_without_servers_can_be_closed)
{
    on_loop(do_open, 0);
    on_loop(do_close, 0);
    ck_assert_uint_eq(load_now().targets, 0);
}

/* ---- at a time ---- */

GROUP(limit, setup, teardown);

TEST(limit, raised_limit_starts_waiting_checks_at_once)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    for (unsigned i = 0; i < SERVERS; i++)
        set_address(i, &a);
    on_loop(do_limit, 1);
    start(SERVERS);
    UNTIL(load_now().under_way == 1 && load_now().waiting == SERVERS - 1);
    on_loop(do_limit, SERVERS);
    ck_assert_uint_eq(load_now().under_way, SERVERS);
    ck_assert_uint_eq(load_now().waiting, 0);
    close(filler);
    close(deaf);
}

TEST(limit, lowered_limit_applies_when_checks_under_way_end)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    rules_conf.check.timeout_ns = 50 * NS_PER_MS;
    for (unsigned i = 0; i < SERVERS; i++)
        set_address(i, &a);
    start(SERVERS);
    UNTIL(load_now().under_way == 4);
    on_loop(do_limit, 1);
    UNTIL(load_now().under_way == 1);
    for (int64_t at_ns = clock_now_ns(); since_ms(at_ns) < 200;)
        ck_assert_uint_le(load_now().under_way, 1);
    on_loop(do_limit, 0);
    UNTIL(load_now().under_way == 0);
    ck_assert_uint_gt(load_now().waiting, 0);
    close(filler);
    close(deaf);
}

static int reserve(void *cookie)
{
    (void)cookie;
    return checker_reserve(checker, 100);
}

TEST(limit, failed_allocation_keeps_the_limit)
{
    struct address a;
    int listening = sockets_listen(&a, 5);

    ck_assert_uint_eq(fault_each_allocation(reserve, NULL), 1);
    set_address(0, &a);
    start(1);
    UNTIL(checks_of(0) >= 2);
    close(listening);
}
