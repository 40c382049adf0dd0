/* tls/tls_handler: a channel that speaks TLS, against the library on a blocking socket. */
#include "tls/tls_handler.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/busy_pool.h"
#include "support/certificates.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/suite.h"
#include "support/until.h"
#include "tls/tls_counters.h"
#include "tls/tls_failure.h"
#include "tls/tls_hello.h"
#include "tls/tls_handshakes.h"
#include "tls/tls_stream.h"

#define NO_RESULT 1

static struct certificate certificate;
static SSL_CTX *servers, *clients;
static struct tls_counters counters;
static struct tls_handler_conf conf;
static struct tls_handler tls;
static SSL *peer;
static atomic_int result; /* of done() */
static atomic_bool keep;  /* done() does not release the handler */

static void on_done(struct tls_handler *t, int error)
{
    atomic_store(&result, error);
    if (error == 0 && !atomic_load(&keep))
        tls_handler_release(t);
    else if (error < 0 && error != -EBUSY)
        channel_end(t->handler.channel, CHANNEL_END_FLUSH);
}

static struct ssl_st *choose(struct tls_handler *t)
{
    SSL *ssl = SSL_new(servers);

    (void)t;
    SSL_set_accept_state(ssl);
    return ssl;
}

static void do_add(void *arg)
{
    struct probe *p = arg;

    tls = (struct tls_handler){.accepts = true,
                               .choose = choose,
                               .done = on_done,
                               .deadline_ns = clock_now_ns() + 60 * NS_PER_S};
    ck_assert_int_eq(tls_handler_add(&tls, &p->channel, NULL, &conf), 0);
}

/* Start the pool and the channel. */
static void start(unsigned threads, unsigned max_pending)
{
    struct tls_handshakes_conf how = {.threads = threads, .max_pending = max_pending};

    ck_assert_int_eq(tls_handshakes_start(&how, &conf.handshakes), 0);
    loop_runner_call(probe.net->loop, do_add, &probe);
    probe_start(&probe);
}

static void setup(void)
{
    certificates_make(&certificate, &(struct certificate_wish){.name = "a.example"});
    servers = SSL_CTX_new(TLS_server_method());
    clients = SSL_CTX_new(TLS_client_method());
    SSL_CTX_use_certificate(servers, certificate.x509);
    SSL_CTX_use_PrivateKey(servers, certificate.key);
    SSL_CTX_set_options(servers, SSL_OP_NO_RENEGOTIATION);
    counters = (struct tls_counters){0};
    conf = (struct tls_handler_conf){.counters = &counters};
    atomic_store(&result, NO_RESULT);
    atomic_store(&keep, false);
    probe_connect();
}

static void teardown(void)
{
    tls_handshakes_stop(conf.handshakes);
    SSL_free(peer);
    peer = NULL;
    probe_disconnect();
    tls_hello_release(tls.hello);
    tls_handshakes_free(conf.handshakes);
    SSL_CTX_free(servers);
    SSL_CTX_free(clients);
    certificates_free(&certificate);
}

static void connect_peer(int version)
{
    peer = SSL_new(clients);
    SSL_set_min_proto_version(peer, version);
    SSL_set_max_proto_version(peer, version);
    SSL_set_fd(peer, probe.peer);
    ck_assert_int_eq(SSL_connect(peer), 1);
}

