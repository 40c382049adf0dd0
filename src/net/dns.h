/*
 * net/dns: DNS queries by libc's resolver, as /etc/resolv.conf says.
 *
 * Unlike getaddrinfo(3) it returns SRV records and TTLs. Blocks; threads may query in parallel.
 */
#ifndef NET_DNS_H
#define NET_DNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct dns_terms {
    unsigned timeout_s; /* for the single attempt per name server; 0: as in resolv.conf */
    int64_t ttl_ns;     /* result: TTL; CLOCK_NEVER: unknown */
};

struct dns_record {
    uint16_t type;
    const unsigned char *data;
    size_t len;
    const unsigned char *answer, *end; /* the whole answer, for compressed names */
};

struct dns_search {
    const char *name;      /* search domains apply, unless the name ends in a dot */
    const uint16_t *types; /* all are queried; records of one suffice */
    unsigned n_types;
    void (*on_record)(void *cookie, const struct dns_record *record);
    void *cookie;
};

/*
 * dns_search(s, terms):
 * Query all s->types and pass each record to s->on_record(). terms->ttl_ns becomes the shortest
 * TTL, those of aliases included. Records behind a malformed one are ignored.
 *
 * Thread: any but loops
 * Errors: number of records; -ENOENT (no such name or records); -EAGAIN (timeout); -EREMOTEIO
 *         (server failure, malformed answer); -ENOSYS (no resolver state); -ENOMEM
 * Source: RFC 1034, section 5.3.3; resolver(3)
 */
int dns_search(const struct dns_search *s, struct dns_terms *terms) NODISCARD;

/*
 * dns_name(out, size, record, offset):
 * Expand the name at ${offset} in the record's data, without final dot.
 *
 * Thread: any
 * Errors: 0; -EINVAL (malformed or too long)
 */
int dns_name(char *out, size_t size, const struct dns_record *record, size_t offset) NODISCARD;

#endif
