/*
 * net/dns: a DNS lookup by libc's resolver: the name servers, search domains and options of
 * /etc/resolv.conf.
 *
 * getaddrinfo(3) knows neither SRV records nor how long an answer is valid (TTL); this asks for
 * both. Each lookup has a resolver state of its own, so any number of threads may look names up at
 * a time. It blocks for as long as the name servers take.
 */
#ifndef NET_DNS_H
#define NET_DNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

/* How one lookup is done, and what is known of its answer. */
struct dns_terms {
    unsigned
        timeout_s;  /* one attempt of so long at each name server; 0: as /etc/resolv.conf says */
    int64_t ttl_ns; /* result: how long the answer is valid; CLOCK_NEVER: not known */
};

/* A record of an answer. */
struct dns_record {
    uint16_t type;
    const unsigned char *data;
    size_t len;
    const unsigned char *answer, *end; /* the whole answer, for compressed names */
};

struct dns_search {
    const char *name;      /* with the search domains, unless it ends in a dot */
    const uint16_t *types; /* each is asked for; what one of them finds is enough */
    unsigned n_types;
    /* Takes one record of one of the ${types}. */
    void (*on_record)(void *cookie, const struct dns_record *record);
    void *cookie;
};

/*
 * dns_search(s, terms):
 * Ask for records of all ${s}->types and hand each to ${s}->on_record(). ${terms}->ttl_ns becomes
 * the shortest TTL of the answers, aliases included. A record that cannot be read is left out,
 * alone.
 *
 * Thread: any but a loop
 * Errors: number of records; -ENOENT (no such name, or no such records); -EAGAIN (no name server
 *         answers); -EREMOTEIO (the name server fails, or its answer cannot be read); -ENOSYS (no
 *         resolver state); -ENOMEM
 * Source: RFC 1034, section 5.3.3; resolver(3)
 */
int dns_search(const struct dns_search *s, struct dns_terms *terms) NODISCARD;

/*
 * dns_name(out, size, record, offset):
 * Expand the name at ${offset} of the data of ${record}, without the dot of the root.
 *
 * Thread: any
 * Units:  bytes
 * Errors: 0; -EINVAL (not a name, or longer than ${size})
 */
int dns_name(char *out, size_t size, const struct dns_record *record, size_t offset) NODISCARD;

#endif
