/*
 * net/proxy_header: PROXY protocol header, encoder and decoder.
 *
 *   v1   PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n         at most 107 bytes
 *
 *   v2   | signature: 12 | version, command | family, transport | length: 2 |
 *        | source, destination: 12, 36 or 216 | TLVs: type, length: 2, value ... |
 *
 * Source: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
 */
#ifndef NET_PROXY_HEADER_H
#define NET_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "net/address.h"

/* Longest accepted header, as in nginx (NGX_PROXY_PROTOCOL_MAX_HEADER). */
#define PROXY_HEADER_MAX_BYTES 4096

#define PROXY_HEADER_ENCODED_BYTES 128

#define PROXY_HEADER_UNIQUE_ID_BYTES 128

enum proxy_header_version { PROXY_HEADER_NONE, PROXY_HEADER_V1, PROXY_HEADER_V2 };

struct proxy_header {
    enum proxy_header_version version;
    bool
        /* header without a client: addresses are not set */
        local;
    struct address source;
    struct address destination;
    const uint8_t *unique_id; /* in the decoded data; NULL: none */
    size_t unique_id_bytes;
};

struct proxy_header_conf {
    enum proxy_header_version version;
    bool crc32c; /* crc32c and unique_id: v2 only */
    bool unique_id;
};

/*
 * proxy_header_decode(out, data, len):
 * Decode the header at the start of ${data}; fail at the first invalid byte. Verifies a checksum;
 * ignores the content of a LOCAL header.
 *
 * Thread: any
 * Owns:   ${out} points into ${data}
 * Errors: bytes of the header; -EAGAIN (incomplete); -ENOMSG (no header); -EPROTO (malformed);
 *         -EMSGSIZE (above PROXY_HEADER_MAX_BYTES). ${out} is set on success only
 */
int proxy_header_decode(struct proxy_header *out, const uint8_t *data, size_t len) NODISCARD;

/*
 * proxy_header_begun(data, len):
 * Does ${data} begin with the complete signature of a version?
 *
 * Thread: any
 */
bool proxy_header_begun(const uint8_t *data, size_t len);

/*
 * proxy_header_encode(out, conf, source, destination, unique_id):
 * Write a header with IP addresses, mapped to IPv6 if the families differ. Without ${source} or
 * with a unix socket: LOCAL (v1: UNKNOWN). ${unique_id}: text or NULL.
 *
 * Thread: any
 * Units:  returns bytes, at most PROXY_HEADER_ENCODED_BYTES; ${unique_id} at most 48
 */
size_t proxy_header_encode(uint8_t *out, const struct proxy_header_conf *conf,
                           const struct address *source, const struct address *destination,
                           const char *unique_id);

#endif
