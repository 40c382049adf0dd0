/* spare/spare_tls: spare connections whose TLS handshake fails, or is not sent whole. */
#include "spare/spare_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/netloop.h"
#include "spare/spare_internal.h"
#include "support/busy_pool.h"
#include "support/certificates.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"
#include "tls/tls_stream.h"

static struct tls_profile_conf profile_conf = {
    .name = "c", .for_servers = true, .verify = TLS_VERIFY_OFF};
static const struct tls_handshakes_conf handshakes_conf = {.threads = 1, .max_pending = 16};
static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there:1", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf conf = {.name = "back",
                                    .servers = &server_conf,
                                    .n_servers = 1,
                                    .connect_timeout_ns = UNTIL_LIMIT_NS,
                                    .spare = {.keep = 1, .max_age_ns = UNTIL_LIMIT_NS}};
static struct upstream *upstream;
static struct upstream_server *server;
static struct loop *loop;
static struct netloop *net;
static struct tls_handshakes *handshakes;
static struct spare_pools *pools;
static struct spare_pool *pool;
static int listening, accepted;
static unsigned before;

static void do_nothing(void *arg)
{
    (void)arg;
}

static void setup(void)
{
    struct tls_profile *profile;
    char why[256];

    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    listening = sockets_listen(&address, 64);
    ck_assert_msg(tls_profile_load(&profile_conf, &profile, why, sizeof(why)) == 0, "%s", why);
    ck_assert_int_eq(tls_slot_create(&conf.tls.slot, profile), 0);
    ck_assert_int_eq(tls_handshakes_start(&handshakes_conf, &handshakes), 0);
    ck_assert_int_eq(
        upstream_create(&upstream, &conf, &(struct upstream_env){.spares = &spare_upstream_ops}),
        0);
    upstream->handshakes = handshakes;
    server = membership_now(&upstream->membership)->servers[0];
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    loop_runner_call(loop, do_nothing, NULL); /* it has a thread */
}

static void open_pool(void)
{
    struct spare_pools_change *change;

    ck_assert_int_eq(spare_pools_create(&pools, NULL), 0);
    ck_assert_int_eq(spare_pools_add(pools, net, 0, &pool), 0);
    ck_assert_int_eq(spare_pools_prepare(pools, &upstream, 1, &change), 0);
    spare_pools_commit(change);
    spare_pools_refresh(pools);
    accepted = sockets_accept(listening);
}

static void do_stop(void *arg)
{
    (void)arg;
    spare_pool_stop(pool);
}

static void teardown(void)
{
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
    loop_runner_call(loop, do_stop, NULL);
    loop_runner_stop(loop);
    tls_handshakes_stop(handshakes);
    ck_assert_uint_eq(ref_count(&server->references), 1);
    spare_pools_destroy(pools);
    netloop_destroy(net);
    loop_destroy(loop);
    tls_handshakes_free(handshakes);
    upstream_destroy(upstream);
    tls_slot_release(conf.tls.slot);
    close(accepted);
    close(listening);
    ck_assert_uint_eq(process_descriptors(), before);
}

static uint64_t failed(void)
{
    return atomic_load(&spare_of(server)->base.counts[SPARE_FAILED]);
}

GROUP(a_handshake, setup, teardown);

TEST(a_handshake, handshake_that_cannot_start_closes_the_connection)
{
    fault_plan(FAULT_PTHREAD_CREATE, 0, FAULT_ALWAYS, EAGAIN);
    open_pool();
    sockets_hear_end(accepted);
    UNTIL(failed() > 0);
    EXPECT_LOG_LINES("cannot open a spare connection", 1);
}

/* ---- a step that waits for its thread ---- */

/* Our end of the connection that ${fd} is the other end of. */
static int our_end(int fd)
{
    struct address theirs = {.len = sizeof(theirs.u)};

    ck_assert_int_eq(getpeername(fd, &theirs.u.sa, &theirs.len), 0);
    for (int i = 3; i < 1024; i++) {
        struct address ours = {.len = sizeof(ours.u)};

        if (getsockname(i, &ours.u.sa, &ours.len) == 0 && address_equal(&ours, &theirs))
            return i;
    }
    ck_abort_msg("no end of it is ours");
}

