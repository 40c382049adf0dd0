/*
 * tls/tls_flight: finds whole handshake messages in received records.
 *
 * Each step of a handshake costs a task on another thread. A step therefore waits for a whole
 * message, so that a slow client costs only its buffer. Messages are readable up to the first
 * encrypted record; from there on each record counts as a message.
 *
 * What breaks the rules before the first message is whole is a fault: the library would wait for
 * the rest of the record, or takes it for a slow peer. The answer is an alert at once, in plain
 * text.
 *
 * Record: | type: 1 | version: 2 | length: 2 | fragment |, message: | type: 1 | length: 3 | body |.
 * Source: RFC 8446, sections 4 and 5.1
 */
#ifndef TLS_TLS_FLIGHT_H
#define TLS_TLS_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the peer breaks the protocol. */
struct tls_fault {
    int alert; /* to send; -1: none */
    const char *reason;
};

/* State of a scan; zero-initialised: nothing was scanned. */
struct tls_flight {
    size_t records_end;    /* end of the last whole record */
    uint32_t message_left; /* bytes of the current message's body that are missing */
    uint8_t header[4];     /* header of the current message */
    uint8_t header_bytes;
    bool accepts; /* the first message is a ClientHello */
    bool encrypted;
    bool complete;                 /* a message ends before records_end */
    bool has_first;                /* the first message was complete */
    bool is_broken;                /* a later record has a broken header */
    const struct tls_fault *fault; /* in the first message; NULL: none */
};

/*
 * tls_flight_scan(f, data, len):
 * Continue with ${data}: all received bytes that were not taken yet. True: the bytes up to
 * f->records_end contain a whole message, or an error that the library will report. If it does not
 * although f->is_broken, the connection has failed too. False, but f->fault is set: it has failed.
 */
bool tls_flight_scan(struct tls_flight *f, const uint8_t *data, size_t len);

/* tls_flight_take(f): note that the caller has removed the bytes up to f->records_end. */
void tls_flight_take(struct tls_flight *f);

#endif
