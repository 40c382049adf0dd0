/* sessions/session_filter: each condition, alone and together; what is not a value is refused. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "net/netloop.h"
#include "service/echo.h"
#include "service/session.h"
#include "sessions/session_filter.h"
#include "stats/access_log_record.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct session_filter filter;
static struct session session;
static struct service service;
static struct service_ops ops;
static struct session_owner owner;
static struct netloop net;
static struct channel client;
static const char *server;
static int64_t now_ns;

static void describe(const struct session *s, struct access_log_record *r)
{
    (void)s;
    r->upstream = "back";
    r->server = server;
}

static void setup(void)
{
    ops = echo_ops;
    ops.describe = describe;
    service = (struct service){.ops = &ops, .listener = "front"};
    net.loop = loop_runner_create();
    owner.net = &net;
    now_ns = clock_now_ns();
    server = "a";
    client = (struct channel){
        .bytes_in = 600, .bytes_out = 424, .last_io_at_ns = now_ns - 10 * NS_PER_S};
    session = (struct session){.service = &service,
                               .owner = &owner,
                               .legs = {&client},
                               .began_at_ns = now_ns - 60 * NS_PER_S,
                               .id = {.high = 0xabc, .low = 1}};
    sockets_loopback(&session.peer, 4711);
}

static void teardown(void)
{
    loop_runner_destroy(net.loop);
}

static bool selects(const char *key, const char *value)
{
    memset(&filter, 0, sizeof(filter));
    ck_assert_msg(!session_filter_set(&filter, key, value), "%s=%s", key, value);
    return session_filter_matches(&filter, &session, now_ns);
}

static const char *why_not(const char *key, const char *value)
{
    const char *why;

    memset(&filter, 0, sizeof(filter));
    why = session_filter_set(&filter, key, value);
    ck_assert_msg(why, "%s=%s", key, value);
    return why;
}

GROUP(session_filter, setup, teardown);

TEST(session_filter, each_condition_selects_matching_sessions_only)
{
    static const struct {
        const char *key, *yes, *no;
    } conditions[] = {
        {"listener", "front", "fron"},
        {"upstream", "back", "backs"},
        {"server", "back/a", "back/b"},
        {"server", "back/a", "other/a"},
        {"client", "127.0.0.0/8", "10.0.0.0/8"},
        {"client", "127.0.0.1", "::1"},
        {"min_age", "60s", "61s"},
        {"min_idle", "10s", "11s"},
        {"min_bytes", "1k", "1025"},
        {"id", "0000000000000abc0000000000000001", "0000000000000abc0000000000000002"},
    };

    for (unsigned i = 0; i < ARRAY_LEN(conditions); i++) {
        ck_assert_msg(selects(conditions[i].key, conditions[i].yes), "%s", conditions[i].yes);
        ck_assert_msg(!selects(conditions[i].key, conditions[i].no), "%s", conditions[i].no);
    }
    ck_assert(selects("loop", loop_name(net.loop)));
    ck_assert(!selects("loop", "work-2-9"));
}

TEST(session_filter, conditions_apply_together)
{
    ck_assert(selects("listener", "front"));
    ck_assert_ptr_null(session_filter_set(&filter, "min_idle", "5s"));
    ck_assert(session_filter_matches(&filter, &session, now_ns));
    ck_assert_ptr_null(session_filter_set(&filter, "min_bytes", "1g"));
    ck_assert(!session_filter_matches(&filter, &session, now_ns));
}

TEST(session_filter, the_id_of_a_line_selects_all_its_servers)
{
    server = "a@10.0.0.1:80";
    ck_assert(selects("server", "back/a"));
    ck_assert(selects("server", "back/a@10.0.0.1:80"));
    ck_assert(!selects("server", "back/a@10.0.0.1:8"));
    server = "ab";
    ck_assert(!selects("server", "back/a"));
    server = NULL;
    ck_assert(!selects("server", "back/a"));
    ck_assert(selects("upstream", "back"));
}

TEST(session_filter, ending_session_is_never_selected)
{
    session.phase = SESSION_PHASE_ENDING;
    ck_assert(!selects("listener", "front"));
}

TEST(session_filter, session_active_after_the_query_began_has_no_idle_time)
{
    client.last_io_at_ns = now_ns + 1;
    ck_assert(selects("listener", "front"));
    ck_assert(!selects("min_idle", "1us"));
}

TEST(session_filter, session_of_a_service_without_servers_matches_no_upstream)
{
    ops.describe = NULL;
    ck_assert(!selects("upstream", "back"));
    ck_assert(selects("listener", "front"));
}

TEST(session_filter, only_connected_leaves_out_sessions_without_a_server)
{
    session.phase = SESSION_PHASE_CONNECTING;
    ck_assert(selects("upstream", "back"));
    filter.only_connected = true;
    ck_assert(!session_filter_matches(&filter, &session, now_ns));
    session.phase = SESSION_PHASE_OPEN;
    ck_assert(session_filter_matches(&filter, &session, now_ns));
}

TEST(session_filter, invalid_value_is_refused_with_its_reason)
{
    char name[SESSION_FILTER_NAME_BYTES + 1];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_str_eq(why_not("listener", ""), "is empty");
    ck_assert_str_eq(why_not("listener", name), "is too long for a name");
    ck_assert_str_eq(why_not("server", "a"), "is not UPSTREAM/SERVER");
    ck_assert_str_eq(why_not("server", "/a"), "is not UPSTREAM/SERVER");
    ck_assert_str_eq(why_not("server", "back/"), "is not UPSTREAM/SERVER");
    ck_assert_str_eq(why_not("client", "10.0.0.1/8"), "has bits set behind the prefix");
    ck_assert_str_eq(why_not("client", "10.0.0.0/33"), "has a prefix longer than the address");
    (void)why_not("client", "somebody");
    ck_assert_str_eq(why_not("min_age", "10"), "is not a duration, such as 10s");
    ck_assert_str_eq(why_not("min_idle", "-1s"), "is not a duration, such as 10s");
    ck_assert_str_eq(why_not("min_age", "99999d"), "is more than 10000d");
    ck_assert_str_eq(why_not("min_bytes", "1x"), "is not a number of bytes, such as 64k");
    ck_assert_str_eq(why_not("min_bytes", "99999999999999999999"), "is too large");
    ck_assert_str_eq(why_not("id", "abc"), "is not an ID: 32 hex digits");
    ck_assert_str_eq(why_not("id", "0000000000000ABC0000000000000001"),
                     "is not an ID: 32 hex digits");
    ck_assert_str_eq(why_not("colour", "red"), "is not a known field");
}

TEST(session_filter, server_of_another_upstream_is_refused)
{
    ck_assert(selects("upstream", "back"));
    ck_assert_ptr_null(session_filter_set(&filter, "server", "back/a"));
    ck_assert(selects("upstream", "back"));
    ck_assert_str_eq(session_filter_set(&filter, "server", "other/a"),
                     "is not the upstream of the server");
}
