/* tls/tls_stream: two streams, one at each end, and what a hostile or old peer does. */
#include "tls/tls_stream.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "support/certificates.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "tls/tls_failure.h"

enum { CLIENT, SERVER };

struct end {
    struct tls_stream *stream;
    struct buffer in; /* records that the other end has sent */
};

static struct certificate certificate;
static SSL_CTX *contexts[2];
static struct end ends[2];

static void open_streams(int version)
{
    for (int i = 0; i < 2; i++) {
        SSL *ssl = SSL_new(contexts[i]);

        SSL_set_min_proto_version(ssl, version);
        SSL_set_max_proto_version(ssl, version);
        if (i == SERVER)
            SSL_set_accept_state(ssl);
        else
            SSL_set_connect_state(ssl);
        ck_assert_int_eq(tls_stream_create(&ends[i].stream, ssl), 0);
        buffer_init(&ends[i].in);
    }
}

static void setup(void)
{
    certificates_make(&certificate, &(struct certificate_wish){.name = "a.example"});
    contexts[CLIENT] = SSL_CTX_new(TLS_client_method());
    contexts[SERVER] = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(contexts[SERVER], certificate.x509);
    SSL_CTX_use_PrivateKey(contexts[SERVER], certificate.key);
    for (int i = 0; i < 2; i++)
        SSL_CTX_set_options(contexts[i], SSL_OP_NO_RENEGOTIATION);
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        tls_stream_free(ends[i].stream);
        ends[i].stream = NULL;
        buffer_clear(&ends[i].in);
        SSL_CTX_free(contexts[i]);
    }
    certificates_free(&certificate);
}

/* What the last call of ${from} made goes to the other end. */
static void deliver(int from)
{
    size_t n;
    const uint8_t *records = tls_stream_output(ends[from].stream, &n);

    ck_assert_int_eq(buffer_append(&ends[!from].in, records, n), 0);
}

/* At most ${most} bytes at a time; true: the handshake of this end is done. */
static bool shake(int at, size_t most)
{
    struct buffer *in = &ends[at].in;
    enum tls_stream_result result = TLS_STREAM_INPUT;

    do {
        size_t n = buffer_bytes(in) < most ? buffer_bytes(in) : most;

        tls_stream_input(ends[at].stream, buffer_front(in), n);
        result = tls_stream_handshake(ends[at].stream);
        ck_assert_int_ne(result, TLS_STREAM_FAILED);
        deliver(at);
        buffer_consume(in, n - tls_stream_input_left(ends[at].stream));
    } while (result == TLS_STREAM_INPUT && buffer_bytes(in) > 0);
    return result == TLS_STREAM_DONE;
}

static void shake_hands(int version, size_t most)
{
    bool done[2] = {false, false};

    open_streams(version);
    for (int turns = 0; turns < 8 && !(done[CLIENT] && done[SERVER]); turns++)
        done[turns % 2] |= shake(turns % 2, most);
    ck_assert(done[CLIENT] && done[SERVER]);
}

/* Read all that has arrived at ${at}, ${most} bytes of records at a time, behind ${got}. */
static enum tls_stream_result receive(int at, size_t most, struct buffer *got)
{
    static uint8_t plain[64 * 1024];
    struct buffer *in = &ends[at].in;
    enum tls_stream_result result = TLS_STREAM_INPUT;

    while (buffer_bytes(in) > 0 && (result == TLS_STREAM_INPUT || result == TLS_STREAM_DONE)) {
        size_t n = buffer_bytes(in) < most ? buffer_bytes(in) : most, read;

        tls_stream_input(ends[at].stream, buffer_front(in), n);
        do {
            result = tls_stream_read(ends[at].stream, plain, sizeof(plain), &read);
            ck_assert_int_eq(buffer_append(got, plain, read), 0);
            deliver(at);
        } while (result == TLS_STREAM_DONE);
        buffer_consume(in, n - tls_stream_input_left(ends[at].stream));
    }
    return result;
}

static void send_all(int from, const uint8_t *data, size_t len)
{
    enum tls_stream_result result;
    size_t n;

    do {
        result = tls_stream_write(ends[from].stream, data, len, &n);
        deliver(from);
        data += n;
        len -= n;
    } while (result == TLS_STREAM_OUTPUT);
    ck_assert_int_eq(result, TLS_STREAM_DONE);
    ck_assert_uint_eq(len, 0);
}

GROUP(stream, setup, teardown);

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

TEST_EACH(stream, a_handshake_of_single_bytes_succeeds, 2)
{
    shake_hands(versions[_i], 1);
}

TEST_EACH(stream, bytes_arrive_whole_both_ways_at_any_split_of_records, 6)
{
    static const size_t splits[] = {1, 1000, SIZE_MAX};
    static uint8_t data[IF_SANITIZED(20, 100) * 1000]; /* several records */

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + i / 251);
    shake_hands(versions[_i % 2], SIZE_MAX);
    for (int from = 0; from < 2; from++) {
        struct buffer got;

        buffer_init(&got);
        send_all(from, data, sizeof(data));
        ck_assert_int_eq(receive(!from, splits[_i / 2], &got), TLS_STREAM_INPUT);
        ck_assert_uint_eq(buffer_bytes(&got), sizeof(data));
        ck_assert_mem_eq(buffer_front(&got), data, sizeof(data));
        buffer_clear(&got);
    }
}

