/* net/dns_answer: checks and reads the answer of a name server. */
#include <arpa/nameser.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "net/dns_internal.h"

/* Type and class behind the name of a question. */
#define DNS_QUESTION_TAIL_BYTES 4

/* Header: RFC 1035, section 4.1.1. */
#define DNS_QDCOUNT 4
#define DNS_ANCOUNT 6
#define DNS_ARCOUNT 10

/* In byte 2 and 3 of the header. */
#define DNS_QR     0x80u
#define DNS_OPCODE 0x78u
#define DNS_AA     0x04u
#define DNS_TC     0x02u
#define DNS_RA     0x80u
#define DNS_RCODE  0x0fu

struct dns_reading {
    ns_msg message;
    uint16_t type;
    char owner[NS_MAXDNAME]; /* of the records that are wanted */
    char target[NS_MAXDNAME];
    bool is_alias; /* ${owner} is one of ${target} */
    unsigned n;
    int64_t ttl_ns;
};

/* Length of the question behind the header, whose name is not compressed; 0: malformed. */
static size_t dns_answer_question_len(const unsigned char *message, size_t len)
{
    size_t at = NS_HFIXEDSZ;

    while (at < len && message[at] > 0 && message[at] <= NS_MAXLABEL)
        at += 1u + message[at];
    if (at >= len || message[at] != 0 || len - at < 1 + DNS_QUESTION_TAIL_BYTES)
        return 0;
    return at + 1 + DNS_QUESTION_TAIL_BYTES - NS_HFIXEDSZ;
}

/* Case matters neither in names nor, with these values, in lengths, types and classes. */
static bool dns_answer_is_question(const unsigned char *answer, const unsigned char *query,
                                   size_t len)
{
    for (size_t i = NS_HFIXEDSZ; i < NS_HFIXEDSZ + len; i++) {
        unsigned a = answer[i], b = query[i];

        a += a >= 'A' && a <= 'Z' ? 'a' - 'A' : 0;
        b += b >= 'A' && b <= 'Z' ? 'a' - 'A' : 0;
        if (a != b)
            return false;
    }
    return true;
}

enum dns_verdict dns_answer_check(const unsigned char *answer, size_t len,
                                  const unsigned char *query, size_t query_len)
{
    size_t question_len = dns_answer_question_len(query, query_len);
    unsigned rcode;
    bool understood;

    if (len < NS_HFIXEDSZ || question_len == 0 || memcmp(answer, query, 2) != 0 ||
        (answer[2] & (DNS_QR | DNS_OPCODE)) != DNS_QR)
        return DNS_ANSWER_FOREIGN;
    rcode = answer[3] & DNS_RCODE;
    understood = rcode != ns_r_formerr && rcode != ns_r_notimpl;
    if (!understood && ns_get16(query + DNS_ARCOUNT) != 0)
        return DNS_ANSWER_WITHOUT_OPT;
    if (ns_get16(answer + DNS_QDCOUNT) != 1 || len < NS_HFIXEDSZ + question_len)
        return understood ? DNS_ANSWER_FOREIGN : DNS_ANSWER_FAILED;
    if (!dns_answer_is_question(answer, query, question_len))
        return DNS_ANSWER_FOREIGN;
    if (rcode != ns_r_noerror && rcode != ns_r_nxdomain)
        return DNS_ANSWER_FAILED;
    if (answer[2] & DNS_TC)
        return DNS_ANSWER_TRUNCATED;
    /* Neither an authority nor a resolver: a referral. */
    if (rcode == ns_r_noerror && ns_get16(answer + DNS_ANCOUNT) == 0 && !(answer[2] & DNS_AA) &&
        !(answer[3] & DNS_RA))
        return DNS_ANSWER_FAILED;
    return DNS_ANSWER_USABLE;
}

static void dns_answer_take(struct dns_reading *r, const ns_rr *rr, const struct dns_search *search)
{
    r->n++;
    if (search)
        search->on_record(search->cookie, &(struct dns_record){.type = r->type,
                                                               .data = ns_rr_rdata(*rr),
                                                               .len = ns_rr_rdlen(*rr),
                                                               .answer = ns_msg_base(r->message),
                                                               .end = ns_msg_end(r->message)});
}

/* Take the records of r->owner, or find what it is an alias of; -EREMOTEIO: malformed. */
static int dns_answer_scan(struct dns_reading *r, const struct dns_search *search)
{
    int64_t alias_ttl_ns = CLOCK_NEVER;
    ns_rr rr;

    r->is_alias = false;
    for (int i = 0; i < ns_msg_count(r->message, ns_s_an); i++) {
        int64_t ttl_ns;

        if (ns_parserr(&r->message, ns_s_an, i, &rr) < 0)
            return -EREMOTEIO;
        ttl_ns = (int64_t)ns_rr_ttl(rr) * NS_PER_S;
        if (ns_rr_class(rr) != ns_c_in || strcasecmp(ns_rr_name(rr), r->owner) != 0)
            continue;
        if (ns_rr_type(rr) == r->type) {
            r->ttl_ns = ttl_ns < r->ttl_ns ? ttl_ns : r->ttl_ns;
            dns_answer_take(r, &rr, search);
        } else if (ns_rr_type(rr) == ns_t_cname && !r->is_alias) {
            if (ns_name_uncompress(ns_msg_base(r->message), ns_msg_end(r->message), ns_rr_rdata(rr),
                                   r->target, sizeof(r->target)) < 0)
                return -EREMOTEIO;
            r->is_alias = true;
            alias_ttl_ns = ttl_ns;
        }
    }
    if (r->n == 0 && r->is_alias && alias_ttl_ns < r->ttl_ns)
        r->ttl_ns = alias_ttl_ns;
    return 0;
}

/* Follow aliases from the question to the owner of records; pass them to ${search} or NULL. */
static int dns_answer_follow(struct dns_reading *r, const struct dns_search *search)
{
    ns_rr question;

    if (ns_msg_count(r->message, ns_s_qd) != 1 ||
        ns_parserr(&r->message, ns_s_qd, 0, &question) < 0)
        return -EREMOTEIO;
    snprintf(r->owner, sizeof(r->owner), "%s", ns_rr_name(question));
    for (unsigned aliases = 0; aliases <= DNS_ANSWER_ALIASES; aliases++) {
        if (dns_answer_scan(r, search) < 0)
            return -EREMOTEIO;
        if (r->n > 0)
            return (int)r->n;
        if (!r->is_alias)
            /* A name server that is no resolver does not know the last name of the chain. */
            return aliases == 0 || ns_msg_getflag(r->message, ns_f_ra) ||
                           ns_msg_getflag(r->message, ns_f_rcode) == ns_r_nxdomain
                       ? -ENOENT
                       : -EREMOTEIO;
        memcpy(r->owner, r->target, sizeof(r->owner));
    }
    return -EREMOTEIO;
}

int dns_answer_read(const unsigned char *answer, size_t len, uint16_t type,
                    const struct dns_search *search, int64_t *ttl_ns)
{
    struct dns_reading r = {.type = type, .ttl_ns = CLOCK_NEVER};
    int rc;

    if (len > NS_MAXMSG || ns_initparse(answer, (int)len, &r.message) < 0)
        return -EREMOTEIO;
    rc = dns_answer_follow(&r, NULL); /* a malformed answer passes nothing */
    if (rc > 0 && search) {
        r.n = 0;
        rc = dns_answer_follow(&r, search);
    }
    if (rc > 0 && ttl_ns && r.ttl_ns < *ttl_ns)
        *ttl_ns = r.ttl_ns;
    return rc;
}
