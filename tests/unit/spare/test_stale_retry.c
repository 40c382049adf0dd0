/*
 * spare/stale_retry: a session whose spare connection the server has closed gets another one, and
 * no byte is lost; unless the client is gone, the session ends, or the server has heard it.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handlers/proxy_protocol.h"
#include "net/descriptor_budget.h"
#include "service/proxy.h"
#include "spare/spare_internal.h"
#include "support/fault.h"
#include "support/host.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct host host;
static struct address address;
/* At max_connections there is no spare beside a session: the next connection is the retry's. */
static struct upstream_server_conf server_conf = {.id = "a",
                                                  .address_text = "there",
                                                  .addresses = &address,
                                                  .n_addresses = 1,
                                                  .weight = 1,
                                                  .max_connections = 1};
static struct upstream_conf conf = {.name = "back",
                                    .servers = &server_conf,
                                    .n_servers = 1,
                                    .connect_timeout_ns = 5 * NS_PER_S,
                                    .spare = {.keep = 1, .max_age_ns = 3600 * NS_PER_S}};
static struct upstream *upstream;
static struct descriptor_budget descriptors;
static struct spare_pools *pools;
static struct spare_pool *pool;
static int listening, client, spare; /* the server's end of the spare connection */
static unsigned before;

static uint64_t counted(enum spare_count what)
{
    return atomic_load(
        &spare_of(membership_now(&upstream->membership)->servers[0])->base.counts[what]);
}

static void setup(void)
{
    struct spare_pools_change *change;

    before = process_descriptors();
    listening = sockets_listen(&address, 16);
    ck_assert_int_eq(
        upstream_create(&upstream, &conf, &(struct upstream_env){.spares = &spare_upstream_ops}),
        0);
    host_open(&host, &proxy_ops, upstream);
    descriptors = (struct descriptor_budget){.max = 1000, .reserve = 10};
    host.owner.net->descriptors = &descriptors;
    ck_assert_int_eq(spare_pools_create(&pools, NULL), 0);
    ck_assert_int_eq(spare_pools_add(pools, host.owner.net, 0, &pool), 0);
    ck_assert_int_eq(spare_pools_prepare(pools, &upstream, 1, &change), 0);
    spare_pools_commit(change);
    host.owner.spares = spare_pool_sessions(pool);
    spare_pools_refresh(pools);
    spare = sockets_accept(listening);
    UNTIL(counted(SPARE_OPENED) == 1);
}

static void do_stop(void *arg)
{
    (void)arg;
    spare_pool_stop(pool);
}

