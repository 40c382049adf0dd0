#include "net/lookup_share.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "engine/promise.h"
#include "net/name_servers.h"

struct lookup_answer {
    struct list link;
    struct promise promise; /* done: the answer is there */
    unsigned users;         /* threads, under the lock */
    bool is_unusable;       /* no memory for a copy of the answer */
    int64_t answered_at_ns; /* CLOCK_NEVER: awaited */
    /* What was asked. */
    int (*ask)(void *out, size_t max, const char *name, struct dns_terms *terms);
    size_t max, item_bytes;
    struct name_servers *servers; /* a reference */
    unsigned timeout_s, known;
    /* The answer. */
    int rc;
    unsigned failed;
    int error;
    int64_t ttl_ns;
    void *items;
    char name[];
};

void lookup_share_open(struct lookup_share *s)
{
    lock_init(&s->lock);
    list_init(&s->answers);
}

static void lookup_answer_free(struct lookup_answer *a)
{
    list_remove(&a->link);
    promise_close(&a->promise);
    name_servers_release(a->servers);
    free(a->items);
    free(a);
}

void lookup_share_close(struct lookup_share *s)
{
    list_for_each_safe (node, &s->answers)
        lookup_answer_free(LIST_ENTRY(node, struct lookup_answer, link));
    lock_close(&s->lock);
}

static bool lookup_answer_is_for(const struct lookup_answer *a, size_t max, const struct lookup *l,
                                 const struct dns_terms *terms)
{
    return a->ask == l->ask && a->max == max && a->timeout_s == terms->timeout_s &&
           a->known == terms->known && name_servers_same(a->servers, terms->servers) &&
           !a->is_unusable && a->answered_at_ns >= terms->due_at_ns &&
           strcasecmp(a->name, l->name) == 0;
}

/* Find an answer that may be shared, awaited or not; free old ones. Under the lock. */
static struct lookup_answer *lookup_share_find(struct lookup_share *s, size_t max,
                                               const struct lookup *l,
                                               const struct dns_terms *terms)
{
    int64_t now_ns = clock_now_ns();
    struct lookup_answer *found = NULL;

    list_for_each_safe (node, &s->answers) {
        struct lookup_answer *a = LIST_ENTRY(node, struct lookup_answer, link);

        if (lookup_answer_is_for(a, max, l, terms))
            found = a;
        else if (a->users == 0 && now_ns - a->answered_at_ns > LOOKUP_SHARE_KEEP_NS)
            lookup_answer_free(a);
    }
    return found;
}

/* NULL: out of memory, so nothing is shared. */
static struct lookup_answer *lookup_answer_create(struct lookup_share *s, size_t max,
                                                  const struct lookup *l,
                                                  const struct dns_terms *terms)
{
    size_t bytes = strlen(l->name) + 1;
    struct lookup_answer *a = calloc(1, sizeof(*a) + bytes);

    if (!a)
        return NULL;
    promise_init(&a->promise, NULL);
    a->answered_at_ns = CLOCK_NEVER;
    a->ask = l->ask;
    a->max = max;
    a->item_bytes = l->item_bytes;
    a->servers = name_servers_hold(terms->servers);
    a->timeout_s = terms->timeout_s;
    a->known = terms->known;
    memcpy(a->name, l->name, bytes);
    list_append(&s->answers, &a->link);
    return a;
}

static void lookup_answer_set(struct lookup_answer *a, struct lookup_share *s, const void *out,
                              int rc, const struct dns_terms *terms)
{
    size_t bytes = rc > 0 ? (size_t)rc * a->item_bytes : 0;
    void *items = bytes > 0 ? malloc(bytes) : NULL;

    if (items)
        memcpy(items, out, bytes);
    lock_take(&s->lock);
    a->is_unusable = bytes > 0 && !items;
    a->items = items;
    a->rc = rc;
    a->failed = terms->failed;
    a->error = terms->error;
    a->ttl_ns = terms->ttl_ns;
    a->answered_at_ns = clock_now_ns();
    lock_release(&s->lock);
    promise_succeed(&a->promise);
}

/* Copy the answer; false: it is not usable. */
static bool lookup_answer_copy(const struct lookup_answer *a, void *out, struct dns_terms *terms)
{
    int64_t age_ns = clock_now_ns() - a->answered_at_ns;

    if (a->is_unusable)
        return false;
    if (a->items)
        memcpy(out, a->items, (size_t)a->rc * a->item_bytes);
    terms->failed = a->failed;
    terms->error = a->error;
    terms->ttl_ns = a->ttl_ns == CLOCK_NEVER ? CLOCK_NEVER
                    : a->ttl_ns > age_ns     ? a->ttl_ns - age_ns
                                             : 0;
    return true;
}

int lookup_share_ask(void *out, size_t max, const struct lookup *l, struct dns_terms *terms)
{
    struct lookup_share *s = terms->share;
    struct lookup_answer *a;
    bool is_shared, is_taken = false;
    int rc;

    if (!s)
        return l->ask(out, max, l->name, terms);
    lock_take(&s->lock);
    a = lookup_share_find(s, max, l, terms);
    is_shared = a != NULL;
    if (!a)
        a = lookup_answer_create(s, max, l, terms);
    if (a)
        a->users++;
    lock_release(&s->lock);
    if (is_shared && promise_await(&a->promise, CLOCK_NEVER) == 0)
        is_taken = lookup_answer_copy(a, out, terms);
    rc = is_taken ? a->rc : l->ask(out, max, l->name, terms);
    if (a && !is_shared)
        lookup_answer_set(a, s, out, rc, terms);
    lock_take(&s->lock);
    if (a)
        a->users--;
    lock_release(&s->lock);
    return rc;
}
