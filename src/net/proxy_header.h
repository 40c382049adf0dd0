/*
 * net/proxy_header: the header of the PROXY protocol, by which a proxy tells the next one whose
 * connection it passes on.
 *
 * Bytes only: whom to believe, and what follows from it, is for the callers. Both versions of the
 * protocol:
 *
 *   v1   PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n           at most 107 bytes
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

/*
 * A longer one is refused. The protocol would allow 64 KiB; nginx stops here too
 * (NGX_PROXY_PROTOCOL_MAX_HEADER).
 */
#define PROXY_HEADER_MAX_BYTES 4096

/* Room for any header that proxy_header_encode() writes. */
#define PROXY_HEADER_ENCODED_BYTES 128

/* What a unique ID may have at most. */
#define PROXY_HEADER_UNIQUE_ID_BYTES 128

enum proxy_header_version { PROXY_HEADER_NONE, PROXY_HEADER_V1, PROXY_HEADER_V2 };

struct proxy_header {
    enum proxy_header_version version;
    bool
        /* it tells of nobody: what is connected stands for itself, and the addresses are not set */
        local;
    struct address source;
    struct address destination;
    const uint8_t *unique_id; /* in the data that were decoded; NULL: none */
    size_t unique_id_bytes;
};

/* What proxy_header_encode() is to write. */
struct proxy_header_conf {
    enum proxy_header_version version;
    bool crc32c; /* v2 only, as is the next */
    bool unique_id;
};

/*
 * proxy_header_decode(out, data, len):
 * The header that ${data} begins with. It is refused at the first byte with which no header can go
 * on, and not only when all of it is there. A checksum is checked if there is one. What a LOCAL
 * header has behind its length is not looked at.
 *
 * Thread: any
 * Owns:   nothing; ${out} points into ${data}
 * Units:  bytes
 * Errors: how many bytes the header has; -EAGAIN (it may yet become one); -ENOMSG (no header begins
 *         like this); -EPROTO (one does, and it is broken); -EMSGSIZE (above
 *         PROXY_HEADER_MAX_BYTES). ${out} is set on success only
 */
int proxy_header_decode(struct proxy_header *out, const uint8_t *data, size_t len) NODISCARD;

/*
 * proxy_header_begun(data, len):
 * Do ${data} begin with all of the mark of a version, so that they can be nothing but a header,
 * whole or broken?
 *
 * Thread: any
 * Units:  bytes
 */
bool proxy_header_begun(const uint8_t *data, size_t len);

/*
 * proxy_header_encode(out, conf, source, destination, unique_id):
 * Write the header of a connection from ${source} to ${destination}: IP addresses, mapped to IPv6
 * if their families differ. Without ${source}, or if one of them is a unix socket, it is LOCAL, in
 * v1 UNKNOWN. ${unique_id}, text, is for a ${conf} that wants one; NULL: none.
 *
 * Thread: any
 * Units:  PROXY_HEADER_ENCODED_BYTES of room, of which as many as are returned were written; an ID
 *         takes 48 at most
 */
size_t proxy_header_encode(uint8_t *out, const struct proxy_header_conf *conf,
                           const struct address *source, const struct address *destination,
                           const char *unique_id);

#endif
