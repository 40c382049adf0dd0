#include "limits/client_name.h"

#include <endian.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "net/address.h"

#define MAPPED_BITS 96 /* the prefix ::ffff:0:0/96 */

/* The first ${bits} of 64, in network byte order. */
static uint64_t client_name_mask(unsigned bits)
{
    return bits == 0 ? 0 : bits >= 64 ? UINT64_MAX : htobe64(UINT64_MAX << (64 - bits));
}

/* Zero all but the first ${bits} of ${host}. */
static void client_name_cut(uint8_t *host, unsigned bits)
{
    uint64_t half[2];

    memcpy(half, host, sizeof(half));
    half[0] &= client_name_mask(bits);
    half[1] &= client_name_mask(bits > 64 ? bits - 64 : 0);
    memcpy(host, half, sizeof(half));
}

static void client_name_set(struct client_name *out, const struct in6_addr *host,
                            const struct hash_key *key)
{
    memcpy(out->host, host, sizeof(out->host));
    out->hash = (uint32_t)hash_bytes(key, out, offsetof(struct client_name, hash));
}

bool client_name_of(struct client_name *out, const struct address *a,
                    const struct client_name_conf *conf, const struct hash_key *key)
{
    struct in6_addr host = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    size_t len;
    const void *bytes = address_host(a, &len);

    *out = (struct client_name){0};
    if (!bytes)
        return false;
    memcpy(host.s6_addr + sizeof(host) - len, bytes, len);
    if (len == 4)
        client_name_cut(host.s6_addr, MAPPED_BITS + conf->prefix_v4);
    else if (IN6_IS_ADDR_LINKLOCAL(&host))
        out->zone = a->u.in6.sin6_scope_id;
    else
        client_name_cut(host.s6_addr, conf->prefix_v6);
    client_name_set(out, &host, key);
    return true;
}

struct cidr client_name_block(const struct client_name *name, const struct client_name_conf *conf)
{
    struct cidr block = {.len = 16, .bits = (uint8_t)conf->prefix_v6};
    struct in6_addr host;

    memcpy(&host, name->host, sizeof(host));
    memcpy(block.host, &host, sizeof(host));
    if (IN6_IS_ADDR_V4MAPPED(&host)) {
        block = (struct cidr){.len = 4, .bits = (uint8_t)conf->prefix_v4};
        memcpy(block.host, host.s6_addr + MAPPED_BITS / 8, 4);
    } else if (IN6_IS_ADDR_LINKLOCAL(&host)) {
        block.bits = 128;
    }
    return block;
}

void client_name_of_block(struct client_name *out, const struct cidr *block, uint32_t zone,
                          const struct hash_key *key)
{
    struct in6_addr host = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

    *out = (struct client_name){.zone = zone};
    memcpy(host.s6_addr + sizeof(host) - block->len, block->host, block->len);
    client_name_set(out, &host, key);
}
