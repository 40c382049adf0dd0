/* net/dns_answer: checks and reads the answer of a name server. */
/*
 * Fuzz net/dns_answer and net/srv: whatever a name server sends, each record that is taken lies
 * within the answer, a number of them is told that is right, and a malformed answer passes none.
 * Servers of SRV records are in order, each with a host and a port.
 *
 * Input: the type that is asked for, then the answer. The query is one to which it fits. net/srv
 * gets the answer from a search in this file: so its source is included here.
 */
#include <arpa/nameser.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "net/address.h"
#include "net/dns_internal.h"

static int search_answer(const struct dns_search *s, struct dns_terms *terms);

#define dns_search(s, terms) search_answer(s, terms)
#define srv_resolve          fuzz_srv_resolve
#include "net/srv.c"
#undef dns_search

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SRV_MOST 8

struct taken {
    const unsigned char *begin, *end;
    uint16_t type;
    int n;
};

static void take(void *cookie, const struct dns_record *record)
{
    struct taken *t = cookie;
    char name[NS_MAXDNAME];

    MUST(record->type == t->type && record->answer == t->begin && record->end == t->end);
    MUST(record->data > t->begin && record->data + record->len <= t->end);
    for (size_t at = 0; at <= record->len && at < 8; at++)
        if (dns_name(name, sizeof(name), record, at) == 0)
            MUST(strlen(name) < sizeof(name));
    t->n++;
}

/* The answer that a search gets. */
static const unsigned char *searched;
static size_t searched_len;

static int search_answer(const struct dns_search *s, struct dns_terms *terms)
{
    MUST(s->n_types == 1 && s->types[0] == ns_t_srv);
    return dns_answer_read(searched, searched_len, ns_t_srv, s, &terms->ttl_ns);
}

static void read_services(const unsigned char *answer, size_t len)
{
    static struct srv_record list[SRV_MOST];
    struct dns_terms terms = {.ttl_ns = CLOCK_NEVER};
    struct address a[2];
    int n;

    searched = answer;
    searched_len = len;
    n = srv_resolve(list, SRV_MOST, "_x._tcp.example", &terms);
    MUST(n <= SRV_MOST && n != 0);
    for (int i = 0; i < n; i++) {
        MUST(memchr(list[i].target, '\0', SRV_TARGET_BYTES) != NULL);
        MUST(i == 0 || srv_compare(&list[i - 1], &list[i]) <= 0);
        MUST(address_parse_target(a, 2, list[i].target) != -EINVAL);
    }
}

static void read_answer(const unsigned char *answer, size_t len, uint16_t type)
{
    struct taken taken = {.begin = answer, .end = answer + len, .type = type};
    struct dns_search search = {.on_record = take, .cookie = &taken};
    int64_t ttl_ns = CLOCK_NEVER;
    int rc = dns_answer_read(answer, len, type, &search, &ttl_ns);

    MUST(rc > 0 ? rc == taken.n : taken.n == 0 && (rc == -ENOENT || rc == -EREMOTEIO));
    MUST(rc > 0 ? ttl_ns >= 0 && ttl_ns < CLOCK_NEVER : ttl_ns == CLOCK_NEVER);
    MUST(dns_answer_read(answer, len, type, NULL, NULL) == rc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *answer, *query;
    size_t len = size > 1 ? size - 1 : 0;
    enum dns_verdict verdict;

    if (size == 0)
        return 0;
    answer = malloc(len + 1); /* copies, so that reading past the end is seen */
    query = malloc(len + 1);
    MUST(answer && query);
    memcpy(answer, data + 1, len);
    memcpy(query, data + 1, len);
    if (len >= NS_HFIXEDSZ) {
        query[2] = 1; /* what an answer has, a question has not */
        query[3] = 0;
        memset(query + 6, 0, 6);
        query[11] = data[0] >> 7; /* an OPT record */
    }
    verdict = dns_answer_check(answer, len, query, len);
    MUST(verdict <= DNS_ANSWER_USABLE);
    MUST(len >= NS_HFIXEDSZ || verdict == DNS_ANSWER_FOREIGN);
    read_answer(answer, len, data[0] & 0x7f);
    read_services(answer, len);
    free(answer);
    free(query);
    return 0;
}
