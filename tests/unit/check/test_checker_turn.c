/*
 * check/checker_turn: groups of servers take turns, and none fills all slots while others have
 * something due.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#include "check/checker.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define ENDPOINTS 300
#define SLOTS     8
#define LONG_NS   (600 * NS_PER_S)

struct group {
    struct checker_group *group;
    struct checker_target *targets[ENDPOINTS];
    struct checker_rules_conf conf;
    const char *name;
    _Atomic uint64_t *n_late;
    const struct address *at;
    unsigned n;
};

static struct loop *loop;
static struct netloop *net;
static struct checker *checker;
static struct endpoint endpoints[ENDPOINTS];
static struct checker_target *targets[ENDPOINTS];
static _Atomic uint32_t loads[ENDPOINTS];
static struct endpoint_group group_of_all;
static unsigned n_endpoints;
static _Atomic uint64_t n_late;
static struct address deaf, served;
static int listening[2], filler;

static void do_create(void *arg)
{
    (void)arg;
    ck_assert_int_eq(checker_create(&checker, net, 1), 0);
    ck_assert_int_eq(checker_reserve(checker, SLOTS), 0);
    checker_set_limit(checker, SLOTS);
}

/* A group whose servers do not answer: a listener with a full queue. */
static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    for (unsigned i = 0; i < ENDPOINTS; i++)
        endpoints[i] = (struct endpoint){.name = "a", .load = &loads[i], .group = &group_of_all};
    listening[0] = sockets_listen(&deaf, 0);
    filler = sockets_connect(&deaf);
    listening[1] = sockets_listen(&served, 100);
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    loop_runner_call(loop, do_create, NULL);
}

static void teardown(void)
{
    loop_runner_stop(loop);
    checker_destroy(checker);
    netloop_destroy(net);
    loop_destroy(loop);
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        checker_target_destroy(targets[i]);
        endpoint_close(&endpoints[i]);
    }
    close(filler);
    close(listening[0]);
    close(listening[1]);
}

static void do_open(void *arg)
{
    struct group *g = arg;
    struct checker_group_conf group_conf = {.name = g->name, .n_late = g->n_late};
    struct checker_rules *rules;

    ck_assert_int_eq(checker_group_create(&g->group, checker, &group_conf), 0);
    ck_assert_int_eq(checker_rules_create(&rules, &g->conf), 0);
    checker_group_use(g->group, rules);
    for (unsigned i = 0; i < g->n; i++, n_endpoints++) {
        struct checker_target_conf conf = {.endpoint = &endpoints[n_endpoints]};

        ck_assert_int_ge(endpoint_set_addresses(&endpoints[n_endpoints], NULL, g->at, 1), 0);
        ck_assert_int_eq(checker_target_create(&targets[n_endpoints]), 0);
        g->targets[i] = targets[n_endpoints];
        ck_assert_int_eq(checker_add(g->targets[i], g->group, &conf), 0);
    }
}

/* ${n} servers at ${at}. */
static void prepare(struct group *g, const struct address *at, unsigned n)
{
    *g = (struct group){.at = at, .n = n, .name = "back", .n_late = &n_late};
    g->conf =
        (struct checker_rules_conf){.check = {.timeout_ns = LONG_NS},
                                    .health = {.rise = 1, .fall = 3, .interval_ns = NS_PER_MS}};
}

struct groups {
    struct group *list;
    unsigned n;
};

static void do_open_all(void *arg)
{
    struct groups *all = arg;

    for (unsigned i = 0; i < all->n; i++)
        do_open(&all->list[i]);
}

/* All at one time: a group that is alone for a moment takes all slots. */
static void open_groups(struct group *list, unsigned n)
{
    loop_runner_call(loop, do_open_all, &(struct groups){.list = list, .n = n});
}

static void do_remove_all(void *arg)
{
    struct group *g = arg;

    for (unsigned i = 0; i < g->n; i++)
        checker_remove(g->targets[i]);
}

