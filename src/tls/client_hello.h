/*
 * tls/client_hello: strict parser of a TLS ClientHello, in records, without OpenSSL.
 *
 *   bytes of the client -> client_hello_scan: records, until the message is whole
 *                       -> client_hello_read: the message; routes and tls/ja4 use the result
 *
 * A record is | type: 1 | version: 2 | length: 2 | fragment |; the first message must be a
 * ClientHello, alone in its records. Each byte is looked at once, however the bytes are split.
 * Source: RFC 8446, sections 4.1.2 and 5.1; RFC 6066 (SNI); RFC 7301 (ALPN)
 */
#ifndef TLS_CLIENT_HELLO_H
#define TLS_CLIENT_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "tls/server_name.h"

/* Longest accepted ClientHello, including record headers. */
#define CLIENT_HELLO_MAX_BYTES 65536

/* Limit of each list, such as cipher suites (the openssl client sends 31). */
#define CLIENT_HELLO_MAX_LIST 1024

/* State of client_hello_scan(); zero-initialised: nothing was scanned. */
struct client_hello_scan {
    size_t at;            /* scanned bytes */
    size_t record_bytes;  /* unscanned bytes of the current fragment */
    size_t message_bytes; /* unscanned body bytes; `header` < 4: the length so far */
    unsigned header;      /* scanned bytes of the message's header */
    unsigned records;
};

/* A slice of the message. */
struct client_hello_bytes {
    const uint8_t *at;
    size_t n;
};

/* An extension that was not sent, or no protocol. */
#define CLIENT_HELLO_NONE ((struct client_hello_bytes){NULL, 0})

struct client_hello {
    /* In lower case; empty: no SNI, or one that is no host name, such as "a..b" */
    char sni[SERVER_NAME_BYTES];
    uint16_t version; /* legacy_version */
    bool has_sni;
    struct client_hello_bytes ciphers;    /* numbers of two bytes, as in the next two */
    struct client_hello_bytes versions;   /* supported_versions; empty: not sent */
    struct client_hello_bytes signatures; /* signature_algorithms */
    struct client_hello_bytes extensions; /* each | type: 2 | length: 2 | data | */
    struct client_hello_bytes alpn;       /* each | length: 1 | name | */
    uint8_t *joined;                      /* the message, if it came in several records */
};

/*
 * client_hello_scan(scan, data, len):
 * Continue ${scan}; fail at the first invalid byte. ${data}: all bytes received so far, also those
 * scanned before.
 *
 * Errors: > 0: bytes up to the end of the hello; -EAGAIN (incomplete); -ENOMSG (not TLS); -EPROTO
 *         (malformed); -EMSGSIZE (above CLIENT_HELLO_MAX_BYTES)
 */
int client_hello_scan(struct client_hello_scan *scan, const uint8_t *data, size_t len) NODISCARD;

/*
 * client_hello_read(out, scan, data):
 * Parse the hello that ${scan} has found in ${data}.
 *
 * Owns:   ${out} points into ${data}, which must outlive it; release with client_hello_free()
 * Errors: 0; -EPROTO (malformed); -EMSGSIZE (a list above CLIENT_HELLO_MAX_LIST); -ENOMEM
 */
int client_hello_read(struct client_hello *out, const struct client_hello_scan *scan,
                      const uint8_t *data) NODISCARD;

/*
 * client_hello_read_server_name(out, extension):
 * Write the name in ${extension}, the data of a server_name extension, to ${out}, of
 * SERVER_NAME_BYTES: "" if it is no host name.
 *
 * Errors: 0; -EPROTO (malformed)
 */
int client_hello_read_server_name(char *out, struct client_hello_bytes extension) NODISCARD;

/* client_hello_highest(hello): return the highest version offered; GREASE is none. */
uint16_t client_hello_highest(const struct client_hello *hello);

/* client_hello_free(hello): free the memory of ${hello}. */
void client_hello_free(struct client_hello *hello);

/*
 * client_hello_alpn_next(list, out):
 * Take the next protocol name off ${list}, a copy of client_hello.alpn; false: none is left.
 */
bool client_hello_alpn_next(struct client_hello_bytes *list, struct client_hello_bytes *out);

/*
 * client_hello_next_16(list, out) / client_hello_next_extension(list, type):
 * Take the next number off a list of two-byte numbers / the next extension off a list, and set
 * ${type}. False: none is left.
 */
bool client_hello_next_16(struct client_hello_bytes *list, uint16_t *out);
bool client_hello_next_extension(struct client_hello_bytes *list, uint16_t *type);

/*
 * client_hello_is_grease(number):
 * Is ${number} a GREASE value, which receivers must ignore? (RFC 8701)
 */
static inline bool client_hello_is_grease(uint16_t number)
{
    return (number & 0x0f0f) == 0x0a0a && number >> 8 == (number & 0xff);
}

#endif
