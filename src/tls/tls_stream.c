#include "tls/tls_stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tls/tls_bio.h"
#include "tls/tls_failure.h"
#include "tls/tls_hello.h"

/* Space for the records of 64 KiB; their headers and tags take less than a kilobyte. */
#define TLS_STREAM_OUTPUT_BYTES (66 * 1024)

/*
 * note: handshake messages behind the handshake. KeyUpdate (RFC 8446, 4.6.3), renegotiation and
 * tickets cost arithmetic and memory, but carry no data. A peer may send a burst of
 * TLS_STREAM_BURST of them. It regains one with each TLS_STREAM_TIME_FOR_ONE_NS, however long the
 * connection lasts, and one with each TLS_STREAM_BYTES_FOR_ONE of data. The state is the instant
 * when all will be regained, as in limits/token_bucket.
 */
#define TLS_STREAM_BURST           32
#define TLS_STREAM_TIME_FOR_ONE_NS (100 * NS_PER_MS)
#define TLS_STREAM_BYTES_FOR_ONE   (16 * 1024)

struct tls_stream {
    SSL *ssl;
    struct tls_bio io;
    uint64_t bytes_read;      /* plain bytes */
    uint64_t bytes_paid;      /* part of `bytes_read` that has paid for messages */
    int64_t messages_full_ns; /* see note: handshake messages behind the handshake */
    struct tls_hello *hello;  /* as read by us; NULL: it cannot be read */
    bool has_hello;           /* `hello` is set */
    bool is_open;             /* the handshake is done */
    bool is_flooded;
    bool has_late_message;
    bool failed;
    struct tls_failure *failure; /* NULL: no failure yet */
};

static _Thread_local uint8_t tls_stream_records[TLS_STREAM_OUTPUT_BYTES];

static struct tls_failure *tls_stream_note_failure(struct tls_stream *st)
{
    static const struct tls_failure none = {.alert = -1};

    if (!st->failure && (st->failure = malloc(sizeof(*st->failure))))
        *st->failure = none;
    return st->failure;
}

static void tls_stream_on_info(const SSL *ssl, int where, int value)
{
    struct tls_stream *st = SSL_get_app_data(ssl);
    int alert = value & 0xff;
    struct tls_failure *failure;

    if (!(where & SSL_CB_ALERT) || alert == SSL_AD_CLOSE_NOTIFY || value >> 8 != SSL3_AL_FATAL)
        return;
    failure = tls_stream_note_failure(st);
    if (failure && failure->alert < 0) {
        failure->alert = alert;
        failure->alert_received = (where & SSL_CB_READ) != 0;
    }
}

/* See note: handshake messages behind the handshake. */
static void tls_stream_on_late_message(struct tls_stream *st)
{
    uint64_t regained = (st->bytes_read - st->bytes_paid) / TLS_STREAM_BYTES_FOR_ONE;
    int64_t now_ns = clock_now_ns(), used_ns = st->messages_full_ns - now_ns;

    st->has_late_message = true;
    st->bytes_paid += regained * TLS_STREAM_BYTES_FOR_ONE;
    if (regained < TLS_STREAM_BURST)
        used_ns -= (int64_t)regained * TLS_STREAM_TIME_FOR_ONE_NS;
    if (used_ns < 0 || regained >= TLS_STREAM_BURST)
        used_ns = 0;
    used_ns += TLS_STREAM_TIME_FOR_ONE_NS;
    st->messages_full_ns = now_ns + used_ns;
    st->is_flooded |= used_ns > TLS_STREAM_BURST * TLS_STREAM_TIME_FOR_ONE_NS;
}

static void tls_stream_on_message(int written, int version, int type, const void *data, size_t len,
                                  SSL *ssl, void *arg)
{
    struct tls_stream *st = arg;

    (void)version;
    (void)data;
    (void)len;
    (void)ssl;
    if (!written && type == SSL3_RT_HANDSHAKE && st->is_open)
        tls_stream_on_late_message(st);
}

