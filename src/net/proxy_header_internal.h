/* net/proxy_header_internal: constants and functions shared by net/proxy_header*.c. */
#ifndef NET_PROXY_HEADER_INTERNAL_H
#define NET_PROXY_HEADER_INTERNAL_H

#include "net/proxy_header.h"

/* Section 2.1 of the specification. */
#define PROXY_HEADER_V1_MAX_BYTES 107
#define PROXY_HEADER_V1_MARK      "PROXY "

/* Section 2.2. */
#define PROXY_HEADER_V2_MARK       "\r\n\r\n\0\r\nQUIT\n"
#define PROXY_HEADER_V2_MARK_BYTES 12
#define PROXY_HEADER_V2_BYTES      16 /* up to and including the length field */
#define PROXY_HEADER_V2_LOCAL      0x20
#define PROXY_HEADER_V2_PROXY      0x21
#define PROXY_HEADER_UNSPEC        0x00
#define PROXY_HEADER_TCP4          0x11
#define PROXY_HEADER_TCP6          0x21
#define PROXY_HEADER_UNIX          0x31
#define PROXY_HEADER_TCP4_BYTES    12
#define PROXY_HEADER_TCP6_BYTES    36
#define PROXY_HEADER_UNIX_BYTES    216

#define PROXY_HEADER_TLV_BYTES     3 /* type and length */
#define PROXY_HEADER_TLV_ALPN      0x01
#define PROXY_HEADER_TLV_AUTHORITY 0x02
#define PROXY_HEADER_TLV_UNIQUE_ID 0x05
#define PROXY_HEADER_TLV_SSL       0x20
#define PROXY_HEADER_SSL_BYTES     5 /* an SSL TLV's client and verify */
#define PROXY_HEADER_CRC32C_BYTES  4

/*
 * proxy_header_v1_decode(out, data, len) / proxy_header_v2_decode(out, data, len):
 * Decode as proxy_header_decode(), when ${data} begins with the version's mark (signature).
 *
 * Errors: as proxy_header_decode(), except -ENOMSG
 */
int proxy_header_v1_decode(struct proxy_header *out, const uint8_t *data, size_t len) NODISCARD;
int proxy_header_v2_decode(struct proxy_header *out, const uint8_t *data, size_t len) NODISCARD;

#endif