TEST_EACH(stream, one_write_fills_at_most_the_output_and_returns_the_bytes_taken, 2)
{
    static uint8_t data[200 * 1000];
    size_t n, records;

    shake_hands(versions[_i], SIZE_MAX);
    ck_assert_int_eq(tls_stream_write(ends[CLIENT].stream, data, sizeof(data), &n),
                     TLS_STREAM_OUTPUT);
    tls_stream_output(ends[CLIENT].stream, &records);
    ck_assert_uint_ge(n, 48 * 1024);
    ck_assert_uint_lt(n, records);
}

TEST_EACH(stream, close_notify_ends_one_direction_only, 4)
{
    int from = _i / 2;
    struct buffer got;

    buffer_init(&got);
    shake_hands(versions[_i % 2], SIZE_MAX);
    tls_stream_shutdown_write(ends[from].stream);
    deliver(from);
    ck_assert_int_eq(receive(!from, SIZE_MAX, &got), TLS_STREAM_CLOSED);
    send_all(!from, (const uint8_t *)"late", 4);
    tls_stream_shutdown_write(ends[!from].stream);
    deliver(!from);
    ck_assert_int_eq(receive(from, SIZE_MAX, &got), TLS_STREAM_CLOSED);
    ck_assert_uint_eq(buffer_bytes(&got), 4);
    buffer_clear(&got);
}

/* The client has not read the server's tickets yet. */
TEST(stream, bytes_behind_tickets_arrive_after_our_close_notify)
{
    struct buffer got;

    buffer_init(&got);
    shake_hands(TLS1_3_VERSION, SIZE_MAX);
    tls_stream_shutdown_write(ends[CLIENT].stream);
    send_all(SERVER, (const uint8_t *)"bytes", 5);
    ck_assert_int_eq(receive(CLIENT, SIZE_MAX, &got), TLS_STREAM_INPUT);
    ck_assert_uint_eq(buffer_bytes(&got), 5);
    buffer_clear(&got);
}

static enum tls_stream_result flood(unsigned updates, size_t bytes)
{
    static const uint8_t zeros[16 * 1024];
    SSL *ssl = tls_stream_ssl(ends[CLIENT].stream);
    enum tls_stream_result result = TLS_STREAM_INPUT;
    struct buffer got;

    buffer_init(&got);
    for (unsigned i = 0; i < updates && result == TLS_STREAM_INPUT; i++) {
        SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        send_all(CLIENT, zeros, bytes);
        result = receive(SERVER, SIZE_MAX, &got);
    }
    buffer_clear(&got);
    return result;
}

TEST(stream, key_updates_without_data_are_bounded)
{
    shake_hands(TLS1_3_VERSION, SIZE_MAX);
    ck_assert_int_eq(flood(32, 1), TLS_STREAM_INPUT);
    ck_assert_int_eq(flood(1000, 1), TLS_STREAM_FAILED); /* while this runs, some are regained */
    ck_assert_ptr_nonnull(strstr(tls_stream_failure(ends[SERVER].stream)->reason, "KeyUpdate"));
}

TEST(stream, key_updates_of_a_quiet_peer_are_bounded_by_rate)
{
    const struct timespec for_three = {.tv_nsec = 350000000};

    shake_hands(TLS1_3_VERSION, SIZE_MAX);
    ck_assert_int_eq(flood(32, 1), TLS_STREAM_INPUT);
    for (int i = 0; i < 3; i++) {
        nanosleep(&for_three, NULL);
        ck_assert_int_eq(flood(3, 1), TLS_STREAM_INPUT);
    }
}

TEST(stream, key_updates_between_data_are_unbounded)
{
    shake_hands(TLS1_3_VERSION, SIZE_MAX);
    ck_assert_int_eq(flood(200, 16 * 1024), TLS_STREAM_INPUT);
}

TEST_EACH(stream, altered_record_fails_with_an_alert_and_no_byte_of_it_is_read, 2)
{
    struct buffer got;
    char text[TLS_FAILURE_TEXT_BYTES];

    buffer_init(&got);
    shake_hands(versions[_i], SIZE_MAX);
    buffer_clear(&ends[SERVER].in);
    send_all(CLIENT, (const uint8_t *)"bytes", 5);
    ends[SERVER].in.data[ends[SERVER].in.tail - 1] ^= 1;
    ck_assert_int_eq(receive(SERVER, SIZE_MAX, &got), TLS_STREAM_FAILED);
    ck_assert_uint_eq(buffer_bytes(&got), 0);
    tls_failure_text(tls_stream_failure(ends[SERVER].stream), text, sizeof(text));
    /* The reason is the library's, of OpenSSL before 3.2 and since. */
    if (strcmp(text, "record layer failure (alert sent: bad record mac)") != 0)
        ck_assert_str_eq(text, "decryption failed or bad record mac (alert sent: bad record mac)");
    ck_assert_int_eq(receive(CLIENT, SIZE_MAX, &got), TLS_STREAM_FAILED);
    tls_failure_text(tls_stream_failure(ends[CLIENT].stream), text, sizeof(text));
    ck_assert(strstr(text, "(alert received: bad record mac)"));
}

TEST(stream, input_that_is_no_tls_fails_with_its_reason)
{
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";

    open_streams(TLS1_3_VERSION);
    tls_stream_input(ends[SERVER].stream, (const uint8_t *)request, sizeof(request) - 1);
    ck_assert_int_eq(tls_stream_handshake(ends[SERVER].stream), TLS_STREAM_FAILED);
    ck_assert_str_eq(tls_stream_failure(ends[SERVER].stream)->reason, "http request");
}
