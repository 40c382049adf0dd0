/*
 * net/resolve: resolves host names, by DNS with TTL if it is the only source (net/name_service.h)
 * or name servers are given, else by getaddrinfo(3).
 */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include <stddef.h>

#include "base/must.h"
#include "net/address.h"
#include "net/dns.h"

/* Bits of dns_terms.known and dns_terms.failed. */
enum resolve_family { RESOLVE_IPV4 = 1, RESOLVE_IPV6 = 2 };

/*
 * resolve_host(out, max, word, terms):
 * As address_parse_target(), but look up host names, which may block for long. Returns up to ${max}
 * different addresses; those of DNS have IPv6 first if it is routed. Each family is a lookup of its
 * own: terms->failed has those that failed. getaddrinfo(3) ignores terms->timeout_s, and tells only
 * of families in terms->known. Names below `localhost` are loopback addresses, without DNS.
 *
 * Thread: any but loops
 * Errors: number of addresses; as address_parse(), -ENOENT: no such name, or no address of either
 *         family; -EAGAIN (timeout); -EREMOTEIO (server failure); -ENOMEM; other -errno
 * Source: RFC 6761, section 6.3
 */
int resolve_host(struct address *out, size_t max, const char *word,
                 struct dns_terms *terms) NODISCARD;

/* resolve_family(a): return the enum resolve_family of ${a}; 0: a unix socket. */
unsigned resolve_family(const struct address *a);

#endif
