/*
 * net/srv: the SRV records of a service (RFC 2782): on which hosts and ports it is, and in what
 * order to try them.
 */
#ifndef NET_SRV_H
#define NET_SRV_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "net/dns.h"

/* Room for a host name, a ':', a port and NUL. */
#define SRV_TARGET_BYTES 264

struct srv_record {
    char target[SRV_TARGET_BYTES]; /* `host:port`, for resolve_host() */
    uint16_t priority;             /* the lowest first */
    uint16_t weight;               /* its share among those of one priority */
};

/*
 * srv_resolve(out, max, name, terms):
 * Look up the records of ${name} (`_service._tcp.domain`) as dns_search() does; may block for as
 * long as that does. They come by priority, then the heaviest first. What goes beyond ${max} is
 * left out, and so is what cannot be a host.
 *
 * Thread: any but a loop
 * Errors: number of records; as dns_search(), where -ENOENT also means that the records say there
 *         is no such service
 */
int srv_resolve(struct srv_record *out, size_t max, const char *name,
                struct dns_terms *terms) NODISCARD;

#endif
