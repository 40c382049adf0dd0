/* service/proxy_tls: a server's connection that fails during the handshake. */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "service/proxy.h"
#include "support/busy_pool.h"
#include "support/fault.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"
#include "upstream/upstream.h"

static const struct tls_profile_conf profile_conf = {
    .name = "c", .for_servers = true, .verify = TLS_VERIFY_OFF};
static struct host host;
static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there:1", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1, .ejection = {.failures = 3}};
static struct upstream *upstream;
static struct tls_handshakes *handshakes;
static int listening, client, server;
static unsigned before;

static void open_upstream(unsigned threads)
{
    const struct tls_handshakes_conf how = {.threads = threads, .max_pending = 2};
    struct tls_profile *profile;
    char why[256];

    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    listening = sockets_listen(&address, 16);
    ck_assert_msg(tls_profile_load(&profile_conf, &profile, why, sizeof(why)) == 0, "%s", why);
    ck_assert_int_eq(tls_slot_create(&conf.tls.slot, profile), 0);
    ck_assert_int_eq(tls_handshakes_start(&how, &handshakes), 0);
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    upstream->handshakes = handshakes;
    host_open(&host, &proxy_ops, upstream);
}

static void connect_client(void)
{
    client = host_client(&host);
    server = sockets_accept(listening);
}

static void setup(void)
{
    conf.connect_timeout_ns = UNTIL_LIMIT_NS;
    open_upstream(0);
    connect_client();
}

static void teardown(void)
{
    close(client);
    close(server);
    tls_handshakes_stop(handshakes); /* while the loop of the steps exists */
    host_close(&host);
    tls_handshakes_free(handshakes);
    upstream_destroy(upstream);
    tls_slot_release(conf.tls.slot);
    close(listening);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(a_handshake, setup, teardown);

/* After ICMPv6 "parameter problem" a connection that times out fails with EPROTO. */
TEST(a_handshake, read_error_that_looks_like_a_failed_handshake_ends_the_session)
{
    fault_plan(FAULT_RECV, 0, 1, EPROTO);
    sockets_say(server, "x");
    host_expect_end(&host, SESSION_UPSTREAM_TLS);
    sockets_hear_reset(client);
    EXPECT_LOG_LINES("cannot connect: TLS handshake failed", 1);
}

/* ---- a pool that has no thread for it ---- */

static void setup_busy(void)
{
    conf.connect_timeout_ns = 300 * NS_PER_MS;
    open_upstream(1);
    busy_pool_begin(handshakes);
}

static void teardown_busy(void)
{
    busy_pool_end();
    teardown();
}

GROUP(a_busy_pool, setup_busy, teardown_busy);

/* 0: the step waits in the queue; 1: the queue is full. */
TEST_EACH(a_busy_pool, handshake_without_a_thread_in_time_is_no_failure_of_the_server, 2)
{
    for (int i = 0; i < 2 * _i; i++)
        busy_pool_queue(handshakes, true);
    connect_client();
    host_expect_end(&host, SESSION_UPSTREAM_TLS);
    EXPECT_LOG_LINES("cannot connect: TLS handshake failed: it had no thread in time", 1);
    ck_assert_uint_eq(
        atomic_load(&membership_now(&upstream->membership)->servers[0]->ejection.failures), 0);
}
