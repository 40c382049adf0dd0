/* net/dns_answer: checks and reads the answer of a name server. */
/*
 * Fuzz net/dns_answer: whatever a name server sends, each record that is taken lies within the
 * answer, a number of them is told that is right, and a malformed answer passes none.
 *
 * Input: the type that is asked for, then the answer. The query is one to which it fits.
 */
#include <arpa/nameser.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/dns_internal.h"
#include "base/must.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    free(answer);
    free(query);
    return 0;
}
