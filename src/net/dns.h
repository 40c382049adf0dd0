/*
 * net/dns: DNS queries to the name servers of /etc/resolv.conf, or to others.
 *
 * Unlike getaddrinfo(3) it returns SRV records and TTLs, queries all types at once, tells which of
 * them failed, and begins with the name server that answered last. Blocks; threads may query in
 * parallel.
 */
#ifndef NET_DNS_H
#define NET_DNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct dns_preference;
struct lookup_share;
struct name_servers;

/* Maximum types of one search. */
#define DNS_TYPES 2

struct dns_terms {
    struct name_servers *servers; /* to ask; NULL: those of resolv.conf */
    unsigned timeout_s; /* for the single attempt per name server; 0: as configured for them */
    struct dns_preference *preference; /* NULL: none */
    struct lookup_share *share;        /* for lookups of the same name; NULL: not shared */
    int64_t due_at_ns;                 /* answers that came later may be shared */
    unsigned known;                    /* enum resolve_family: those that had addresses */
    int64_t ttl_ns;                    /* result: TTL; CLOCK_NEVER: unknown */
    /*
     * Results of a lookup that has records: queries that failed, as bits of the index in `types`
     * or enum resolve_family, and the error of one.
     */
    unsigned failed;
    int error;
};

struct dns_record {
    uint16_t type;
    const unsigned char *data;
    size_t len;
    const unsigned char *answer, *end; /* the whole answer, for compressed names */
};

struct dns_search {
    /* Search domains apply, unless it ends in a dot or terms->servers are asked. */
    const char *name;
    const uint16_t *types; /* all are queried at once; records of one suffice */
    unsigned n_types;      /* at most DNS_TYPES */
    void (*on_record)(void *cookie, const struct dns_record *record);
    void *cookie;
};

/*
 * dns_search(s, terms):
 * Query all s->types and pass each record of the name, or of a name that it is an alias of, to
 * s->on_record(), in the order of types. terms->ttl_ns becomes the shortest TTL, those of aliases
 * included.
 *
 * Thread: any but loops
 * Errors: number of records; -ENOENT (no such name, or no records of any type: a name server says
 *         so); -EAGAIN (timeout); -EREMOTEIO (server failure, malformed answer); -ENOSYS (no
 *         resolver state); -EINVAL (not a domain name); -ENOMEM; -EMFILE, -ENFILE
 * Source: RFC 1034, section 5.3.3; resolver(3)
 */
int dns_search(const struct dns_search *s, struct dns_terms *terms) NODISCARD;

/*
 * dns_name(out, size, record, offset):
 * Expand the name at ${offset} in the record's data, without final dot.
 *
 * Errors: 0; -EINVAL (malformed or too long)
 */
int dns_name(char *out, size_t size, const struct dns_record *record, size_t offset) NODISCARD;

#endif
