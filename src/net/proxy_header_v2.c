#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "net/proxy_header_internal.h"

/* Unread TLVs: the list ends at `end`, received up to `have`. */
struct tlvs {
    const uint8_t *at, *have, *end;
};

struct tlv {
    uint8_t type;
    size_t len;
    const uint8_t *value;
};

static uint16_t proxy_header_v2_get_16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Read two addresses of ${bytes} bytes each, then two ports. */
static void proxy_header_v2_read_ip(struct proxy_header *h, const uint8_t *at, size_t bytes)
{
    const uint8_t *ports = at + 2 * bytes;

    address_set_host(&h->source, at, bytes, proxy_header_v2_get_16(ports));
    address_set_host(&h->destination, at + bytes, bytes, proxy_header_v2_get_16(ports + 2));
}

/* A path ends at a NUL or the field's end, an abstract name at its last non-NUL byte. */
static void proxy_header_v2_read_unix(struct address *out, const uint8_t *path)
{
    size_t len = sizeof(out->u.un.sun_path);

    if (path[0] != '\0') {
        len = strnlen((const char *)path, len);
    } else {
        while (len > 0 && path[len - 1] == '\0')
            len--;
    }
    memset(out, 0, sizeof(*out));
    out->u.un.sun_family = AF_UNIX;
    memcpy(out->u.un.sun_path, path, len);
    if (path[0] != '\0' && len < sizeof(out->u.un.sun_path))
        len++; /* the length includes a path's NUL: unix(7) */
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void proxy_header_v2_read_addresses(struct proxy_header *h, uint8_t family,
                                           const uint8_t *at)
{
    switch (family) {
    case PROXY_HEADER_TCP4: proxy_header_v2_read_ip(h, at, 4); break;
    case PROXY_HEADER_TCP6: proxy_header_v2_read_ip(h, at, 16); break;
    default:
        proxy_header_v2_read_unix(&h->source, at);
        proxy_header_v2_read_unix(&h->destination, at + sizeof(h->source.u.un.sun_path));
    }
}

/* Size of addresses and ports; -EPROTO: not a stream family. */
static int proxy_header_v2_address_bytes(uint8_t family)
{
    switch (family) {
    case PROXY_HEADER_UNSPEC: return 0;
    case PROXY_HEADER_TCP4: return PROXY_HEADER_TCP4_BYTES;
    case PROXY_HEADER_TCP6: return PROXY_HEADER_TCP6_BYTES;
    case PROXY_HEADER_UNIX: return PROXY_HEADER_UNIX_BYTES;
    default: return -EPROTO;
    }
}

/* Read the next TLV. -ENODATA: no TLV is left. */
static int proxy_header_v2_next_tlv(struct tlvs *t, struct tlv *out)
{
    size_t space = (size_t)(t->end - t->at), come = (size_t)(t->have - t->at);

    if (space == 0)
        return -ENODATA;
    if (space < PROXY_HEADER_TLV_BYTES)
        return -EPROTO;
    if (come < PROXY_HEADER_TLV_BYTES)
        return -EAGAIN;
    out->type = t->at[0];
    out->len = proxy_header_v2_get_16(t->at + 1);
    out->value = t->at + PROXY_HEADER_TLV_BYTES;
    if (out->len > space - PROXY_HEADER_TLV_BYTES)
        return -EPROTO;
    if (out->len > come - PROXY_HEADER_TLV_BYTES)
        return -EAGAIN;
    t->at = out->value + out->len;
    return 0;
}

static int proxy_header_v2_check_ssl(const struct tlv *ssl)
{
    struct tlvs inner = {.end = ssl->value + ssl->len};
    struct tlv tlv;
    int rc;

    if (ssl->len < PROXY_HEADER_SSL_BYTES)
        return -EPROTO;
    inner.at = ssl->value + PROXY_HEADER_SSL_BYTES;
    inner.have = inner.end;
    do
        rc = proxy_header_v2_next_tlv(&inner, &tlv);
    while (rc == 0);
    return rc == -ENODATA ? 0 : rc;
}

static int proxy_header_v2_take_value(struct proxy_header_value *out, const struct tlv *tlv)
{
    if (out->at)
        return -EPROTO;
    *out = (struct proxy_header_value){tlv->value, tlv->len};
    return 0;
}

static int proxy_header_v2_take_tlv(struct proxy_header *h, const struct tlv *tlv,
                                    const uint8_t **crc32c)
{
    switch (tlv->type) {
    case PROXY_HEADER_TLV_CRC32C:
        if (tlv->len != PROXY_HEADER_CRC32C_BYTES || *crc32c)
            return -EPROTO;
        *crc32c = tlv->value;
        return 0;
    case PROXY_HEADER_TLV_UNIQUE_ID:
        if (tlv->len > PROXY_HEADER_UNIQUE_ID_BYTES || h->unique_id)
            return -EPROTO;
        h->unique_id = tlv->value;
        h->unique_id_bytes = tlv->len;
        return 0;
    case PROXY_HEADER_TLV_ALPN: return proxy_header_v2_take_value(&h->tls.alpn, tlv);
    case PROXY_HEADER_TLV_AUTHORITY: return proxy_header_v2_take_value(&h->tls.authority, tlv);
    case PROXY_HEADER_TLV_SSL:
        if (proxy_header_v2_check_ssl(tlv) < 0)
            return -EPROTO;
        return proxy_header_v2_take_value(&h->tls.ssl, tlv);
    default: return 0;
    }
}

/* The checksum is computed with zeros in its place. */
static int proxy_header_v2_check_crc32c(const uint8_t *data, size_t len, const uint8_t *value)
{
    static const uint8_t zeros[PROXY_HEADER_CRC32C_BYTES];
    size_t before = (size_t)(value - data);
    uint32_t crc = crc32c_add(0, data, before);

    crc = crc32c_add(crc, zeros, sizeof(zeros));
    crc = crc32c_add(crc, value + sizeof(zeros), len - before - sizeof(zeros));
    return crc == ((uint32_t)proxy_header_v2_get_16(value) << 16 |
                   proxy_header_v2_get_16(value + 2))
               ? 0
               : -EPROTO;
}

/* Length of the whole header; -EAGAIN: ${data} is too short to tell. */
static int proxy_header_v2_read_length(const uint8_t *data, size_t len)
{
    bool local = len > 12 && data[12] == PROXY_HEADER_V2_LOCAL;
    int space, need = 0;

    if (len > 12 && !local && data[12] != PROXY_HEADER_V2_PROXY)
        return -EPROTO;
    if (len > 13 && !local)
        need = proxy_header_v2_address_bytes(data[13]);
    if (need < 0 || len < PROXY_HEADER_V2_BYTES)
        return need < 0 ? need : -EAGAIN;
    space = proxy_header_v2_get_16(data + 14);
    if (space < need)
        return -EPROTO;
    if (space > PROXY_HEADER_MAX_BYTES - PROXY_HEADER_V2_BYTES)
        return -EMSGSIZE;
    return PROXY_HEADER_V2_BYTES + space;
}

/* Decode a header of ${total} bytes, ${len} of them received. */
static int proxy_header_v2_read_proxy(struct proxy_header *h, const uint8_t *data, size_t len,
                                      size_t total)
{
    size_t addresses = (size_t)proxy_header_v2_address_bytes(data[13]);
    struct tlvs tlvs = {.have = data + len, .end = data + total};
    const uint8_t *crc32c = NULL;
    struct tlv tlv;
    int rc;

    if (len < PROXY_HEADER_V2_BYTES + addresses)
        return -EAGAIN;
    proxy_header_v2_read_addresses(h, data[13], data + PROXY_HEADER_V2_BYTES);
    tlvs.at = data + PROXY_HEADER_V2_BYTES + addresses;
    while ((rc = proxy_header_v2_next_tlv(&tlvs, &tlv)) == 0) {
        rc = proxy_header_v2_take_tlv(h, &tlv, &crc32c);
        if (rc < 0)
            return rc;
    }
    if (rc != -ENODATA)
        return rc;
    tlvs.at = data + PROXY_HEADER_V2_BYTES + addresses;
    h->tlvs = (struct proxy_header_value){tlvs.at, (size_t)(tlvs.end - tlvs.at)};
    return crc32c ? proxy_header_v2_check_crc32c(data, total, crc32c) : 0;
}

int proxy_header_v2_decode(struct proxy_header *out, const uint8_t *data, size_t len)
{
    struct proxy_header h = {.version = PROXY_HEADER_V2};
    int total = proxy_header_v2_read_length(data, len), rc = 0;

    if (total < 0)
        return total;
    if (len > (size_t)total)
        len = (size_t)total;
    h.local = data[12] == PROXY_HEADER_V2_LOCAL || data[13] == PROXY_HEADER_UNSPEC;
    if (!h.local)
        rc = proxy_header_v2_read_proxy(&h, data, len, (size_t)total);
    else if (len < (size_t)total)
        rc = -EAGAIN;
    if (rc < 0)
        return rc;
    *out = h;
    return total;
}

struct proxy_header_value proxy_header_tlv_find(struct proxy_header_value tlvs, uint8_t type)
{
    struct tlvs rest = {.at = tlvs.at, .have = tlvs.at + tlvs.n, .end = tlvs.at + tlvs.n};
    struct tlv tlv;

    while (tlvs.at && proxy_header_v2_next_tlv(&rest, &tlv) == 0)
        if (tlv.type == type)
            return (struct proxy_header_value){tlv.value, tlv.len};
    return (struct proxy_header_value){NULL, 0};
}

struct proxy_header_value proxy_header_ssl_find(struct proxy_header_value ssl,
                                                enum proxy_header_ssl_type type)
{
    if (ssl.n < PROXY_HEADER_SSL_BYTES)
        return (struct proxy_header_value){NULL, 0};
    ssl.at += PROXY_HEADER_SSL_BYTES;
    ssl.n -= PROXY_HEADER_SSL_BYTES;
    return proxy_header_tlv_find(ssl, (uint8_t)type);
}
