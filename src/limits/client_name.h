/*
 * limits/client_name: what identifies a client for limits and bans: the first bits of its address.
 */
#ifndef LIMITS_CLIENT_NAME_H
#define LIMITS_CLIENT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "net/cidr.h"

struct address;
struct hash_key;

/* Compare with memcmp(). */
struct client_name {
    uint64_t host[2]; /* prefix, IPv4 as IPv4-mapped */
    uint32_t zone;    /* scope id if link-local; else 0 */
    uint32_t hash;    /* of `host` and `zone` */
};

/* Bits of an address that identify a client: 1 to 32, and 1 to 128. */
struct client_name_conf {
    unsigned prefix_v4, prefix_v6;
};

/*
 * client_name_of(out, a, conf, key):
 * Set ${out} to the name of the client ${a}, with a hash by ${key}; false: a unix socket, which has
 * none. A link-local address counts with all its bits and its zone.
 */
bool client_name_of(struct client_name *out, const struct address *a,
                    const struct client_name_conf *conf, const struct hash_key *key);

/*
 * client_name_block(name, conf) / client_name_of_block(out, block, zone, key):
 * Return the block of addresses that ${name} stands for / set ${out} to the name that stands for
 * ${block}, link-local with ${zone}.
 */
struct cidr client_name_block(const struct client_name *name, const struct client_name_conf *conf);
void client_name_of_block(struct client_name *out, const struct cidr *block, uint32_t zone,
                          const struct hash_key *key);

#endif
