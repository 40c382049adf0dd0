/*
 * server/upstreams: upstreams come, change and go with the configuration; one that is used is never
 * freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "server/server_conf.h"
#include "server/upstreams.h"
#include "support/fault.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define UPSTREAMS 4

static struct address address;
static struct upstream_server_conf server_conf[2];
static struct upstream_conf confs[UPSTREAMS]; /* one, two, three, four */
static struct server_conf conf;
static struct loop *control;
static struct upstreams *upstreams;
static struct upstreams_change *change;

static void setup(void)
{
    static const char *const names[UPSTREAMS] = {"one", "two", "three", "four"};
    static const char *const ids[] = {"a", "b"};

    log_lines_capture(LOG_LEVEL_NOTICE);
    sockets_loopback(&address, 7);
    for (unsigned i = 0; i < 2; i++)
        server_conf[i] = (struct upstream_server_conf){.id = ids[i],
                                                       .address_text = "there",
                                                       .addresses = &address,
                                                       .n_addresses = 1,
                                                       .weight = 1};
    for (unsigned i = 0; i < UPSTREAMS; i++)
        confs[i] = (struct upstream_conf){.name = names[i], .servers = server_conf, .n_servers = 1};
    conf = (struct server_conf){.upstreams = confs, .n_upstreams = 2};
    control = loop_runner_create();
    ck_assert_int_eq(upstreams_create(&upstreams, control, &(struct upstream_env){.workers = NULL}),
                     0);
}

static void teardown(void)
{
    loop_runner_destroy(control);
    upstreams_destroy(upstreams);
}

static int prepare(void)
{
    return upstreams_prepare(upstreams, &conf, &change);
}

static unsigned no_places(const void *cookie, const struct upstream *up,
                          const struct upstream_server_conf *line, struct membership_place *places)
{
    (void)cookie;
    (void)up;
    (void)line;
    (void)places;
    return 0;
}

static void do_change(void *arg)
{
    (void)arg;
    ck_assert_int_eq(prepare(), 0);
    ck_assert_int_eq(upstreams_complete(change, no_places, NULL), 0);
    upstreams_commit(change);
}

static void change_all(void)
{
    loop_runner_call(control, do_change, NULL);
}

static void do_sweep(void *is_left)
{
    *(bool *)is_left = upstreams_sweep(upstreams);
}

static bool sweep(void)
{
    bool is_left;

    loop_runner_call(control, do_sweep, &is_left);
    return is_left;
}

/* By a change that is cancelled. */
static void do_find(void *up)
{
    const char *name = *(const char **)up;

    ck_assert_int_eq(prepare(), 0);
    *(struct upstream **)up = upstreams_find(change, name);
    upstreams_cancel(change);
}

static struct upstream *find(const char *name)
{
    const void *up = name;

    loop_runner_call(control, do_find, &up);
    return (struct upstream *)up;
}

static struct upstream_server *server_of(const struct upstream *up)
{
    return membership_now(&up->membership)->servers[0];
}

GROUP(upstreams, setup, teardown);

TEST(upstreams, configured_upstreams_are_found_by_name)
{
    unsigned n;

    ck_assert_int_eq(prepare(), 0);
    ck_assert_str_eq(upstreams_find(change, "two")->name, "two");
    ck_assert_ptr_null(upstreams_find(change, "three"));
    ck_assert_str_eq(upstreams_next(change, &n)[0].upstream->name, "one");
    ck_assert_ptr_eq(upstreams_next(change, &n)[1].conf, &confs[1]);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(upstreams_complete(change, no_places, NULL), 0);
    upstreams_commit(change);
}

TEST(upstreams, servers_without_connections_are_logged_when_their_upstream_is_committed)
{
    server_conf[0].disabled = true;
    ck_assert_int_eq(prepare(), 0);
    upstreams_cancel(change); /* a reload that is refused */
    ck_assert_uint_eq(log_lines_with("gets no connections"), 0);
    change_all();
    EXPECT_LOG_LINES("server a: gets no connections: disabled", 2); /* of each upstream */
    change_all();
    EXPECT_LOG_LINES("gets no connections", 2);
}

TEST(upstreams, unchanged_upstream_is_the_same_object_with_the_new_configuration)
{
    struct upstream *one;

    change_all();
    one = find("one");
    confs[0].queue_length = 7;
    confs[0].n_servers = 2;
    conf.n_upstreams = 3;
    change_all();
    ck_assert_ptr_eq(find("one"), one);
    ck_assert_uint_eq(atomic_load(&one->conf)->queue_length, 7);
    ck_assert_uint_eq(membership_now(&one->membership)->n, 2);
    ck_assert_str_eq(find("three")->name, "three");
    ck_assert(!sweep());
}

TEST(upstreams, removed_upstream_is_freed_after_its_last_use)
{
    struct upstream *two;

    change_all();
    two = upstream_hold(find("two"));
    conf.n_upstreams = 1;
    change_all();
    ck_assert(sweep());
    ck_assert(sweep());
    ck_assert_uint_eq(endpoint_load(&server_of(two)->endpoint), 0); /* it serves its sessions */
    upstream_release(two);
    UNTIL(!sweep());
    ck_assert_ptr_null(find("two"));
}

TEST(upstreams, removed_upstream_is_freed_after_its_servers)
{
    struct upstream *two;
    struct upstream_server *server;

    change_all();
    two = find("two");
    server = server_of(two);
    upstream_server_hold(server);
    conf.n_upstreams = 1;
    change_all();
    for (unsigned i = 0; i < 4; i++)
        ck_assert(sweep());
    ck_assert_uint_eq(endpoint_load(&server->endpoint), ENDPOINT_ABSENT);
    upstream_server_release(server);
    UNTIL(!sweep());
}