static void close_now(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void teardown(void)
{
    loop_runner_call(host.loop, do_stop, NULL);
    host_close(&host);
    spare_pools_destroy(pools);
    upstream_destroy(upstream);
    close_now(&listening);
    close_now(&client);
    close_now(&spare);
    ck_assert_uint_eq(process_descriptors(), before);
}

/* Its session has the spare connection. */
static void connect_client(void)
{
    client = host_client(&host);
    ck_assert_uint_eq(counted(SPARE_USED), 1);
}

/* The session's other connection, which works. */
static void expect_replaced(const char *question)
{
    int server = sockets_accept(listening);

    sockets_hear(server, question);
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    ck_assert_uint_eq(counted(SPARE_REPLACED), 1);
    close(server);
    sockets_hear_end(client);
}

GROUP(stale, setup, teardown);

TEST(stale, session_uses_the_spare_connection)
{
    connect_client();
    sockets_say(client, "question");
    sockets_hear(spare, "question");
    sockets_say(spare, "answer");
    sockets_hear(client, "answer");
}

enum how { ENDS, RESETS, SPEAKS_AND_ENDS, HOWS };

static void close_spare(enum how how)
{
    if (how == SPEAKS_AND_ENDS)
        sockets_say(spare, "idle for too long");
    if (how == RESETS)
        sockets_reset(spare);
    else
        close(spare);
    spare = -1;
}

TEST_EACH(stale, connection_that_the_server_closes_before_the_first_byte_is_replaced, HOWS)
{
    struct tasks_block block;

    connect_client();
    tasks_block_begin(&block, host.loop); /* the server's bytes and its end are one event */
    close_spare((enum how)_i);
    tasks_block_end(&block);
    UNTIL(counted(SPARE_REPLACED) == 1);
    sockets_say(client, "question");
    expect_replaced("question");
}

/* 0 to 2: the client speaks first; 3 to 5: the server's end comes first. */
TEST_EACH(stale, bytes_of_a_client_that_crossed_the_servers_end_of_file_are_not_lost, 2 * HOWS)
{
    struct tasks_block block;

    connect_client();
    tasks_block_begin(&block, host.loop);
    if (_i >= HOWS)
        close_spare((enum how)(_i - HOWS));
    sockets_say(client, "question");
    if (_i < HOWS)
        close_spare((enum how)_i);
    tasks_block_end(&block);
    expect_replaced("question");
}

TEST_EACH(stale, end_of_file_of_a_client_that_crossed_the_servers_is_not_lost, 2)
{
    struct tasks_block block;
    int server;

    connect_client();
    tasks_block_begin(&block, host.loop);
    if (_i == 1)
        close_spare(ENDS);
    sockets_say(client, "question");
    sockets_end(client);
    if (_i == 0)
        close_spare(ENDS);
    tasks_block_end(&block);
    server = sockets_accept(listening);
    sockets_hear(server, "question");
    sockets_hear_end(server);
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    close(server);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST_EACH(stale, connection_that_got_bytes_of_the_client_is_not_replaced, HOWS)
{
    connect_client();
    sockets_say(client, "question");
    sockets_hear(spare, "question");
    close_spare((enum how)_i);
    if (_i == SPEAKS_AND_ENDS)
        sockets_hear(client, "idle for too long");
    if (_i == RESETS)
        sockets_hear_reset(client);
    else
        sockets_hear_end(client);
    close_now(&client);
    host_expect_end(&host, _i == RESETS ? SESSION_UPSTREAM_RESET : SESSION_UPSTREAM_FIN);
    ck_assert_uint_eq(counted(SPARE_REPLACED), 0);
}

TEST_EACH(stale, session_ended_by_us_or_its_client_gets_no_other_connection, 3)
{
    enum session_reason reason = _i == 0   ? SESSION_CLIENT_RESET
                                 : _i == 1 ? SESSION_DRAIN
                                           : SESSION_IDLE;

    host.conf.idle_timeout_ns = _i == 2 ? 50 * NS_PER_MS : 0;
    connect_client();
    if (reason == SESSION_CLIENT_RESET) {
        sockets_reset(client);
        client = -1;
    } else if (reason == SESSION_DRAIN) {
        host_abort(&host, reason);
    } else {
        sockets_hear_end(client);
        sockets_hear_end(spare);
        close_now(&spare); /* the server's side is closed first */
        PAUSE_MS(50);
        close_now(&client);
    }
    host_expect_end(&host, reason);
    ck_assert_uint_eq(counted(SPARE_REPLACED), 0);
}

TEST(stale, client_is_reset_without_another_connection)
{
    connect_client();
    close_now(&listening);
    close_spare(ENDS);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_CONNECT_REFUSED);
}

/* ---- a PROXY header for the server ---- */

static void setup_header(void)
{
    conf.send_proxy.version = PROXY_HEADER_V1;
    setup();
}

static void teardown_header(void)
{
    teardown();
    conf.send_proxy.version = PROXY_HEADER_NONE;
}

static void hear_header(int server)
{
    char byte = '\0';

    sockets_hear(server, "PROXY TCP4 ");
    while (byte != '\n')
        ck_assert_int_eq(recv(server, &byte, 1, 0), 1);
}

GROUP(header, setup_header, teardown_header);

/* 0: a client; 1: a client that a PROXY header names. */
TEST_EACH(header, header_that_cannot_be_sent_is_sent_on_another_connection, 2)
{
    struct cidr trusted;
    const struct proxy_protocol_conf proxies = {
        .mode = PROXY_PROTOCOL_REQUIRED, .trusted = {&trusted, 1}, .timeout_ns = UNTIL_LIMIT_NS};
    struct proxy_protocol_gate gate = {.conf = &proxies, .listener = "test"};
    int server;

    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    host.service.proxies = _i == 1 ? &gate : NULL;
    if (_i == 0)
        fault_plan(FAULT_SEND, 0, 1, ECONNRESET); /* of the header, as the server has reset it */
    client = host_client(&host);
    if (_i == 1) {
        fault_plan(FAULT_SEND, 1, 1, ECONNRESET);
        sockets_say(client, "PROXY TCP4 127.0.0.2 127.0.0.1 1 2\r\n");
    }
    UNTIL(counted(SPARE_REPLACED) == 1);
    sockets_say(client, "question");
    server = sockets_accept(listening);
    hear_header(server);
    sockets_hear(server, "question");
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    close(server);
    sockets_hear_end(client);
}
