/*
 * service/mirror: without its mirror, for whatever lack, a client is served as ever, and every
 * descriptor is let go of.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/descriptor_budget.h"
#include "net/memory_account.h"
#include "service/echo.h"
#include "service/mirror.h"
#include "support/host.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

static struct host host;
static struct mirror_plan plan;
static struct descriptor_budget descriptors;
static struct upstream_server_conf server;
static struct upstream_conf conf;
static struct address at;
static int listener;

static void setup(void)
{
    host_open(&host, &echo_ops, NULL);
    listener = sockets_listen(&at, 16);
    server = (struct upstream_server_conf){
        .id = "a", .address_text = "a", .addresses = &at, .n_addresses = 1, .weight = 1};
    conf = (struct upstream_conf){
        .name = "copy", .servers = &server, .n_servers = 1, .connect_timeout_ns = 10 * NS_PER_S};
    descriptors.max = 10;
    atomic_store(&descriptors.used, 0);
    host.owner.net->descriptors = &descriptors;
    plan = (struct mirror_plan){.buffer_bytes = 65536};
    ck_assert_int_eq(mirror_counters_create(&plan.counters), 0);
    ck_assert_int_eq(upstream_create(&plan.upstream, &conf, NULL), 0);
    host.service.mirror = &plan;
}

static void teardown(void)
{
    host_close(&host);
    upstream_destroy(plan.upstream);
    mirror_counters_release(plan.counters);
    close(listener);
    ck_assert_uint_eq(atomic_load(&descriptors.used), 0);
}

static void echo_once(int client)
{
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
}

static void leave(int client)
{
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

GROUP(echo, setup, teardown);

TEST(echo, mirror_gets_the_bytes_and_the_end_of_file_of_the_client)
{
    int client = host_client(&host), mirror = sockets_accept(listener);

    ck_assert_uint_eq(atomic_load(&descriptors.used), 1);
    sockets_say(mirror, "nobody hears this");
    echo_once(client);
    sockets_hear(mirror, "hello");
    leave(client);
    sockets_hear_end(mirror);
    close(mirror);
    ck_assert_uint_eq(atomic_load(&plan.counters->connected), 1);
    UNTIL(atomic_load(&plan.counters->bytes) == 5);
    ck_assert_uint_eq(atomic_load(&plan.counters->lost), 0);
    ck_assert_uint_eq(atomic_load(&plan.counters->cut), 0);
}

TEST(echo, reset_of_the_client_resets_the_mirror)
{
    int client = host_client(&host), mirror = sockets_accept(listener);

    echo_once(client);
    sockets_hear(mirror, "hello");
    sockets_reset(client);
    sockets_hear_reset(mirror);
    host_expect_end(&host, SESSION_CLIENT_RESET);
    UNTIL(atomic_load(&plan.counters->cut) == 1);
    close(mirror);
}

TEST(echo, session_cut_off_by_us_cuts_off_the_mirror)
{
    int client = host_client(&host), mirror = sockets_accept(listener);

    echo_once(client);
    sockets_hear(mirror, "hello");
    host_abort(&host, SESSION_DRAIN);
    sockets_hear_reset(mirror);
    host_expect_end(&host, SESSION_DRAIN);
    close(client);
    close(mirror);
}

TEST(echo, client_is_served_without_a_descriptor_for_the_mirror)
{
    int client;

    descriptors.max = 0;
    client = host_client(&host);
    echo_once(client);
    leave(client);
    ck_assert_uint_eq(atomic_load(&plan.counters->failed), 1);
    ck_assert_uint_eq(atomic_load(&plan.counters->lost), 5);
}

TEST(echo, client_is_served_without_a_server_of_the_mirror)
{
    int client;

    close(listener);
    listener = -1;
    client = host_client(&host);
    echo_once(client);
    leave(client);
    ck_assert_uint_eq(atomic_load(&plan.counters->failed), 1);
    ck_assert_uint_eq(atomic_load(&plan.counters->connected), 0);
}

TEST(echo, mirror_that_closes_is_released_at_once)
{
    int client = host_client(&host), mirror = sockets_accept(listener);

    UNTIL(atomic_load(&plan.counters->connected) == 1); /* or it would only have failed */
    sockets_reset(mirror);
    UNTIL(atomic_load(&descriptors.used) == 0);
    echo_once(client);
    leave(client);
    ck_assert_uint_eq(atomic_load(&plan.counters->abandoned), 1);
    ck_assert_uint_eq(atomic_load(&plan.counters->lost), 5);
}

/* A client that has not yet read what it gets back, so that its session goes on after its end. */
static int client_that_only_speaks(size_t len)
{
    int ours, client;

    host.conf.linger.timeout_ns = UNTIL_LIMIT_NS;
    sockets_unix(&ours, &client);
    sockets_small(ours);
    sockets_small(client);
    host_adopt(&host, ours);
    sockets_say_pattern(client, 0, len);
    sockets_end(client);
    return client;
}

