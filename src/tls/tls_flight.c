#include "tls/tls_flight.h"

#include <openssl/ssl.h>

#define TLS_RECORD_HEADER_BYTES 5

/* Longest fragment of a record that is not encrypted, and of one that is (RFC 5246, 6.2.3). */
#define TLS_RECORD_PLAIN_BYTES     (1 << 14)
#define TLS_RECORD_ENCRYPTED_BYTES (TLS_RECORD_PLAIN_BYTES + 2048)

/* Longest first message that the library takes, without its header. */
#define TLS_FLIGHT_FIRST_BYTES (128 * 1024)

enum tls_record_type {
    TLS_RECORD_CHANGE_CIPHER_SPEC = 20,
    TLS_RECORD_ALERT = 21,
    TLS_RECORD_HANDSHAKE = 22,
    TLS_RECORD_APPLICATION_DATA = 23,
};

static const struct tls_fault tls_fault_text = {-1, "plain text, such as HTTP"};
static const struct tls_fault tls_fault_type = {SSL_AD_UNEXPECTED_MESSAGE,
                                                "the first record is no handshake record of TLS"};
static const struct tls_fault tls_fault_version = {SSL_AD_PROTOCOL_VERSION,
                                                   "the first record has no version of TLS"};
static const struct tls_fault tls_fault_long = {SSL_AD_RECORD_OVERFLOW, "the record is too long"};
static const struct tls_fault tls_fault_empty = {SSL_AD_UNEXPECTED_MESSAGE,
                                                 "the handshake record is empty"};
static const struct tls_fault tls_fault_alert = {SSL_AD_DECODE_ERROR,
                                                 "the alert has a wrong length"};
static const struct tls_fault tls_fault_message = {SSL_AD_UNEXPECTED_MESSAGE,
                                                   "the first message is no hello"};
static const struct tls_fault tls_fault_hello = {SSL_AD_ILLEGAL_PARAMETER, "the hello is too long"};

static size_t tls_record_fragment_bytes(const uint8_t *header)
{
    return (size_t)header[3] << 8 | header[4];
}

/* Fault of the record that begins with ${n} > 0 bytes, before the first message is whole. */
static const struct tls_fault *tls_record_fault(const uint8_t *header, size_t n)
{
    size_t bytes;

    if (header[0] >= 'A' && header[0] <= 'Z')
        return &tls_fault_text;
    if (header[0] != TLS_RECORD_HANDSHAKE && header[0] != TLS_RECORD_ALERT)
        return &tls_fault_type;
    if (n > 1 && header[1] != TLS1_VERSION_MAJOR)
        return &tls_fault_version;
    if (n < TLS_RECORD_HEADER_BYTES)
        return NULL;
    bytes = tls_record_fragment_bytes(header);
    if (header[0] == TLS_RECORD_ALERT)
        return bytes != 2 ? &tls_fault_alert : NULL;
    return bytes > TLS_RECORD_PLAIN_BYTES ? &tls_fault_long : bytes == 0 ? &tls_fault_empty : NULL;
}

/* Header of a later record: will the library refuse it, when it has the rest? */
static bool tls_record_is_broken(const uint8_t *header)
{
    return header[0] < TLS_RECORD_CHANGE_CIPHER_SPEC || header[0] > TLS_RECORD_APPLICATION_DATA ||
           header[1] != TLS1_VERSION_MAJOR ||
           tls_record_fragment_bytes(header) > TLS_RECORD_ENCRYPTED_BYTES;
}

/* Fault of the first message, whose header is complete. A server may begin with a HelloRequest. */
static const struct tls_fault *tls_message_fault(const struct tls_flight *f)
{
    bool is_hello =
        f->accepts ? f->header[0] == SSL3_MT_CLIENT_HELLO
                   : f->header[0] == SSL3_MT_SERVER_HELLO || f->header[0] == SSL3_MT_HELLO_REQUEST;

    if (!is_hello)
        return &tls_fault_message;
    return f->message_left > TLS_FLIGHT_FIRST_BYTES ? &tls_fault_hello : NULL;
}

static size_t tls_flight_header(struct tls_flight *f, const uint8_t *data, size_t len)
{
    size_t n = 0;

    while (n < len && f->header_bytes < sizeof(f->header))
        f->header[f->header_bytes++] = data[n++];
    if (f->header_bytes == sizeof(f->header)) {
        f->message_left = (uint32_t)f->header[1] << 16 | (uint32_t)f->header[2] << 8 | f->header[3];
        f->fault = f->has_first ? NULL : tls_message_fault(f);
    }
    return n;
}

static void tls_flight_fragment(struct tls_flight *f, const uint8_t *data, size_t len)
{
    while (len > 0 && !f->fault) {
        size_t n;

        if (f->header_bytes < sizeof(f->header)) {
            n = tls_flight_header(f, data, len);
        } else {
            n = len < f->message_left ? len : f->message_left;
            f->message_left -= (uint32_t)n;
        }
        data += n;
        len -= n;
        if (f->header_bytes == sizeof(f->header) && f->message_left == 0) {
            f->complete = f->has_first = true;
            f->header_bytes = 0;
        }
    }
}

static void tls_flight_record(struct tls_flight *f, const uint8_t *record, size_t bytes)
{
    switch (record[0]) {
    case TLS_RECORD_CHANGE_CIPHER_SPEC:
        f->encrypted = true; /* the message that follows completes the flight */
        break;
    case TLS_RECORD_HANDSHAKE:
        if (f->encrypted)
            f->complete = true;
        else
            tls_flight_fragment(f, record + TLS_RECORD_HEADER_BYTES,
                                bytes - TLS_RECORD_HEADER_BYTES);
        break;
    default: f->complete = true;
    }
    f->has_first |= f->complete;
}

bool tls_flight_scan(struct tls_flight *f, const uint8_t *data, size_t len)
{
    while (len > f->records_end && !f->fault) {
        const uint8_t *record = data + f->records_end;
        size_t left = len - f->records_end, bytes;

        f->fault = f->has_first ? NULL : tls_record_fault(record, left);
        if (f->fault || left < TLS_RECORD_HEADER_BYTES)
            break;
        if (tls_record_is_broken(record)) {
            f->records_end = len;
            f->complete = f->is_broken = true;
            break;
        }
        bytes = TLS_RECORD_HEADER_BYTES + tls_record_fragment_bytes(record);
        if (left < bytes)
            break;
        tls_flight_record(f, record, bytes);
        f->records_end += bytes;
    }
    return f->complete && !f->fault;
}

void tls_flight_take(struct tls_flight *f)
{
    f->records_end = 0;
    f->complete = false;
}
