/* upstream/spare_tls: a spare connection whose handshake fails is always told of. */
#include "upstream/spare_tls.h"

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/netloop.h"
#include "support/certificates.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"
#include "upstream/upstream.h"

static struct certificate certificate;
static SSL_CTX *servers;
static SSL *peer;
static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there:1", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf upstream_conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1};
static struct upstream *upstream;
static struct upstream_tls_conf tls_conf;
static struct loop *loop;
static struct netloop *net;
static struct spare_tls_conf conf;
static struct spare_tls *spare;
static int ours, theirs;
static atomic_uint failed, others; /* events */

static void on_event(void *cookie, enum spare_tls_event what, const char *why)
{
    (void)cookie, (void)why;
    if (what == SPARE_TLS_FAILED)
        spare_tls_close(spare);
    atomic_fetch_add(what == SPARE_TLS_FAILED ? &failed : &others, 1);
}

static void setup(void)
{
    static const struct tls_profile_conf profile_conf = {.name = "c", .for_servers = true};
    const struct tls_handshakes_conf pool = {.threads = 1, .max_pending = 8};
    struct tls_profile *profile;
    char why[256];

    certificates_make(&certificate, &(struct certificate_wish){.name = "a.example"});
    servers = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(servers, certificate.x509);
    SSL_CTX_use_PrivateKey(servers, certificate.key);
    SSL_CTX_set_max_proto_version(servers, TLS1_2_VERSION);
    ck_assert_msg(tls_profile_load(&profile_conf, &profile, why, sizeof(why)) == 0, "%s", why);
    ck_assert_int_eq(tls_slot_create(&tls_conf.slot, profile), 0);
    sockets_loopback(&address, 1);
    ck_assert_int_eq(upstream_create(&upstream, &upstream_conf, NULL), 0);
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    conf = (struct spare_tls_conf){.net = net,
                                   .tls = &tls_conf,
                                   .server = membership_now(&upstream->membership)->servers[0],
                                   .deadline_ns = clock_now_ns() + 3600 * NS_PER_S,
                                   .event = on_event};
    ck_assert_int_eq(tls_handshakes_start(&pool, &conf.handshakes), 0);
    atomic_store(&failed, 0);
    atomic_store(&others, 0);
    sockets_tcp(&ours, &theirs);
}

static void teardown(void)
{
    tls_handshakes_stop(conf.handshakes);
    loop_runner_stop(loop);
    netloop_destroy(net);
    loop_destroy(loop);
    tls_handshakes_free(conf.handshakes);
    upstream_destroy(upstream);
    tls_slot_release(tls_conf.slot);
    SSL_free(peer);
    SSL_CTX_free(servers);
    certificates_free(&certificate);
}

static void do_begin(void *arg)
{
    (void)arg;
    ck_assert_int_eq(spare_tls_begin(&spare, &conf, ours), 0);
}

/* Answer the ClientHello. */
static void answer(void)
{
    char bytes[16384];
    ssize_t n = recv(theirs, bytes, sizeof(bytes), 0);

    ck_assert_int_gt(n, 0);
    peer = SSL_new(servers);
    SSL_set_bio(peer, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    BIO_write(SSL_get_rbio(peer), bytes, (int)n);
    (void)SSL_accept(peer);
    n = BIO_read(SSL_get_wbio(peer), bytes, sizeof(bytes));
    ck_assert_int_gt(n, 0);
    sockets_say_bytes(theirs, bytes, (size_t)n);
}

GROUP(a_handshake, setup, teardown);

TEST(a_handshake, that_cannot_be_written_fails_once)
{
    loop_runner_call(loop, do_begin, NULL);
    UNTIL(recv(theirs, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
    shutdown(ours, SHUT_WR);
    answer();
    PAUSE_MS(50);
    close(theirs);
    UNTIL(atomic_load(&failed) == 1);
    ck_assert_uint_eq(atomic_load(&others), 0);
}
