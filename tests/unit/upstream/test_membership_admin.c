/*
 * upstream/membership_admin: what an administrator sets applies at once, to all servers of a line,
 * and stays until the line changes.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "stats/figure_log.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/membership_admin.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"
#include "upstream/upstream_figures.h"

#define SERVERS 3
#define PICKS   600

static struct address addresses[SERVERS];
static struct upstream_server_conf servers[SERVERS];
static struct upstream_conf conf;
static struct upstream *upstream;
static unsigned picks[SERVERS], reported;

static void on_changed(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    (void)server;
    reported++;
}

static void setup(void)
{
    static const char *const ids[SERVERS] = {"a", "b", "c"};

    log_lines_capture(LOG_LEVEL_NOTICE);
    for (unsigned i = 0; i < SERVERS; i++) {
        sockets_loopback(&addresses[i], 1 + i);
        servers[i] = (struct upstream_server_conf){.id = ids[i],
                                                   .address_text = "there",
                                                   .addresses = &addresses[i],
                                                   .n_addresses = 1,
                                                   .weight = 1};
    }
    conf = (struct upstream_conf){
        .name = "back", .servers = servers, .n_servers = SERVERS, .ejection = {.failures = 0}};
}

static void open_group(void)
{
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    upstream->membership.watch.changed = on_changed;
}

static void teardown(void)
{
    upstream_destroy(upstream);
}

static struct server_line *line(const char *id)
{
    return membership_find_line(&upstream->membership, id);
}

static int set(const char *id, enum server_line_state state, int weight)
{
    struct server_line_admin admin = {
        .state = state, .has_weight = weight >= 0, .weight = weight > 0 ? (unsigned)weight : 0};

    return membership_admin_set(&upstream->membership, line(id), &admin, 0);
}

/* Pick often. */
static void expect_shares(unsigned a, unsigned b, unsigned c)
{
    unsigned expected[SERVERS] = {a, b, c};

    memset(picks, 0, sizeof(picks));
    for (unsigned i = 0; i < PICKS; i++) {
        struct balancer_pick_state state;
        struct upstream_server *server;

        balancer_begin(&state, 0);
        ck_assert_int_eq(upstream_pick(upstream, &state, &server), 0);
        picks[server->name[0] - 'a']++;
        upstream_leave(upstream, server, UPSTREAM_UNKNOWN);
    }
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert_uint_eq(picks[i], expected[i]);
}

/* As a reload does. */
static void reload(struct upstream_conf *next)
{
    struct upstream_change *change;

    ck_assert_int_eq(upstream_change_prepare(&change, upstream, next), 0);
    upstream_change_commit(change);
}

static struct upstream_server *server_at(unsigned i)
{
    return membership_now(&upstream->membership)->servers[i];
}

GROUP(membership_admin, setup, teardown);

TEST_EACH(membership_admin, drained_or_disabled_server_gets_no_sessions_until_enabled, 2)
{
    open_group();
    ck_assert_int_eq(set("b", _i ? SERVER_LINE_DRAIN : SERVER_LINE_DISABLED, -1), 0);
    expect_shares(PICKS / 2, 0, PICKS / 2);
    ck_assert_int_eq(atomic_load(&server_at(1)->is_disabled), !_i);
    ck_assert_int_eq(atomic_load(&server_at(1)->is_draining), _i);
    ck_assert_uint_eq(reported, 1);
    upstream_figures_server(upstream, server_at(1), figure_log());
    EXPECT_LOG_LINES(_i ? "back/b state=draining" : "back/b state=disabled", 1);
    ck_assert_int_eq(set("b", SERVER_LINE_AS_CONFIGURED, -1), 0);
    expect_shares(PICKS / 3, PICKS / 3, PICKS / 3);
}

TEST(membership_admin, weight_set_by_an_administrator_changes_the_share)
{
    open_group();
    ck_assert_int_eq(set("a", SERVER_LINE_AS_CONFIGURED, 4), 0);
    expect_shares(PICKS * 4 / 6, PICKS / 6, PICKS / 6);
    ck_assert_int_eq(set("a", SERVER_LINE_AS_CONFIGURED, 0), 0);
    expect_shares(0, PICKS / 2, PICKS / 2);
    ck_assert_int_eq(set("a", SERVER_LINE_DRAIN, 4), 0);
    expect_shares(0, PICKS / 2, PICKS / 2);
}

TEST(membership_admin, open_sessions_stay_at_a_drained_server)
{
    struct balancer_pick_state state;
    struct upstream_server *server;

    open_group();
    balancer_begin(&state, 0);
    ck_assert_int_eq(upstream_pick(upstream, &state, &server), 0);
    ck_assert_int_eq(set(server->name, SERVER_LINE_DRAIN, -1), 0);
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 1);
    (void)membership_sweep(&upstream->membership);
    upstream_leave(upstream, server, UPSTREAM_WORKED);
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 0);
}

TEST(membership_admin, server_disabled_in_the_configuration_can_be_enabled)
{
    servers[2].disabled = true;
    open_group();
    expect_shares(PICKS / 2, PICKS / 2, 0);
    ck_assert_int_eq(set("c", SERVER_LINE_READY, -1), 0);
    expect_shares(PICKS / 3, PICKS / 3, PICKS / 3);
    ck_assert_int_eq(set("c", SERVER_LINE_DRAIN, -1), 0);
    expect_shares(PICKS / 2, PICKS / 2, 0);
}