int tls_stream_create(struct tls_stream **out, struct ssl_st *ssl)
{
    struct tls_stream *st = calloc(1, sizeof(*st));
    BIO *bio = st ? tls_bio_new(&st->io) : NULL;

    if (!bio) {
        SSL_free(ssl);
        free(st);
        return -ENOMEM;
    }
    st->ssl = ssl;
    SSL_set_bio(ssl, bio, bio);
    if (SSL_set_app_data(ssl, st) != 1) {
        tls_stream_free(st);
        return -ENOMEM;
    }
    SSL_set_info_callback(ssl, tls_stream_on_info);
    SSL_set_msg_callback(ssl, tls_stream_on_message);
    SSL_set_msg_callback_arg(ssl, st);
    *out = st;
    return 0;
}

void tls_stream_free(struct tls_stream *st)
{
    if (!st)
        return;
    SSL_free(st->ssl);
    tls_hello_release(st->hello);
    free(st->failure);
    free(st);
}

void tls_stream_set_hello(struct tls_stream *st, struct tls_hello *hello)
{
    MUST(!st->has_hello);
    st->has_hello = true;
    st->hello = hello ? tls_hello_hold(hello) : NULL;
}

bool tls_stream_get_hello(const struct ssl_st *ssl, const struct tls_hello **hello)
{
    const struct tls_stream *st = SSL_get_app_data(ssl);

    *hello = st ? st->hello : NULL;
    return st && st->has_hello;
}

struct ssl_st *tls_stream_ssl(const struct tls_stream *st)
{
    return st->ssl;
}

void tls_stream_input(struct tls_stream *st, const uint8_t *data, size_t len)
{
    st->io.in = data;
    st->io.in_bytes = len;
}

size_t tls_stream_input_left(const struct tls_stream *st)
{
    return st->io.in_bytes;
}

/* The error queue belongs to the thread: an old entry would be taken for one of this call. */
static void tls_stream_begin(struct tls_stream *st)
{
    st->io.out = tls_stream_records;
    st->io.out_bytes = 0;
    st->io.out_capacity = sizeof(tls_stream_records);
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

/* Return the library's last error or, if it refused the certificate, why; NULL: no error. */
static const char *tls_stream_reason(const struct tls_stream *st)
{
    unsigned long error = ERR_peek_last_error();
    long verified = SSL_get_verify_result(st->ssl);

    if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK)
        return X509_verify_cert_error_string(verified);
    return ERR_reason_error_string(error);
}

static void tls_stream_note_text(struct tls_stream *st, const char *reason)
{
    struct tls_failure *failure = tls_stream_note_failure(st);

    if (failure && failure->reason[0] == '\0' && reason)
        snprintf(failure->reason, sizeof(failure->reason), "%s", reason);
}

void tls_stream_note_reason(const struct ssl_st *ssl, const char *reason)
{
    struct tls_stream *st = SSL_get_app_data(ssl);

    if (st)
        tls_stream_note_text(st, reason);
}

static enum tls_stream_result tls_stream_fail(struct tls_stream *st, const char *why)
{
    st->failed = true;
    tls_stream_note_text(st, why ? why : tls_stream_reason(st));
    ERR_clear_error();
    return TLS_STREAM_FAILED;
}

static enum tls_stream_result tls_stream_result(struct tls_stream *st, int rc)
{
    switch (SSL_get_error(st->ssl, rc)) {
    case SSL_ERROR_WANT_READ: return TLS_STREAM_INPUT;
    case SSL_ERROR_WANT_WRITE: return TLS_STREAM_OUTPUT;
    case SSL_ERROR_ZERO_RETURN: return TLS_STREAM_CLOSED;
    default: return tls_stream_fail(st, NULL);
    }
}

enum tls_stream_result tls_stream_handshake(struct tls_stream *st)
{
    int rc;

    if (st->failed)
        return TLS_STREAM_FAILED;
    tls_stream_begin(st);
    rc = SSL_do_handshake(st->ssl);
    if (rc == 1) {
        st->is_open = true;
        return TLS_STREAM_DONE;
    }
    return tls_stream_result(st, rc);
}

