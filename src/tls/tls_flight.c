#include "tls/tls_flight.h"

#define TLS_RECORD_HEADER_BYTES 5

enum tls_record_type {
    TLS_RECORD_CHANGE_CIPHER_SPEC = 20,
    TLS_RECORD_ALERT = 21,
    TLS_RECORD_HANDSHAKE = 22,
};

static size_t tls_flight_header(struct tls_flight *f, const uint8_t *data, size_t len)
{
    size_t n = 0;

    while (n < len && f->header_bytes < sizeof(f->header))
        f->header[f->header_bytes++] = data[n++];
    if (f->header_bytes == sizeof(f->header))
        f->message_left = (uint32_t)f->header[1] << 16 | (uint32_t)f->header[2] << 8 | f->header[3];
    return n;
}

static void tls_flight_fragment(struct tls_flight *f, const uint8_t *data, size_t len)
{
    while (len > 0) {
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
            f->complete = true;
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
}

bool tls_flight_scan(struct tls_flight *f, const uint8_t *data, size_t len)
{
    while (len - f->records_end >= TLS_RECORD_HEADER_BYTES) {
        const uint8_t *record = data + f->records_end;
        size_t bytes = TLS_RECORD_HEADER_BYTES + ((size_t)record[3] << 8 | record[4]);

        if (record[0] < TLS_RECORD_CHANGE_CIPHER_SPEC || record[0] > TLS_RECORD_HANDSHAKE + 1) {
            f->records_end = len; /* not TLS: the library reports the error */
            f->complete = true;
            break;
        }
        if (len - f->records_end < bytes)
            break;
        tls_flight_record(f, record, bytes);
        f->records_end += bytes;
    }
    return f->complete;
}

void tls_flight_take(struct tls_flight *f)
{
    f->records_end = 0;
    f->complete = false;
}
