/*
 * net/resolve: the addresses of a host name: from /etc/hosts, DNS, or whatever else
 * nsswitch.conf(5) names.
 *
 * Where DNS alone is asked (net/name_service.h), this asks it by itself and so learns the TTL.
 * Everything else is left to getaddrinfo(3), without a TTL.
 */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include <stddef.h>

#include "base/must.h"
#include "net/address.h"
#include "net/dns.h"

/*
 * resolve_host(out, max, word, terms):
 * As address_parse_target(), and a host name is looked up, which may block for long. The addresses
 * are all different; those of IPv6 come first if there is a route to them. What goes beyond ${max}
 * addresses is left out. getaddrinfo(3) heeds no ${terms}->timeout_s.
 *
 * Thread: any but a loop
 * Errors: number of addresses; as address_parse(), where -ENOENT means that there is no such name;
 *         -EAGAIN (no name server answers); -EREMOTEIO (one did, and failed); -ENOMEM; -errno of
 *         what failed on the way to one
 */
int resolve_host(struct address *out, size_t max, const char *word,
                 struct dns_terms *terms) NODISCARD;

#endif
