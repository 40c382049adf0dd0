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

/* TLVs that say nothing of the client: a checksum, and padding. */
#define PROXY_HEADER_TLV_CRC32C 0x03
#define PROXY_HEADER_TLV_NOOP   0x04

enum proxy_header_version { PROXY_HEADER_NONE, PROXY_HEADER_V1, PROXY_HEADER_V2 };

struct proxy_header_value {
    const uint8_t *at; /* NULL: none */
    size_t n;
};

/* TLVs about the client's TLS, in version 2 only. */
struct proxy_header_tls {
    struct proxy_header_value alpn;
    struct proxy_header_value authority; /* server name (SNI) */
    struct proxy_header_value ssl;       /* see proxy_header_ssl_encode() */
};

/* Flags of proxy_header_ssl.client. */
#define PROXY_HEADER_SSL_USED        0x01 /* the client uses TLS */
#define PROXY_HEADER_SSL_CERTIFICATE 0x02 /* the client sent a certificate on this connection */
#define PROXY_HEADER_SSL_SESSION     0x04 /* the client sent a certificate in this TLS session */

enum proxy_header_ssl_type {
    PROXY_HEADER_SSL_VERSION = 0x21,
    PROXY_HEADER_SSL_NAME = 0x22, /* common name of the client's certificate */
    PROXY_HEADER_SSL_CIPHER = 0x23,
    PROXY_HEADER_SSL_GROUP = 0x26,
    PROXY_HEADER_SSL_CERTIFICATE_DER = 0x28
};

/* Content of an SSL TLV; NULL: unknown. */
struct proxy_header_ssl {
    uint8_t client;
    uint32_t verify; /* 0: the certificate is verified */
    const char *version, *cipher, *group, *name;
    struct proxy_header_value certificate;
};

struct proxy_header {
    enum proxy_header_version version;
    bool local; /* LOCAL, UNKNOWN or UNSPEC: source and destination are not set */
    struct address source;
    struct address destination;
    const uint8_t *unique_id; /* in the decoded data; NULL: none */
    size_t unique_id_bytes;
    struct proxy_header_tls tls;    /* in the decoded data */
    struct proxy_header_value tlvs; /* all fields (TLVs), in the decoded data */
};

struct proxy_header_conf {
    enum proxy_header_version version;
    /* TLVs, for v2 only. */
    bool crc32c;
    bool unique_id;
    bool alpn;
    bool authority;
    bool ssl;
    bool certificate; /* the SSL TLV has the client's certificate */
};

/* Values to encode in a header. */
struct proxy_header_client {
    const struct address *source; /* NULL, or a unix socket: the header is LOCAL (v1: UNKNOWN) */
    const struct address *destination; /* may be NULL without source */
    const char *unique_id;             /* at most 48 characters; NULL: none */
    struct proxy_header_tls tls;
};

/*
 * proxy_header_decode(out, data, len):
 * Decode the header at the start of ${data}; fail at the first invalid byte. Verifies the checksum,
 * if any; ignores the content of a LOCAL header.
 *
 * Owns:   ${out} points into ${data}
 * Errors: bytes of the header; -EAGAIN (incomplete); -ENOMSG (no header); -EPROTO (malformed);
 *         -EMSGSIZE (above PROXY_HEADER_MAX_BYTES). ${out} is set on success only
 */
int proxy_header_decode(struct proxy_header *out, const uint8_t *data, size_t len) NODISCARD;

/* proxy_header_begun(data, len): does ${data} begin with the complete signature of a version? */
bool proxy_header_begun(const uint8_t *data, size_t len);

/*
 * proxy_header_encode(out, conf, client):
 * Write a header; if the families of its IP addresses differ, IPv4 is mapped to IPv6. TLVs that do
 * not fit are left out.
 *
 * Units:  returns bytes, at most PROXY_HEADER_MAX_BYTES; without values of client->tls at most
 *         PROXY_HEADER_ENCODED_BYTES
 */
size_t proxy_header_encode(uint8_t *out, const struct proxy_header_conf *conf,
                           const struct proxy_header_client *client);

/*
 * proxy_header_ssl_encode(out, size, ssl):
 * Write ${ssl} as proxy_header_tls.ssl; values that do not fit are left out.
 *
 * Units:  returns bytes; 0: ${size} is below 5
 */
size_t proxy_header_ssl_encode(uint8_t *out, size_t size, const struct proxy_header_ssl *ssl);

/*
 * proxy_header_tlv_find(tlvs, type) / proxy_header_ssl_find(ssl, type):
 * Find the value of ${type} in ${tlvs}, a decoded header's / in the SSL TLV ${ssl}; at NULL: none.
 */
struct proxy_header_value proxy_header_tlv_find(struct proxy_header_value tlvs, uint8_t type);
struct proxy_header_value proxy_header_ssl_find(struct proxy_header_value ssl,
                                                enum proxy_header_ssl_type type);

#endif
