/*
 * net/lookup_share: lookups of one name by several threads, or by several server lines at once, are
 * one lookup.
 *
 * A lookup waits while another thread looks up the same name, and takes an answer that came after
 * it was due. So 40 lines with one name cost one lookup at start, and no answer is older than
 * without sharing.
 */
#ifndef NET_LOOKUP_SHARE_H
#define NET_LOOKUP_SHARE_H

#include <stddef.h>

#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"
#include "net/dns.h"

/* Time that an answer is kept for lookups that wait for a thread. */
#define LOOKUP_SHARE_KEEP_NS (30 * NS_PER_S)

struct lookup_share {
    struct lock lock;
    struct list answers; /* also those that are awaited */
};

struct lookup {
    /* Fill ${out} with up to ${max} items; as resolve_host(). */
    int (*ask)(void *out, size_t max, const char *name, struct dns_terms *terms);
    const char *name;
    size_t item_bytes;
};

/*
 * lookup_share_open(s) / lookup_share_close(s):
 * Create / free all answers.
 *
 * Thread: any, while no other thread uses ${s}
 */
void lookup_share_open(struct lookup_share *s);
void lookup_share_close(struct lookup_share *s);

/*
 * lookup_share_ask(out, max, l, terms):
 * Call l->ask(), or take the answer of another lookup with the same `ask`, name, ${max}, name
 * servers and time limit, by terms->share; without that, just call l->ask().
 *
 * Thread: any but loops
 * Errors: as l->ask()
 */
int lookup_share_ask(void *out, size_t max, const struct lookup *l,
                     struct dns_terms *terms) NODISCARD;

#endif
