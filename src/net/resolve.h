/*
 * net/resolve: resolves host names, by DNS with TTL if it is the only source (net/name_service.h),
 * else by getaddrinfo(3).
 */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include <stddef.h>

#include "base/must.h"
#include "net/address.h"
#include "net/dns.h"

/*
 * resolve_host(out, max, word, terms):
 * As address_parse_target(), but look up host names, which may block for long. Returns up to ${max}
 * different addresses; those of DNS have IPv6 first if it is routed. getaddrinfo(3) ignores
 * terms->timeout_s.
 *
 * Thread: any but loops
 * Errors: number of addresses; as address_parse(), -ENOENT: no such name; -EAGAIN (timeout);
 *         -EREMOTEIO (server failure); -ENOMEM; other -errno
 */
int resolve_host(struct address *out, size_t max, const char *word,
                 struct dns_terms *terms) NODISCARD;

#endif