TEST(a_handshake, handshake_whose_first_message_cannot_be_sent_fails_and_is_retried)
{
    busy_pool_begin(handshakes);
    open_pool();
    UNTIL(busy_pool_pending(handshakes) == 1);
    ck_assert_int_eq(shutdown(our_end(accepted), SHUT_WR), 0); /* as if the server had reset it */
    busy_pool_end();
    UNTIL(failed() == 1);
    close(accepted);
    accepted = sockets_accept(listening);
}

/* ---- an open connection ---- */

static struct certificate own;
static SSL_CTX *servers;

static void setup_servers(void)
{
    setup();
    certificates_make(&own, &(struct certificate_wish){.name = "there"});
    servers = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(servers, own.x509);
    SSL_CTX_use_PrivateKey(servers, own.key);
    SSL_CTX_set_num_tickets(servers, 0);
}

static void teardown_servers(void)
{
    teardown();
    SSL_CTX_free(servers);
    certificates_free(&own);
}

/* Open the pool; the result is the server's end of its connection, whose handshake is not done. */
static SSL *open_peer(void)
{
    SSL *peer = SSL_new(servers);

    open_pool();
    SSL_set_fd(peer, accepted);
    ck_assert_int_eq(fcntl(accepted, F_SETFL, O_NONBLOCK), 0);
    return peer;
}

static void do_take_and_close(void *arg)
{
    struct session_spare taken;

    *(bool *)arg = spare_take(pool, server, &taken);
    if (!*(bool *)arg)
        return;
    tls_stream_free(taken.tls.stream);
    endpoint_release_addresses(taken.addresses);
    close(taken.fd);
}

GROUP(open_tls, setup_servers, teardown_servers);

TEST(open_tls, spare_is_taken_by_the_next_session)
{
    SSL *peer = open_peer();
    bool is_taken = false;

    UNTIL(SSL_accept(peer) == 1);
    UNTIL(atomic_load(&spare_of(server)->base.counts[SPARE_OPENED]) == 1);
    loop_runner_call(loop, do_take_and_close, &is_taken);
    ck_assert(is_taken);
    SSL_free(peer);
}

TEST(open_tls, spare_rejected_after_the_handshake_counts_as_failed)
{
    SSL *peer;

    SSL_CTX_set_verify(servers, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    peer = open_peer();
    UNTIL(SSL_accept(peer) <= 0 && SSL_get_error(peer, -1) == SSL_ERROR_SSL);
    UNTIL(failed() == 1);
    EXPECT_LOG_LINES("cannot open a spare connection: ", 1);
    EXPECT_LOG_LINES("certificate required", 1);
    SSL_free(peer);
}

/* ---- a certificate that the kernel does not take whole ---- */

#define HOSTS 4000

static struct certificate certificate;

static void setup_certificate(void)
{
    static char hosts[16 * HOSTS];
    static const char *paths[] = {"c.pem"};
    size_t n = 0;

    text_file_enter();
    for (unsigned i = 0; i < HOSTS; i++)
        n += (size_t)sprintf(hosts + n, "%sDNS:a%04u.b", i > 0 ? "," : "", i);
    certificates_make(&certificate, &(struct certificate_wish){.name = "c", .hosts = hosts});
    certificates_write("c.pem", "ck", &certificate, &certificate);
    profile_conf.certificates = (struct tls_paths){paths, 1};
    conf.connect.sock.options.send_buffer_bytes = 4096;
    setup_servers();
    SSL_CTX_set_verify(servers, SSL_VERIFY_PEER, NULL);
    sockets_small(listening);
}

static void teardown_certificate(void)
{
    teardown_servers();
    certificates_free(&certificate);
    text_file_leave();
}

static void do_take(void *arg)
{
    struct session_spare taken;

    *(bool *)arg = spare_take(pool, server, &taken);
}

GROUP(a_large_certificate, setup_certificate, teardown_certificate);

TEST(a_large_certificate, client_certificate_is_sent_before_the_connection_is_taken)
{
    SSL *peer = open_peer();
    bool is_taken = true;

    /* Once it has sent its certificate it reads no more. */
    UNTIL(SSL_accept(peer) <= 0 && SSL_get_state(peer) == TLS_ST_EARLY_DATA);
    UNTIL(atomic_load(&spare_of(server)->base.counts[SPARE_OPENED]) == 1);
    loop_runner_call(loop, do_take, &is_taken);
    ck_assert(!is_taken);
    SSL_free(peer);
}
