/* service/proxy_tls: a server's connection that fails during the handshake. */
#include <errno.h>
#include <unistd.h>

#include "service/proxy.h"
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
static struct upstream_conf conf = {.name = "back",
                                    .servers = &server_conf,
                                    .n_servers = 1,
                                    .connect_timeout_ns = UNTIL_LIMIT_NS};
static struct upstream *upstream;
static struct tls_handshakes *handshakes;
static int listening, client, server;
static unsigned before;

static void setup(void)
{
    const struct tls_handshakes_conf how = {.max_pending = 16};
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
    client = host_client(&host);
    server = sockets_accept(listening);
}

static void teardown(void)
{
    close(client);
    close(server);
    host_close(&host);
    tls_handshakes_free(handshakes);
    upstream_destroy(upstream);
    tls_slot_release(conf.tls.slot);
    close(listening);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(a_handshake, setup, teardown);

/* After ICMPv6 "parameter problem" a connection that times out fails with EPROTO. */
TEST(a_handshake, whose_connection_fails_as_a_handshake_would_is_over)
{
    fault_plan(FAULT_RECV, 0, 1, EPROTO);
    sockets_say(server, "x");
    host_expect_end(&host, SESSION_UPSTREAM_TLS);
    sockets_hear_reset(client);
    EXPECT_LOG_LINES("cannot connect: TLS handshake failed", 1);
}
