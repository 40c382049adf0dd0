/*
 * net/dns_query: one question for each type, all at once, to one name server after the other.
 *
 * Each query has a socket of its own. It begins with a datagram, and continues with TCP if the
 * answer is truncated. A name server that fails, refuses or is silent is followed by the next one.
 */
#ifndef NET_DNS_QUERY_H
#define NET_DNS_QUERY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "net/dns.h"

/* Maximum number of name servers, as in resolv.conf(5). */
#define DNS_SERVERS 3

/* Header, question and OPT record, and the length in front of them for TCP. */
#define DNS_QUERY_BYTES 320

struct dns_server {
    socklen_t len;
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } u;
};

struct dns_servers {
    struct dns_server list[DNS_SERVERS]; /* in the order to ask */
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

#endif
