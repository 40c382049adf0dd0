/*
 * net/dns_internal: the questions of a search to the name servers, and their answers.
 *
 * One question for each type, all at once, to one name server after the other. Each query has a
 * socket of its own. It begins with a datagram, and continues with TCP if the answer is truncated.
 * A name server that fails, refuses or is silent is followed by the next one.
 */
#ifndef NET_DNS_INTERNAL_H
#define NET_DNS_INTERNAL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "net/dns.h"
#include "net/name_servers.h"

/* Header, question and OPT record, and the length in front of them for TCP. */
#define DNS_QUERY_BYTES 320

struct dns_servers {
    struct address list[NAME_SERVERS_MAX]; /* in the order to ask */
    unsigned n;
    unsigned attempts; /* for each name server */
    int64_t timeout_ns;
    bool by_tcp;                       /* no datagrams */
    bool takes_truncated;              /* no TCP */
    bool sends_opt;                    /* asks for longer datagrams, by an OPT record (RFC 6891) */
    struct dns_preference *preference; /* NULL: none */
};

struct dns_query {
    uint16_t type;
    unsigned char query[DNS_QUERY_BYTES]; /* from [2] on; before that its length */
    size_t query_len;
    unsigned char *answer; /* NS_MAXMSG bytes */
    size_t answer_len;
    int result; /* 0: ${answer} is usable; else -errno */
    /* For dns_query_run(). */
    int fd; /* -1: none */
    bool is_stream, is_done;
    bool has_failed; /* a name server has answered, but failed */
    unsigned turn;   /* number of name servers given up */
    size_t moved;    /* bytes of the stream, sent and then received */
    int64_t until_ns;
};

/* dns_servers_prefer(s): move the name server of s->preference to the front. */
void dns_servers_prefer(struct dns_servers *s);

/*
 * dns_query_write(q, servers, name, type):
 * Write the question into q->query. ${name} is complete, with or without final dot.
 *
 * Errors: 0; -EINVAL (not a domain name)
 */
int dns_query_write(struct dns_query *q, const struct dns_servers *servers, const char *name,
                    uint16_t type) NODISCARD;

/*
 * dns_query_run(list, n, servers):
 * Ask all ${n} questions at once; set `result` of each: as dns_search(), without -ENOENT.
 *
 * Thread: any but loops
 */
void dns_query_run(struct dns_query *list, unsigned n, const struct dns_servers *servers);

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
