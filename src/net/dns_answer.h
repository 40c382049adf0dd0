/* net/dns_answer: checks and reads the answer of a name server. */
#ifndef NET_DNS_ANSWER_H
#define NET_DNS_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "net/dns.h"

/* Maximum length of a chain of aliases. */
#define DNS_ANSWER_ALIASES 16

enum dns_verdict {
    DNS_ANSWER_FOREIGN,     /* not an answer to the query */
    DNS_ANSWER_TRUNCATED,   /* to be asked for by TCP */
    DNS_ANSWER_WITHOUT_OPT, /* the name server does not understand the query's OPT record */
    DNS_ANSWER_FAILED,      /* the name server fails, refuses, or only refers to others */
    DNS_ANSWER_USABLE       /* records, or an authoritative or cached "no" */
};

/*
 * dns_answer_check(answer, len, query, query_len):
 * Judge ${answer} to ${query}, a message with one question.
 *
 * Source: RFC 1035, section 7.3; RFC 5452, section 9.1
 */
enum dns_verdict dns_answer_check(const unsigned char *answer, size_t len,
                                  const unsigned char *query, size_t query_len);

/*
 * dns_answer_read(answer, len, type, search, ttl_ns):
 * Pass each record of ${type} that belongs to the name of the question, or to a name that it is an
 * alias of, to search->on_record(); other records are ignored. *${ttl_ns} is lowered to the
 * shortest TTL of these records and aliases. ${search} and ${ttl_ns} may be NULL.
 *
 * Errors: number of records; -ENOENT (no such name or record); -EREMOTEIO (malformed, too many
 *         aliases, or aliases that lead out of what the name server knows; no record was passed)
 */
int dns_answer_read(const unsigned char *answer, size_t len, uint16_t type,
                    const struct dns_search *search, int64_t *ttl_ns) NODISCARD;

#endif