/* TLS_ST_EARLY_DATA is the library's name for a server that awaits the client's Finished. */
bool tls_stream_handshake_is_cheap(const struct tls_stream *st)
{
    return SSL_get_state(st->ssl) == TLS_ST_EARLY_DATA &&
           SSL_get_verify_mode(st->ssl) == SSL_VERIFY_NONE;
}

bool tls_stream_is_confirmed(const struct tls_stream *st)
{
    return SSL_version(st->ssl) != TLS1_3_VERSION || SSL_is_server(st->ssl) ||
           st->has_late_message || st->bytes_read > 0;
}

/*
 * After our close_notify the library drops handshake messages, such as tickets of TLS 1.3, one at
 * each call, and reports that call as failed.
 */
static bool tls_stream_dropped_message(const struct tls_stream *st, int rc, size_t left_before)
{
    return SSL_get_error(st->ssl, rc) == SSL_ERROR_SYSCALL && st->io.in_bytes < left_before &&
           SSL_get_shutdown(st->ssl) == SSL_SENT_SHUTDOWN && ERR_peek_error() == 0;
}

enum tls_stream_result tls_stream_read(struct tls_stream *st, uint8_t *out, size_t max, size_t *n)
{
    *n = 0;
    if (st->failed)
        return TLS_STREAM_FAILED;
    tls_stream_begin(st);
    while (*n < max) {
        size_t left = st->io.in_bytes, got;
        int rc = SSL_read_ex(st->ssl, out + *n, max - *n, &got);

        if (st->is_flooded)
            return tls_stream_fail(st, "too many messages without data (KeyUpdate, tickets)");
        if (rc == 1) {
            *n += got;
            st->bytes_read += got;
            if (st->io.in_bytes == 0 && !SSL_has_pending(st->ssl))
                return TLS_STREAM_INPUT; /* another call would say so too, but cost more */
        } else if (!tls_stream_dropped_message(st, rc, left)) {
            return tls_stream_result(st, rc);
        }
    }
    return TLS_STREAM_DONE;
}

/* Each SSL_write_ex() needs space in the output for a whole record, with header and tag. */
enum tls_stream_result tls_stream_write(struct tls_stream *st, const uint8_t *data, size_t len,
                                        size_t *n)
{
    *n = 0;
    if (st->failed)
        return TLS_STREAM_FAILED;
    tls_stream_begin(st);
    while (*n < len) {
        size_t most = len - *n < SSL3_RT_MAX_PLAIN_LENGTH ? len - *n : SSL3_RT_MAX_PLAIN_LENGTH;
        size_t done;
        int rc;

        if (st->io.out_capacity - st->io.out_bytes <
            most + SSL3_RT_MAX_ENCRYPTED_OVERHEAD + SSL3_RT_HEADER_LENGTH)
            return TLS_STREAM_OUTPUT;
        rc = SSL_write_ex(st->ssl, data + *n, most, &done);
        if (rc != 1)
            return tls_stream_fail(st, NULL);
        *n += done;
    }
    return TLS_STREAM_DONE;
}

void tls_stream_shutdown_write(struct tls_stream *st)
{
    tls_stream_begin(st);
    if (!st->failed && SSL_shutdown(st->ssl) < 0)
        ERR_clear_error();
}

void tls_stream_refuse(struct tls_stream *st, int alert, const char *reason)
{
    const uint8_t record[] = {SSL3_RT_ALERT, TLS1_2_VERSION_MAJOR, TLS1_2_VERSION_MINOR, 0, 2,
                              SSL3_AL_FATAL, (uint8_t)alert};
    struct tls_failure *failure = tls_stream_note_failure(st);

    tls_stream_begin(st);
    (void)tls_stream_fail(st, reason);
    if (alert < 0)
        return;
    if (failure)
        failure->alert = alert;
    memcpy(st->io.out, record, sizeof(record));
    st->io.out_bytes = sizeof(record);
}

const uint8_t *tls_stream_output(const struct tls_stream *st, size_t *n)
{
    *n = st->io.out_bytes;
    return st->io.out;
}

const struct tls_failure *tls_stream_failure(const struct tls_stream *st)
{
    static const struct tls_failure unknown = {.alert = -1, .reason = "out of memory"};

    return st->failure ? st->failure : &unknown;
}