static void do_load(void *arg)
{
    checker_load(checker, arg);
}

static struct checker_load load_now(void)
{
    struct checker_load load;

    loop_runner_call(loop, do_load, &load);
    return load;
}

struct query {
    const struct group *group;
    unsigned target;
    struct checker_stats stats;
};

static void do_stats(void *arg)
{
    struct query *q = arg;

    checker_stats(q->group->targets[q->target], &q->stats);
}

static uint64_t checks_of(const struct group *g, unsigned i)
{
    struct query q = {.group = g, .target = i};

    loop_runner_call(loop, do_stats, &q);
    return q.stats.checks;
}

static bool all_checked(const struct group *g, unsigned times)
{
    for (unsigned i = 0; i < g->n; i++)
        if (checks_of(g, i) < times)
            return false;
    return true;
}

GROUP(turns, setup, teardown);

TEST(turns, single_group_gets_all_slots)
{
    static struct group bad;

    prepare(&bad, &deaf, 20);
    open_groups(&bad, 1);
    UNTIL(load_now().under_way == SLOTS);
}

TEST(turns, many_silent_servers_delay_no_other_group)
{
    static struct group groups[2];

    prepare(&groups[0], &deaf, 200);
    prepare(&groups[1], &served, 2);
    open_groups(groups, 2);
    UNTIL(load_now().waiting >= 200 - SLOTS);
    UNTIL(all_checked(&groups[1], 3));
    ck_assert_uint_ge(load_now().waiting, 200 - SLOTS); /* none of the others was over */
}

TEST(turns, several_large_groups_share_the_slots)
{
    static struct group groups[4];

    for (unsigned i = 0; i < 3; i++)
        prepare(&groups[i], &deaf, 20);
    prepare(&groups[3], &served, 20); /* has 2 of 8 slots */
    open_groups(groups, 4);
    UNTIL(load_now().waiting >= 3 * 18);
    UNTIL(all_checked(&groups[3], 3));
    for (unsigned i = 0; i < 3; i++)
        loop_runner_call(loop, do_remove_all, &groups[i]);
    UNTIL(all_checked(&groups[3], 6));
}

TEST(turns, groups_beyond_the_slots_take_turns)
{
    static struct group groups[SLOTS - 1 + 20];

    for (unsigned i = 0; i < ARRAY_LEN(groups); i++)
        prepare(&groups[i], i < SLOTS - 1 ? &deaf : &served, 3);
    open_groups(groups, ARRAY_LEN(groups));
    for (unsigned i = SLOTS - 1; i < ARRAY_LEN(groups); i++)
        UNTIL(all_checked(&groups[i], 3));
    ck_assert_uint_ge(load_now().waiting, 2 * (SLOTS - 1)); /* each has one check under way */
}

static void do_remove(void *arg)
{
    checker_remove(arg);
}

/* The other group's checks may be late too if the machine is busy, and are counted elsewhere. */
TEST(turns, a_check_that_begins_late_is_counted_and_logged)
{
    static struct group groups[2];
    static _Atomic uint64_t n_late_here;

    prepare(&groups[0], &served, 1);
    prepare(&groups[1], &deaf, 20);
    groups[1].name = "full";
    groups[1].n_late = &n_late_here;
    open_groups(groups, 2);
    UNTIL(all_checked(&groups[0], 5));
    UNTIL(load_now().waiting >= 20 - SLOTS);
    PAUSE_MS(300);
    for (unsigned i = 0; i < 20 && atomic_load(&n_late_here) == 0; i++) /* slots become free */
        loop_runner_call(loop, do_remove, groups[1].targets[i]);
    UNTIL(log_lines_with("upstream full: server a: a check begins ") == 1);
    ck_assert_uint_gt(atomic_load(&n_late_here), 0);
    EXPECT_LOG_LINES(" s late: checks under way: 7 for this upstream (at most 7), ", 1);
}
