/* net/srv: SRV lookup (RFC 2782): hosts and ports of a service, with priorities and weights. */
#ifndef NET_SRV_H
#define NET_SRV_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "net/dns.h"

/* Longest `host:port` with NUL. */
#define SRV_TARGET_BYTES 264

struct srv_record {
    char target[SRV_TARGET_BYTES]; /* `host:port`, for resolve_host() */
    uint16_t priority;             /* lowest first */
    uint16_t weight;               /* share among records of the same priority */
};

/*
 * srv_resolve(out, max, name, terms):
 * Look up `_service._tcp.domain` by dns_search(); blocks. Returns up to ${max} records with valid
 * hosts, by priority, then the heaviest first.
 *
 * Thread: any but loops
 * Errors: number of records; as dns_search(), -ENOENT also: service not offered
 */
int srv_resolve(struct srv_record *out, size_t max, const char *name,
                struct dns_terms *terms) NODISCARD;

#endif
