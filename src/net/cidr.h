/*
 * net/cidr: address blocks.
 *
 *   10.0.0.0/8   10.1.2.3   2001:db8::/32   ::1   unix
 *
 * `unix` contains every unix socket. IPv4-mapped blocks are IPv4: ::ffff:10.0.0.0/104 is
 * 10.0.0.0/8; ::/0 contains no IPv4 address.
 */
#ifndef NET_CIDR_H
#define NET_CIDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct address;

struct cidr {
    uint8_t len;      /* bytes of `host`: 4 or 16; 0: the block `unix` */
    uint8_t bits;     /* prefix length */
    uint8_t host[16]; /* zero behind the prefix */
};

struct cidr_list {
    struct cidr *list;
    unsigned n;
};

/* Longest text of cidr_format(), with NUL. */
#define CIDR_TEXT_BYTES (INET6_ADDRSTRLEN + 4)

/*
 * cidr_parse(out, word):
 * Parse a block; without `/` it is one address.
 *
 * Errors: 0; -EINVAL; -ERANGE (prefix longer than the address); -EDOM (bits set behind the prefix;
 *         ${out} has them cleared)
 * Source: RFC 4632, section 3.1; RFC 4291, section 2.3
 */
int cidr_parse(struct cidr *out, const char *word) NODISCARD;

/*
 * cidr_has(c, a) / cidr_any_has(list, n, a):
 * Does the block, or any of ${n}, contain ${a}? Ignores port and scope.
 */
bool cidr_has(const struct cidr *c, const struct address *a);
bool cidr_any_has(const struct cidr *list, size_t n, const struct address *a);

/* cidr_covers(c, other): does ${c} contain all of ${other}? */
bool cidr_covers(const struct cidr *c, const struct cidr *other);

/*
 * cidr_format(text, size, c):
 * Write ${c} with its prefix. Returns ${text}.
 *
 * Units:  ${size} bytes, at least CIDR_TEXT_BYTES
 */
const char *cidr_format(char *text, size_t size, const struct cidr *c);

#endif
