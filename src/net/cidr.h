/*
 * net/cidr: a block of addresses, such as 10.0.0.0/8 or 2001:db8::/32, and who is in it.
 *
 * Written forms:   10.0.0.0/8   10.1.2.3   2001:db8::/32   ::1   unix
 * A host without a prefix is a block of one; `unix` is every unix socket. IPv4 mapped to IPv6 is
 * IPv4, in blocks as in addresses: ::ffff:10.0.0.0/104 is 10.0.0.0/8, and ::/0 has no IPv4 address
 * in it.
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
    uint8_t len;      /* bytes of ${host}: 4, 16, or 0 for `unix` */
    uint8_t bits;     /* how many of them all members share */
    uint8_t host[16]; /* zero behind these bits */
};

struct cidr_list {
    struct cidr *list;
    unsigned n;
};

/* Room for the longest text cidr_format() writes, its NUL included. */
#define CIDR_TEXT_BYTES (INET6_ADDRSTRLEN + 4)

/*
 * cidr_parse(out, word):
 * The block that ${word} stands for.
 *
 * Thread: any
 * Errors: 0; -EINVAL (no such block); -ERANGE (the prefix is longer than the address); -EDOM (bits
 *         are set behind the prefix: ${out} is the block that has the host in it)
 * Source: RFC 4632, section 3.1; RFC 4291, section 2.3
 */
int cidr_parse(struct cidr *out, const char *word) NODISCARD;

/*
 * cidr_has(c, a) / cidr_any_has(list, n, a):
 * Is ${a} in ${c}; in any of ${n} blocks? The port does not matter, nor the interface of a
 * link-local address.
 *
 * Thread: any
 */
bool cidr_has(const struct cidr *c, const struct address *a);
bool cidr_any_has(const struct cidr *list, size_t n, const struct address *a);

/*
 * cidr_format(text, size, c):
 * Write ${c} as it would be configured, always with its prefix. Returns ${text}.
 *
 * Thread: any
 * Units:  ${size} bytes, at least CIDR_TEXT_BYTES
 */
const char *cidr_format(char *text, size_t size, const struct cidr *c);

#endif
