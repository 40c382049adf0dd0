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
               "too small for the longest header");

/* Write ${a} in 4 bytes, or in 16: then IPv4 is IPv4-mapped. */
static void proxy_header_encode_put_host(uint8_t *out, const struct address *a, size_t bytes)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    size_t len;
    const void *host = address_host(a, &len);

    if (len < bytes)
        memcpy(out, mapped, sizeof(mapped));
    memcpy(out + bytes - len, host, len);
}

/* Bytes per address: 4, or 16 if one is IPv6; 0: not IP. */
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

/* A header under construction. */
struct proxy_header_encode_out {
    uint8_t *at, *end;
};

static bool proxy_header_encode_fits(const struct proxy_header_encode_out *out, size_t len)
{
    return (size_t)(out->end - out->at) >= PROXY_HEADER_TLV_BYTES + len;
}

/* Add a TLV; nothing if ${value} is NULL or does not fit. */
static void proxy_header_encode_add(struct proxy_header_encode_out *out, uint8_t type,
                                    const void *value, size_t len)
{
    if (value && proxy_header_encode_fits(out, len))
        out->at = proxy_header_encode_put_tlv(out->at, type, value, len);
}

static void proxy_header_encode_add_text(struct proxy_header_encode_out *out, uint8_t type,
                                         const char *text)
{
    proxy_header_encode_add(out, type, text, text ? strlen(text) : 0);
}

/* Add the configured TLVs, and keep space for the checksum. */
static void proxy_header_encode_add_tlvs(struct proxy_header_encode_out *out,
                                         const struct proxy_header_conf *conf,
                                         const struct proxy_header_client *client)
{
    const struct proxy_header_tls *tls = &client->tls;

    MUST(!client->unique_id || strlen(client->unique_id) <= UNIQUE_ID_BYTES);
    out->end -= PROXY_HEADER_TLV_BYTES + PROXY_HEADER_CRC32C_BYTES;
    if (conf->unique_id)
        proxy_header_encode_add_text(out, PROXY_HEADER_TLV_UNIQUE_ID, client->unique_id);
    if (conf->alpn)
        proxy_header_encode_add(out, PROXY_HEADER_TLV_ALPN, tls->alpn.at, tls->alpn.n);
    if (conf->authority)
        proxy_header_encode_add(out, PROXY_HEADER_TLV_AUTHORITY, tls->authority.at,
                                tls->authority.n);
    if (conf->ssl)
        proxy_header_encode_add(out, PROXY_HEADER_TLV_SSL, tls->ssl.at, tls->ssl.n);
    out->end += PROXY_HEADER_TLV_BYTES + PROXY_HEADER_CRC32C_BYTES;
}

static size_t proxy_header_encode_v2(uint8_t *header, const struct proxy_header_conf *conf,
                                     const struct proxy_header_client *client)
{
    static const uint8_t zeros[PROXY_HEADER_CRC32C_BYTES];
    size_t bytes = proxy_header_encode_host_bytes(client->source, client->destination);
    struct proxy_header_encode_out out = {.at = header + PROXY_HEADER_V2_BYTES,
                                          .end = header + PROXY_HEADER_MAX_BYTES};

    memcpy(header, PROXY_HEADER_V2_MARK, PROXY_HEADER_V2_MARK_BYTES);
    header[12] = bytes ? PROXY_HEADER_V2_PROXY : PROXY_HEADER_V2_LOCAL;
    header[13] = PROXY_HEADER_UNSPEC;
    if (bytes) {
        header[13] = bytes == 4 ? PROXY_HEADER_TCP4 : PROXY_HEADER_TCP6;
        out.at =
            proxy_header_encode_put_addresses(out.at, client->source, client->destination, bytes);
    }
    proxy_header_encode_add_tlvs(&out, conf, client);
    if (conf->crc32c)
        proxy_header_encode_add(&out, PROXY_HEADER_TLV_CRC32C, zeros, sizeof(zeros));
    proxy_header_encode_put_16(header + 14, (size_t)(out.at - header) - PROXY_HEADER_V2_BYTES);
    if (conf->crc32c)
        proxy_header_encode_put_crc32c(header, out.at);
    return (size_t)(out.at - header);
}

size_t proxy_header_encode(uint8_t *out, const struct proxy_header_conf *conf,
                           const struct proxy_header_client *client)
{
    MUST(conf->version != PROXY_HEADER_NONE);
    if (conf->version == PROXY_HEADER_V1)
        return proxy_header_encode_v1((char *)out, client->source, client->destination);
    return proxy_header_encode_v2(out, conf, client);
}

size_t proxy_header_ssl_encode(uint8_t *out, size_t size, const struct proxy_header_ssl *ssl)
{
    struct proxy_header_encode_out at = {.at = out + PROXY_HEADER_SSL_BYTES, .end = out + size};

    if (size < PROXY_HEADER_SSL_BYTES)
        return 0;
    out[0] = ssl->client;
    proxy_header_encode_put_16(out + 1, ssl->verify >> 16);
    proxy_header_encode_put_16(out + 3, ssl->verify & 0xffff);
    proxy_header_encode_add_text(&at, PROXY_HEADER_SSL_VERSION, ssl->version);
    proxy_header_encode_add_text(&at, PROXY_HEADER_SSL_NAME, ssl->name);
    proxy_header_encode_add_text(&at, PROXY_HEADER_SSL_CIPHER, ssl->cipher);
    proxy_header_encode_add_text(&at, PROXY_HEADER_SSL_GROUP, ssl->group);
    proxy_header_encode_add(&at, PROXY_HEADER_SSL_CERTIFICATE_DER, ssl->certificate.at,
                            ssl->certificate.n);
    return (size_t)(at.at - out);
}