TEST(membership_admin, enabled_server_starts_down_if_it_must_pass_a_check_first)
{
    conf.checks.kind = UPSTREAM_CHECK_TCP;
    conf.checks.health.initial = HEALTH_STARTS_DOWN;
    conf.slow_start_ns = NS_PER_S;
    open_group();
    for (unsigned i = 0; i < SERVERS; i++)
        (void)endpoint_clear_flag(&server_at(i)->endpoint, ENDPOINT_DOWN);
    ck_assert_int_eq(set("a", SERVER_LINE_DRAIN, -1), 0);
    ck_assert_int_eq(set("a", SERVER_LINE_AS_CONFIGURED, -1), 0);
    ck_assert_uint_eq(endpoint_load(&server_at(0)->endpoint), ENDPOINT_WARMING);
    ck_assert_int_eq(set("b", SERVER_LINE_DISABLED, -1), 0);
    ck_assert_int_eq(set("b", SERVER_LINE_AS_CONFIGURED, -1), 0);
    ck_assert_uint_eq(endpoint_load(&server_at(1)->endpoint), ENDPOINT_DOWN | ENDPOINT_WARMING);
}

TEST(membership_admin, reload_keeps_settings_unless_it_changes_the_line)
{
    open_group();
    ck_assert_int_eq(set("a", SERVER_LINE_AS_CONFIGURED, 4), 0);
    ck_assert_int_eq(set("b", SERVER_LINE_DRAIN, -1), 0);
    servers[2].weight = 2;
    reload(&conf);
    expect_shares(PICKS * 4 / 6, 0, PICKS * 2 / 6);
    ck_assert(atomic_load(&server_at(1)->is_draining));
    ck_assert_uint_eq(log_lines_with("is forgotten"), 0);
    servers[0].weight = 3;
    servers[1].max_connections = 7;
    reload(&conf);
    expect_shares(PICKS * 3 / 6, PICKS / 6, PICKS * 2 / 6);
    ck_assert(!atomic_load(&server_at(1)->is_draining));
    EXPECT_LOG_LINES("server a: settings made by an administrator are dropped", 1);
    EXPECT_LOG_LINES("server b: settings made by an administrator are dropped", 1);
}

TEST(membership_admin, reset_restores_the_configuration)
{
    open_group();
    ck_assert_int_eq(set("a", SERVER_LINE_AS_CONFIGURED, 4), 0);
    ck_assert_int_eq(set("b", SERVER_LINE_DISABLED, -1), 0);
    ck_assert_int_eq(membership_admin_reset(&upstream->membership), 0);
    expect_shares(PICKS / 3, PICKS / 3, PICKS / 3);
    ck_assert(!server_line_is_changed(line("a")) && !server_line_is_changed(line("b")));
}

static int update(const char *ports)
{
    struct address list[10];
    struct membership_place places[10];
    unsigned n = 0;

    for (; ports[n] != '\0'; n++) {
        sockets_loopback(&list[n], 1000 + (unsigned)(ports[n] - '0'));
        places[n] = (struct membership_place){.list = &list[n], .n = 1, .weight = 1};
    }
    return membership_update(&upstream->membership, line("a"), places, n, NULL);
}

TEST(membership_admin, servers_that_a_name_resolves_to_later_are_drained)
{
    servers[0].names = UPSTREAM_NAME_EACH;
    servers[0].n_addresses = 0;
    open_group();
    ck_assert_int_eq(update("12"), 1);
    expect_shares(PICKS / 2, PICKS / 4, PICKS / 4);
    ck_assert_int_eq(set("a", SERVER_LINE_DRAIN, -1), 0);
    expect_shares(0, PICKS / 2, PICKS / 2);
    ck_assert_int_eq(update("134"), 1);
    expect_shares(0, PICKS / 2, PICKS / 2);
    ck_assert_uint_eq(membership_now(&upstream->membership)->n, 5);
    ck_assert(atomic_load(&server_at(2)->is_draining));
    ck_assert_int_eq(set("a", SERVER_LINE_AS_CONFIGURED, 2), 0);
    expect_shares(PICKS * 6 / 8, PICKS / 8, PICKS / 8);
    ck_assert_int_eq(update("1"), 1);
    expect_shares(PICKS * 2 / 4, PICKS / 4, PICKS / 4);
}

TEST(membership_admin, impossible_settings_are_refused_and_change_nothing)
{
    servers[0].names = UPSTREAM_SERVICE;
    servers[0].n_addresses = 0;
    servers[1].names = UPSTREAM_NAME_EACH;
    servers[1].n_addresses = 0;
    servers[1].disabled = true;
    open_group();
    ck_assert_int_eq(set("a", SERVER_LINE_AS_CONFIGURED, 1), -EOPNOTSUPP);
    ck_assert_int_eq(set("b", SERVER_LINE_READY, -1), -EOPNOTSUPP);
    ck_assert_int_eq(set("b", SERVER_LINE_DISABLED, -1), 0);
    ck_assert(!server_line_is_changed(line("a")));
    expect_shares(0, 0, PICKS);
}

static int drain(void *cookie)
{
    int rc = set("b", SERVER_LINE_DRAIN, -1);

    (void)cookie;
    if (rc < 0) {
        ck_assert_int_eq(rc, -ENOMEM);
        ck_assert(!server_line_is_changed(line("b")));
        expect_shares(PICKS / 3, PICKS / 3, PICKS / 3);
    }
    return rc;
}

TEST(membership_admin, failed_allocation_changes_nothing)
{
    open_group();
    ck_assert_uint_gt(fault_each_allocation(drain, NULL), 0);
    expect_shares(PICKS / 2, 0, PICKS / 2);
}

TEST(membership_admin, settings_are_refused_while_a_reload_is_prepared)
{
    struct upstream_change *change;

    open_group();
    ck_assert_int_eq(upstream_change_prepare(&change, upstream, &conf), 0);
    ck_assert_int_eq(set("b", SERVER_LINE_DRAIN, -1), -EBUSY);
    upstream_change_cancel(change);
    ck_assert_int_eq(drain(NULL), 0);
}
