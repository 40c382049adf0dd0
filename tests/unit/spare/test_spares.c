/*
 * spare/spares: which upstreams have spare connections, that each worker keeps its share of them,
 * and that its sessions use them.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define WORKERS 2

static struct server *server;
static struct address address, back, other;
static struct listener_conf listener;
static struct upstream_server_conf servers[] = {
    {.id = "a", .address_text = "there", .addresses = &back, .n_addresses = 1, .weight = 1},
    {.id = "b", .address_text = "there", .addresses = &other, .n_addresses = 1, .weight = 1}};
static struct upstream_conf upstreams[2];
static struct server_conf conf;
static int holder, listening, other_listening, spares[WORKERS];
static unsigned before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    holder = sockets_bound(&address);
    listening = sockets_listen(&back, 16);
    other_listening = sockets_listen(&other, 16);
    for (unsigned i = 0; i < 2; i++)
        upstreams[i] =
            (struct upstream_conf){.name = i == 0 ? "back" : "other",
                                   .servers = &servers[i],
                                   .n_servers = 1,
                                   .connect_timeout_ns = 5 * NS_PER_S,
                                   .spare = {.keep = WORKERS, .max_age_ns = 3600 * NS_PER_S}};
    listener = (struct listener_conf){.name = "front",
                                      .addresses = &address,
                                      .n_addresses = 1,
                                      .service = LISTENER_PROXY,
                                      .upstream = "back",
                                      .backlog = 16,
                                      .reuseport = 1};
    conf =
        (struct server_conf){SMALL_LOOPS(WORKERS), SMALL_EXECUTORS(1),     .listeners = &listener,
                             .n_listeners = 1,     .upstreams = upstreams, .n_upstreams = 2};
}

static void start(void)
{
    struct server_events events = {.drained = NULL};

    ck_assert_int_eq(server_create(&server, &conf, &events), 0);
    ck_assert_int_eq(server_start(server), 0);
}

static void accept_spares(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        spares[i] = sockets_accept(listening);
}

static void close_spares(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        close(spares[i]);
}

static void teardown(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_destroy(server);
    close(holder);
    close(listening);
    close(other_listening);
    UNTIL(process_loops() == 0);
    ck_assert_uint_eq(process_descriptors(), before);
}

static bool has_client(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0;
}

GROUP(spares, setup, teardown);

TEST(spares, each_worker_opens_its_share_to_the_upstream_that_a_listener_uses)
{
    start();
    accept_spares();
    UNTIL(process_loops() == 2 + WORKERS);
    PAUSE_MS(50);
    ck_assert(!has_client(listening));
    ck_assert(!has_client(other_listening));
    close_spares();
}

TEST(spares, upstream_used_by_a_route_only_has_spares)
{
    struct route_conf routes[] = {{.id = "other", .upstream = "other"},
                                  {.id = "back", .upstream = "back"}};

    listener.upstream = NULL;
    listener.routes = routes;
    listener.n_routes = 2;
    start();
    accept_spares();
    for (unsigned i = 0; i < WORKERS; i++)
        close(sockets_accept(other_listening));
    close_spares();
}

/* 0: no upstream keeps any; 1: no listener uses the upstream. */
TEST_EACH(spares, spares_are_not_opened_unless_configured, 2)
{
    if (_i == 0) {
        upstreams[0].spare.keep = upstreams[1].spare.keep = 0;
    } else {
        listener.service = LISTENER_ECHO;
        listener.upstream = NULL;
    }
    start();
    PAUSE_MS(50);
    ck_assert_uint_le(process_loops(), 2); /* no worker was started for them */
    ck_assert(!has_client(listening));
    ck_assert(!has_client(other_listening));
}

TEST(spares, sessions_of_each_worker_use_its_spares)
{
    int clients[WORKERS];

    start();
    accept_spares();
    for (unsigned i = 0; i < WORKERS; i++) { /* one for each worker: they take turns */
        clients[i] = sockets_connect(&address);
        sockets_say(clients[i], "question");
    }
    for (unsigned i = 0; i < WORKERS; i++)
        sockets_hear(spares[i], "question");
    for (unsigned i = 0; i < WORKERS; i++)
        close(clients[i]);
    close_spares();
}

TEST(spares, draining_closes_the_spares)
{
    start();
    accept_spares();
    server_drain(server);
    for (unsigned i = 0; i < WORKERS; i++) {
        char byte;
        ssize_t n = recv(spares[i], &byte, 1, 0);

        ck_assert(n == 0 || (n < 0 && errno == ECONNRESET));
    }
    close_spares();
}