TEST(upstreams, upstream_removed_and_added_again_is_a_new_object)
{
    struct upstream *two;

    change_all();
    two = upstream_hold(find("two"));
    conf.n_upstreams = 1;
    change_all();
    conf.n_upstreams = 2;
    change_all();
    ck_assert_ptr_ne(find("two"), two);
    upstream_release(two);
    UNTIL(!sweep());
}

static void log_stats(struct upstream *up, void *cookie)
{
    (void)cookie;
    figures_log_upstream(up);
}

static bool has_statistics(const char *start)
{
    unsigned before = log_lines_with(start);

    PAUSE_MS(50); /* while they are written it is used */
    upstreams_each(upstreams, log_stats, NULL);
    return log_lines_with(start) > before;
}

/* How many upstreams of this name a walk has. */
static unsigned held(const char *name, bool removed)
{
    unsigned n, found = 0;
    struct upstream **list = upstreams_hold_all(upstreams, removed, &n);

    for (unsigned i = 0; i < n; i++) {
        found += strcmp(list[i]->name, name) == 0;
        upstream_release(list[i]);
    }
    free(list);
    return found;
}

TEST(upstreams, removed_upstream_and_its_successor_of_the_same_name_are_distinct)
{
    struct upstream *two;

    change_all();
    two = upstream_hold(find("two"));
    conf.n_upstreams = 1;
    change_all();
    ck_assert_uint_eq(held("two", false), 0);
    ck_assert_uint_eq(held("two", true), 1);
    conf.n_upstreams = 2;
    change_all();
    ck_assert_uint_eq(held("two", false), 1);
    ck_assert_uint_eq(held("two", true), 2);
    upstream_release(two);
    UNTIL(held("two", true) == 1);
}

TEST(upstreams, removed_upstream_is_in_the_statistics_until_it_is_freed)
{
    change_all();
    ck_assert(has_statistics("stats upstream two connections="));
    conf.n_upstreams = 1;
    change_all();
    ck_assert(has_statistics("stats upstream two connections="));
    UNTIL(!has_statistics("stats upstream two connections="));
    ck_assert(has_statistics("stats upstream one connections="));
}

TEST(upstreams, a_cancelled_change_changes_nothing)
{
    struct upstream *one, *two;

    change_all();
    one = find("one");
    two = find("two");
    conf.upstreams = &confs[1]; /* without one, and with three */
    ck_assert_int_eq(prepare(), 0);
    ck_assert_int_eq(upstreams_complete(change, no_places, NULL), 0);
    ck_assert_ptr_eq(upstreams_find(change, "two"), two);
    upstreams_cancel(change);
    conf.upstreams = confs;
    ck_assert_ptr_eq(find("one"), one);
    ck_assert_uint_eq(ref_count(&one->references), 1);
    ck_assert(!one->membership.is_being_changed && !two->membership.is_being_changed);
}

/* ---- names ---- */

static unsigned on_places(const void *cookie, const struct upstream *up,
                          const struct upstream_server_conf *line, struct membership_place *places)
{
    ck_assert_ptr_eq(cookie, &conf);
    if (strcmp(up->name, "two") != 0 && strcmp(up->name, "three") != 0)
        return 0;
    ck_assert_str_eq(line->id, "b");
    places[0] = (struct membership_place){.list = &address, .n = 1, .weight = 1};
    return 1;
}

/* Of an upstream that there was, and of a new one; 0: a name of several servers; 1: of one. */
TEST_EACH(upstreams, servers_of_a_new_name_begin_with_known_addresses, 2)
{
    static const struct upstream_server_conf literal = {
        .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
    struct upstream_server_conf lines[2] = {literal, server_conf[1]};

    change_all();
    lines[1].names = _i == 0 ? UPSTREAM_NAME_EACH : UPSTREAM_NAME_ONE;
    lines[1].n_addresses = 0;
    for (unsigned i = 0; i < 3; i++)
        confs[i] = (struct upstream_conf){.name = confs[i].name, .servers = lines, .n_servers = 2};
    conf.n_upstreams = 3;
    ck_assert_int_eq(prepare(), 0);
    ck_assert_int_eq(upstreams_complete(change, on_places, &conf), 0);
    upstreams_commit(change);
    ck_assert_uint_eq(membership_now(&find("one")->membership)->n, _i == 0 ? 1 : 2);
    for (unsigned i = 1; i < 3; i++) {
        const struct server_set *set = membership_now(&find(confs[i].name)->membership);

        ck_assert_uint_eq(set->n, 2);
        ck_assert_uint_eq(endpoint_load(&set->servers[1]->endpoint), 0);
    }
}

/* ---- memory ---- */

static int attempt(void *cookie)
{
    int rc = prepare();

    (void)cookie;
    if (rc < 0)
        return rc;
    rc = upstreams_complete(change, no_places, NULL);
    upstreams_cancel(change);
    return rc;
}

TEST(upstreams, failed_allocation_changes_nothing)
{
    struct upstream *two;

    change_all();
    two = find("two");
    conf.upstreams = &confs[1];
    conf.n_upstreams = 3;
    ck_assert_uint_gt(fault_each_allocation(attempt, NULL), 50);
    ck_assert_ptr_eq(find("two"), two);
    change_all();
    ck_assert_ptr_eq(find("two"), two);
    UNTIL(!sweep());
}

TEST(upstreams, creating_without_memory_fails)
{
    struct upstreams *none = NULL;

    fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    ck_assert_int_eq(upstreams_create(&none, control, &(struct upstream_env){.workers = NULL}),
                     -ENOMEM);
    ck_assert_ptr_null(none);
    upstreams_destroy(NULL);
}
