#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "net/proxy_header_internal.h"

#define UNIQUE_ID_BYTES 48

_Static_assert(PROXY_HEADER_V1_MAX_BYTES < PROXY_HEADER_ENCODED_BYTES, "and a NUL behind it");
_Static_assert(PROXY_HEADER_V2_BYTES + PROXY_HEADER_TCP6_BYTES + PROXY_HEADER_TLV_BYTES +
                       UNIQUE_ID_BYTES + PROXY_HEADER_TLV_BYTES + PROXY_HEADER_CRC32C_BYTES <=
                   PROXY_HEADER_ENCODED_BYTES,
               "the longest header has no room");

/* Write ${a} as 4 bytes, or as 16, IPv4-mapped if it is IPv4. */
static void proxy_header_encode_put_host(uint8_t *out, const struct address *a, size_t bytes)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    size_t len;
    const void *host = address_host(a, &len);

    if (len < bytes)
        memcpy(out, mapped, sizeof(mapped));
    memcpy(out + bytes - len, host, len);
}

/* Bytes of each address in the family that fits both; 0: not IP. */
static size_t proxy_header_encode_host_bytes(const struct address *source,
                                             const struct address *destination)
{
    size_t a, b;

    if (!source || !address_host(source, &a) || !address_host(destination, &b))
        return 0;
    return a > b ? a : b;
}

static size_t proxy_header_encode_v1(char *out, const struct address *source,
                                     const struct address *destination)
{
    size_t bytes = proxy_header_encode_host_bytes(source, destination);
    int family = bytes == 4 ? AF_INET : AF_INET6;
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    uint8_t host[16];

    if (bytes == 0)
        return (size_t)snprintf(out, PROXY_HEADER_ENCODED_BYTES,
                                PROXY_HEADER_V1_MARK "UNKNOWN\r\n");
    proxy_header_encode_put_host(host, source, bytes);
    inet_ntop(family, host, from, sizeof(from));
    proxy_header_encode_put_host(host, destination, bytes);
    inet_ntop(family, host, to, sizeof(to));
    return (size_t)snprintf(out, PROXY_HEADER_ENCODED_BYTES,
                            PROXY_HEADER_V1_MARK "TCP%c %s %s %u %u\r\n", bytes == 4 ? '4' : '6',
                            from, to, address_port(source), address_port(destination));
}

static uint8_t *proxy_header_encode_put_16(uint8_t *at, size_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

static uint8_t *proxy_header_encode_put_tlv(uint8_t *at, uint8_t type, const void *value,
                                            size_t len)
{
    *at = type;
    at = proxy_header_encode_put_16(at + 1, len);
    memcpy(at, value, len);
    return at + len;
}

static uint8_t *proxy_header_encode_put_addresses(uint8_t *at, const struct address *source,
                                                  const struct address *destination, size_t bytes)
{
    proxy_header_encode_put_host(at, source, bytes);
    proxy_header_encode_put_host(at + bytes, destination, bytes);
    at = proxy_header_encode_put_16(at + 2 * bytes, address_port(source));
    return proxy_header_encode_put_16(at, address_port(destination));
}

/* The checksum is computed with zeros in its place. */
static void proxy_header_encode_put_crc32c(uint8_t *out, uint8_t *end)
{
    uint32_t crc = crc32c_add(0, out, (size_t)(end - out));

    proxy_header_encode_put_16(end - 4, crc >> 16);
    proxy_header_encode_put_16(end - 2, crc & 0xffff);
}

static size_t proxy_header_encode_v2(uint8_t *out, const struct proxy_header_conf *conf,
                                     const struct address *source,
                                     const struct address *destination, const char *unique_id)
{
    static const uint8_t zeros[PROXY_HEADER_CRC32C_BYTES];
    size_t bytes = proxy_header_encode_host_bytes(source, destination);
    uint8_t *at = out + PROXY_HEADER_V2_BYTES;

    memcpy(out, PROXY_HEADER_V2_MARK, PROXY_HEADER_V2_MARK_BYTES);
    out[12] = bytes ? PROXY_HEADER_V2_PROXY : PROXY_HEADER_V2_LOCAL;
    out[13] = PROXY_HEADER_UNSPEC;
    if (bytes) {
        out[13] = bytes == 4 ? PROXY_HEADER_TCP4 : PROXY_HEADER_TCP6;
        at = proxy_header_encode_put_addresses(at, source, destination, bytes);
    }
    if (conf->unique_id && unique_id) {
        MUST(strlen(unique_id) <= UNIQUE_ID_BYTES);
        at = proxy_header_encode_put_tlv(at, PROXY_HEADER_TLV_UNIQUE_ID, unique_id,
                                         strlen(unique_id));
    }
    if (conf->crc32c)
        at = proxy_header_encode_put_tlv(at, PROXY_HEADER_TLV_CRC32C, zeros, sizeof(zeros));
    proxy_header_encode_put_16(out + 14, (size_t)(at - out) - PROXY_HEADER_V2_BYTES);
    if (conf->crc32c)
        proxy_header_encode_put_crc32c(out, at);
    return (size_t)(at - out);
}

size_t proxy_header_encode(uint8_t *out, const struct proxy_header_conf *conf,
                           const struct address *source, const struct address *destination,
                           const char *unique_id)
{
    MUST(conf->version != PROXY_HEADER_NONE);
    if (conf->version == PROXY_HEADER_V1)
        return proxy_header_encode_v1((char *)out, source, destination);
    return proxy_header_encode_v2(out, conf, source, destination, unique_id);
}