static void expect_all_back(int client, size_t len)
{
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    sockets_hear_pattern(client, 0, len);
    sockets_hear_end(client);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

/* The backlog is full: no connection is refused or answered until ${filler} was accepted. */
static int stop_answering(void)
{
    ck_assert_int_eq(listen(listener, 0), 0);
    return sockets_connect(&at);
}

TEST(echo, mirror_gets_the_end_of_file_before_the_session_ends)
{
    size_t len = 40000;
    int client = client_that_only_speaks(len), mirror = sockets_accept(listener);

    sockets_hear_pattern(mirror, 0, len);
    sockets_hear_end(mirror);
    expect_all_back(client, len);
    close(mirror);
}

TEST(echo, mirror_connected_late_gets_all_earlier_bytes)
{
    size_t len = 40000;
    int filler = stop_answering(), client = client_that_only_speaks(len), mirror;

    PAUSE_MS(50);
    close(sockets_accept(listener));
    mirror = sockets_accept(listener);
    sockets_hear_pattern(mirror, 0, len);
    sockets_hear_end(mirror);
    expect_all_back(client, len);
    close(filler);
    close(mirror);
}

static void echo_much(int client, size_t len)
{
    static const char some[4096];
    char back[sizeof(some)];

    for (size_t done = 0; done < len; done += sizeof(some)) {
        ck_assert_int_eq(send(client, some, sizeof(some), 0), sizeof(some));
        ck_assert_int_eq(recv(client, back, sizeof(back), MSG_WAITALL), sizeof(back));
    }
}

TEST(echo, mirror_whose_buffer_is_full_before_it_connects_is_dropped)
{
    int filler = stop_answering(), client = host_client(&host);

    echo_much(client, plan.buffer_bytes);
    ck_assert_uint_eq(atomic_load(&plan.counters->abandoned), 0);
    ck_assert_uint_eq(atomic_load(&descriptors.used), 1);
    echo_much(client, 1);
    UNTIL(atomic_load(&plan.counters->abandoned) == 1);
    UNTIL(atomic_load(&descriptors.used) == 0);
    leave(client);
    ck_assert_uint_eq(atomic_load(&plan.counters->lost), plan.buffer_bytes + 4096);
    close(filler);
}

TEST(echo, mirror_that_does_not_read_is_dropped_and_the_client_served)
{
    int client = host_client(&host), mirror = sockets_accept(listener);

    for (size_t sent = 0; atomic_load(&plan.counters->abandoned) == 0; sent += 4096) {
        ck_assert_uint_lt(sent, 64u << 20); /* more than any socket buffer */
        echo_much(client, 1);
    }
    ck_assert_uint_eq(atomic_load(&plan.counters->connected), 1);
    UNTIL(atomic_load(&descriptors.used) == 0);
    echo_once(client);
    leave(client);
    ck_assert_uint_eq(atomic_load(&plan.counters->abandoned), 1);
    close(mirror);
}

static void reclaim(void *arg)
{
    *(size_t *)arg = session_reclaim(LIST_ENTRY(host.sessions.next, struct session, link));
}

TEST(echo, slow_mirror_is_dropped_under_memory_pressure_and_the_client_served)
{
    struct memory_account buffered = {.max_bytes = INT64_MAX};
    int client, mirror;
    size_t relieved;

    plan.buffer_bytes = 64 << 20;
    host.owner.net->buffered = &buffered;
    client = host_client(&host);
    mirror = sockets_accept(listener);
    echo_once(client);
    loop_runner_call(host.loop, reclaim, &relieved);
    ck_assert_uint_eq(relieved, 0);
    while (atomic_load(&buffered.bytes) < 1 << 20)
        echo_much(client, 1);
    loop_runner_call(host.loop, reclaim, &relieved);
    ck_assert_uint_ge(relieved, 1 << 20);
    UNTIL(atomic_load(&buffered.bytes) == 0);
    ck_assert_uint_eq(atomic_load(&plan.counters->abandoned), 1);
    echo_once(client);
    leave(client);
    close(mirror);
    host.owner.net->buffered = NULL;
}

TEST(echo, session_may_be_aborted_with_its_mirror_at_any_moment)
{
    for (unsigned i = 0; i < 50; i++) {
        int client = host_client(&host);

        if (i % 2 == 0)
            sockets_say(client, "x");
        if (i % 3 == 0)
            usleep(500);
        host_abort(&host, SESSION_DRAIN);
        host_expect_end(&host, SESSION_DRAIN);
        close(client);
    }
    UNTIL(atomic_load(&descriptors.used) == 0);
}