static void expect_result(int expected)
{
    UNTIL(atomic_load(&result) != NO_RESULT);
    ck_assert_int_eq(atomic_load(&result), expected);
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

GROUP(a_channel, setup, teardown);

/* ${_i}: version, threads. */
TEST_EACH(a_channel, reads_and_writes_plain_bytes, 4)
{
    char text[6];

    start((unsigned)_i / 2, 16);
    connect_peer(versions[_i % 2]);
    ck_assert_int_eq(SSL_write(peer, "hello", 5), 5);
    UNTIL(probe_read(&probe) == 5);
    ck_assert_mem_eq(buffer_front(&probe.read), "hello", 5);
    ck_assert_int_eq(probe_write(&probe, "world", 5), 0);
    ck_assert_int_eq(SSL_read(peer, text, sizeof(text)), 5);
    ck_assert_mem_eq(text, "world", 5);
    ck_assert_uint_eq(counters.full, 1);
}

TEST_EACH(a_channel, close_notify_is_an_end_of_file_and_writing_goes_on, 2)
{
    char byte;

    start(1, 16);
    connect_peer(versions[_i]);
    SSL_shutdown(peer);
    probe_wait(&probe, PROBE_EOF);
    ck_assert_int_eq(probe_write(&probe, "x", 1), 0);
    probe_do(&probe, channel_shutdown_write);
    ck_assert_int_eq(SSL_read(peer, &byte, 1), 1);
    ck_assert_int_eq(SSL_read(peer, &byte, 1), 0);
    ck_assert_int_eq(SSL_get_shutdown(peer), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    ck_assert_int_eq(recv(probe.peer, &byte, 1, 0), 0);
    probe_expect_closed(&probe, 0, "aec");
    ck_assert_uint_eq(counters.truncated, 0);
}

TEST(a_channel, closed_channel_refuses_bytes)
{
    start(1, 16);
    connect_peer(TLS1_3_VERSION);
    expect_result(0);
    probe_abort(&probe, 0);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe_write(&probe, "late", 4), -EPIPE);
}

/* ${_i}: is a truncated stream a reset? */
TEST_EACH(a_channel, end_of_file_without_close_notify_is_counted, 2)
{
    conf.truncated_is_reset = _i == 1;
    start(1, 16);
    connect_peer(TLS1_3_VERSION);
    expect_result(0);
    shutdown(probe.peer, SHUT_WR);
    probe_wait(&probe, _i == 1 ? PROBE_REJECTED : PROBE_EOF);
    ck_assert_uint_eq(counters.truncated, 1);
}

static void do_release(struct channel *ch)
{
    (void)ch;
    tls_handler_release(&tls);
}

/* The bytes, close_notify and end of file are all there before the release. */
TEST(a_channel, channel_released_late_loses_no_bytes)
{
    atomic_store(&keep, true);
    start(1, 16);
    connect_peer(TLS1_3_VERSION);
    SSL_write(peer, "early", 5);
    SSL_shutdown(peer);
    shutdown(probe.peer, SHUT_WR);
    expect_result(0);
    ck_assert_str_eq(probe_events(&probe), "");
    probe_do(&probe, do_release);
    probe_wait(&probe, PROBE_EOF);
    ck_assert_uint_eq(probe_read(&probe), 5);
    ck_assert_uint_eq(counters.truncated, 0);
}

/* ${_i}: bytes of a ClientHello. */
TEST_EACH(a_channel, partial_hello_takes_no_thread, 40)
{
    struct tls_handshakes_stats stats;
    uint8_t record[45] = {22, 3, 1, 0, 40, 1, 0, 0, 36};

    start(1, 16);
    ck_assert_int_eq(send(probe.peer, record, (size_t)_i + 5, 0), _i + 5);
    UNTIL(probe_in(&probe) == (size_t)_i + 5);
    tls_handshakes_stats(conf.handshakes, &stats);
    ck_assert_uint_eq(stats.steps_run + stats.steps_pending + stats.threads, 0);
    shutdown(probe.peer, SHUT_WR);
    expect_result(-ECONNRESET);
}

TEST(a_channel, peer_that_closes_without_a_byte_is_told_from_a_failure)
{
    start(1, 16);
    shutdown(probe.peer, SHUT_WR);
    expect_result(-ENODATA);
}

TEST(a_channel, peer_that_sends_no_tls_gets_an_alert_and_a_close)
{
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    uint8_t alert[8];

    start(1, 16);
    ck_assert_int_eq(send(probe.peer, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    expect_result(-EPROTO);
    ck_assert_uint_eq(counters.failed, 1);
    ck_assert_int_ge(recv(probe.peer, alert, sizeof(alert), 0), 0);
}

/* Steps wait behind one that occupies the only thread. */
static void occupy_pool(unsigned max_pending)
{
    start(1, max_pending);
    busy_pool_begin(conf.handshakes);
}

static void send_hello(void)
{
    BIO *out = BIO_new(BIO_s_mem());
    char *hello;
    long n;

    peer = SSL_new(clients);
    SSL_set_bio(peer, BIO_new(BIO_s_mem()), out);
    SSL_connect(peer);
    n = BIO_get_mem_data(out, &hello);
    ck_assert_int_eq(send(probe.peer, hello, (size_t)n, 0), n);
}

TEST(a_channel, channel_that_ends_during_a_step_leaves_its_stream_to_the_thread)
{
    occupy_pool(16);
    send_hello();
    UNTIL(busy_pool_pending(conf.handshakes) == 1);
    probe_abort(&probe, 0);
    probe_wait(&probe, PROBE_CLOSED);
    busy_pool_queue(conf.handshakes, true);
    busy_pool_end();
    busy_pool_wait_run();
    ck_assert_int_eq(atomic_load(&result), NO_RESULT);
    ck_assert_int_eq(SSL_CTX_sess_accept(servers), 0); /* handshakes that were begun */
}

/* Late from the beginning, however soon a thread takes it. */
static void do_be_late(struct channel *ch)
{
    (void)ch;
    tls.deadline_ns = clock_now_ns();
}

TEST(a_channel, step_dropped_as_late_is_a_timeout)
{
    start(1, 16);
    probe_do(&probe, do_be_late);
    send_hello();
    expect_result(-ETIMEDOUT);
    ck_assert_uint_eq(atomic_load(&counters.timed_out), 1);
    ck_assert_uint_eq(atomic_load(&counters.failed), 0);
    ck_assert_int_eq(SSL_CTX_sess_accept(servers), 0);
}

static void do_retry(struct channel *ch)
{
    (void)ch;
    tls_handler_retry(&tls);
}

/* A ClientHello comes when the pool is full; then the pool has room. */
static void refuse_hello(void)
{
    occupy_pool(1);
    busy_pool_queue(conf.handshakes, true);
    send_hello();
    expect_result(-EBUSY);
    busy_pool_end();
    UNTIL(busy_pool_pending(conf.handshakes) == 0);
}

TEST(a_channel, channel_refused_by_the_pool_may_retry)
{
    refuse_hello();
    atomic_store(&result, NO_RESULT);
    probe_do(&probe, do_retry);
    UNTIL(poll(&(struct pollfd){.fd = probe.peer, .events = POLLIN}, 1, 0) == 1);
}

static void do_expect_refused(struct channel *ch)
{
    (void)ch;
    ck_assert(tls.is_refused && !tls.in_step);
}

TEST(a_channel, channel_refused_by_the_pool_begins_no_step_before_the_retry)
{
    size_t hello;

    refuse_hello();
    hello = probe_in(&probe);
    SSL_free(peer);
    send_hello();
    UNTIL(probe_in(&probe) == 2 * hello);
    probe_do(&probe, do_expect_refused);
    atomic_store(&result, NO_RESULT);
    probe_do(&probe, do_retry);
    expect_result(-EPROTO); /* a second ClientHello */
}

/* Let ${peer} go on with the handshake as far as it gets without waiting; true: it is done. */
static bool shake_hands(void)
{
    int flags = fcntl(probe.peer, F_GETFL), rc;

    fcntl(probe.peer, F_SETFL, flags | O_NONBLOCK);
    rc = SSL_connect(peer);
    fcntl(probe.peer, F_SETFL, flags);
    return rc == 1;
}

/* Let ${peer} send its ClientHello, and read no answer, however soon it comes. */
static void say_hello(void)
{
    BIO *nothing = BIO_new(BIO_s_mem());

    BIO_set_mem_eof_return(nothing, -1);
    SSL_set0_rbio(peer, nothing);
    ck_assert(!shake_hands());
    SSL_set0_rbio(peer, BIO_new_socket(probe.peer, BIO_NOCLOSE));
}

TEST(a_channel, channel_whose_later_step_was_refused_completes_after_the_retry)
{
    start(1, 1);
    peer = SSL_new(clients);
    SSL_set_max_proto_version(peer, TLS1_2_VERSION);
    SSL_set_fd(peer, probe.peer);
    say_hello();
    UNTIL(poll(&(struct pollfd){.fd = probe.peer, .events = POLLIN}, 1, 0) == 1);
    busy_pool_begin(conf.handshakes);
    busy_pool_queue(conf.handshakes, false);
    ck_assert(!shake_hands());
    expect_result(-EBUSY);
    busy_pool_end();
    UNTIL(busy_pool_pending(conf.handshakes) == 0);
    atomic_store(&result, NO_RESULT);
    probe_do(&probe, do_retry);
    ck_assert_int_eq(SSL_connect(peer), 1);
    ck_assert_int_eq(SSL_write(peer, "hello", 5), 5);
    UNTIL(probe_read(&probe) == 5);
    ck_assert_uint_eq(counters.failed, 0);
}

/* Write on until nothing was taken for a while, at most ${most}; returns how much was taken. */
static size_t stuff_peer(int (*write_some)(const void *data, int len), size_t most)
{
    static const uint8_t data[16 * 1024];
    int flags = fcntl(probe.peer, F_GETFL);
    size_t n = 0;

    fcntl(probe.peer, F_SETFL, flags | O_NONBLOCK);
    while (n < most && poll(&(struct pollfd){.fd = probe.peer, .events = POLLOUT}, 1, 200) == 1) {
        int rc = write_some(data, sizeof(data));

        n += rc > 0 ? (size_t)rc : 0;
    }
    fcntl(probe.peer, F_SETFL, flags);
    return n;
}

static int send_some(const void *data, int len)
{
    return (int)send(probe.peer, data, (size_t)len, 0);
}

static int write_some(const void *data, int len)
{
    return SSL_write(peer, data, len);
}

#define MANY (32 * 1024 * 1024)

TEST(a_channel, channel_that_waits_for_its_step_holds_at_most_a_handshake)
{
    occupy_pool(16);
    send_hello();
    UNTIL(busy_pool_pending(conf.handshakes) == 1);
    stuff_peer(send_some, MANY);
    ck_assert_uint_le(probe_in(&probe), 2 * TLS_HANDLER_MAX_BYTES);
    busy_pool_end();
    expect_result(-EPROTO);
}

static int accept_all(int ok, X509_STORE_CTX *store)
{
    (void)ok;
    (void)store;
    return 1;
}

TEST(a_channel, channel_that_waited_for_a_step_gets_all_bytes_received_meanwhile)
{
    size_t n;

    SSL_CTX_set_verify(servers, SSL_VERIFY_PEER, accept_all);
    SSL_CTX_use_certificate(clients, certificate.x509);
    SSL_CTX_use_PrivateKey(clients, certificate.key);
    start(1, 16);
    peer = SSL_new(clients);
    SSL_set_mode(peer, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_fd(peer, probe.peer);
    say_hello();
    UNTIL(poll(&(struct pollfd){.fd = probe.peer, .events = POLLIN}, 1, 0) == 1);
    busy_pool_begin(conf.handshakes);
    UNTIL(shake_hands());
    n = stuff_peer(write_some, MANY);
    ck_assert_uint_le(probe_in(&probe), 2 * TLS_HANDLER_MAX_BYTES);
    ck_assert_uint_gt(n, 2 * TLS_HANDLER_MAX_BYTES);
    busy_pool_end();
    expect_result(0);
    UNTIL(probe_read(&probe) >= n);
}
