/*
 * names/resolver_cache: last answers of host names and SRV services, kept across reloads and
 * upgrades.
 *
 * An answer belongs to a name, not to a server line: all lines with the same host or service share
 * it, whatever their ports, if the same [resolver NAME] is asked. It is kept as long as a line has
 * the name.
 *
 *   name KEY ANSWERED TTL ANSWER      a line for the next process
 *
 * Times are in ns, ANSWERED of CLOCK_MONOTONIC. KEY is host:NAME or service:NAME, with @RESOLVER
 * behind it if a [resolver NAME] is asked. ANSWER has a word for each address of a host, or
 * TARGET;PRIORITY;WEIGHT;ADDRESS... for each record of a service, separated by commas.
 */
#ifndef NAMES_RESOLVER_CACHE_H
#define NAMES_RESOLVER_CACHE_H

#include <stdint.h>
#include <stdio.h>

#include "balance/upstream_server.h"
#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"

#define RESOLVER_CACHE_BUCKETS 256

struct name_servers;
struct resolver_found_addresses;

/* Owned by the control loop; the lock guards `answer` and the lists for resolver_cache_write(). */
struct resolver_cache_entry {
    struct list link;
    unsigned users;      /* names, and resolver_cache_read() */
    bool is_handed_over; /* resolver_cache_read() is a user */
    char *answer;        /* NULL: no answer yet */
    int64_t answered_at_ns;
    int64_t ttl_ns;
    char key[];
};

struct resolver_cache {
    struct lock lock;
    struct list buckets[RESOLVER_CACHE_BUCKETS];
};

/*
 * resolver_cache_init(c) / resolver_cache_close(c):
 * Initialize ${c} / free its entries.
 *
 * Thread: main, before start / after the control loop
 */
void resolver_cache_init(struct resolver_cache *c);
void resolver_cache_close(struct resolver_cache *c);

/*
 * resolver_cache_take(c, names, word, servers) / resolver_cache_release(c, entry):
 * Return the entry of ${word}, an address_text with ${names}, as asked of ${servers} (or NULL), and
 * add a user / release it (NULL is allowed).
 *
 * Thread: control loop; release: also main, after it
 * Errors: NULL (out of memory)
 */
struct resolver_cache_entry *resolver_cache_take(struct resolver_cache *c,
                                                 enum upstream_names names, const char *word,
                                                 const struct name_servers *servers) NODISCARD;
void resolver_cache_release(struct resolver_cache *c, struct resolver_cache_entry *entry);

/*
 * resolver_cache_put(c, entry, found, answered_at_ns) / resolver_cache_forget(c, entry):
 * Keep the answer ${found}; without memory the previous one stays / drop the answer: the name has
 * no addresses any more.
 *
 * Thread: control loop
 */
void resolver_cache_put(struct resolver_cache *c, struct resolver_cache_entry *entry,
                        const struct resolver_found_addresses *found, int64_t answered_at_ns);
void resolver_cache_forget(struct resolver_cache *c, struct resolver_cache_entry *entry);

/*
 * resolver_cache_get(entry, word, out):
 * Return the answer of ${entry} as that of a lookup of ${word}, whose port it gets.
 *
 * Thread: control loop
 * Owns:   the caller calls resolver_free_found()
 * Errors: 0; -ENODATA (no answer); -ENOMEM
 */
int resolver_cache_get(const struct resolver_cache_entry *entry, const char *word,
                       struct resolver_found_addresses **out) NODISCARD;

/* resolver_cache_write(c, f): write a line for each answer. */
void resolver_cache_write(struct resolver_cache *c, FILE *f);

/*
 * resolver_cache_read(c, text) / resolver_cache_drop_unused(c):
 * Add the answers in ${text}; other lines are ignored / free those that no name uses.
 *
 * Thread: main, before start / control loop, or main before start
 * Errors: 0; -ENOMEM
 */
int resolver_cache_read(struct resolver_cache *c, const char *text) NODISCARD;
void resolver_cache_drop_unused(struct resolver_cache *c);

#endif
