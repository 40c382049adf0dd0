/*
 * net/dns: DNS queries by libc's resolver, with the settings of /etc/resolv.conf.
 *
 * getaddrinfo(3) returns neither SRV records nor TTLs. Each lookup has its own resolver state, so
 * threads may query in parallel. Blocks for as long as the name servers take.
 */
#ifndef NET_DNS_H
#define NET_DNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct dns_terms {
    unsigned timeout_s; /* one attempt per name server; 0: resolv.conf decides */
    int64_t ttl_ns;     /* result: TTL; CLOCK_NEVER: unknown */
};

struct dns_record {
    uint16_t type;
    const unsigned char *data;
    size_t len;
    const unsigned char *answer, *end; /* the whole answer, for compressed names */
};

struct dns_search {
    const char *name;      /* search domains apply, unless it ends in a dot */
    const uint16_t *types; /* all are queried; one found is success */
    unsigned n_types;
    /* Takes one record of one of the ${types}. */
    void (*on_record)(void *cookie, const struct dns_record *record);
    void *cookie;
};

/*
 * dns_search(s, terms):
 * Query all ${s}->types and pass each record to ${s}->on_record(). ${terms}->ttl_ns becomes the
 * shortest TTL of the answers, aliases included. A malformed record ends its answer; the records
 * before it count.
 *
 * Thread: any but a loop
 * Errors: number of records; -ENOENT (no such name or records); -EAGAIN (timeout); -EREMOTEIO
 *         (server failure or malformed answer); -ENOSYS (no resolver state); -ENOMEM
 * Source: RFC 1034, section 5.3.3; resolver(3)
 */
int dns_search(const struct dns_search *s, struct dns_terms *terms) NODISCARD;

/*
 * dns_name(out, size, record, offset):
 * Expand the name at ${offset} of ${record}'s data, without the root's dot.
 *
 * Thread: any
 * Errors: 0; -EINVAL (malformed, or longer than ${size})
 */
int dns_name(char *out, size_t size, const struct dns_record *record, size_t offset) NODISCARD;

#endif
