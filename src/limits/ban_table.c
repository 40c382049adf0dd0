/* Entries are numbered from 1; 0 means no entry. */
#include "limits/ban_table_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "net/address.h"

/* Ended bans that an accept removes at a time. */
#define ENDED_AT_ONCE 8

/* ---- entries, under the lock ---- */

struct ban_table_entry *ban_table_at(const struct ban_table *t, uint32_t place)
{
    return &t->entries[place - 1];
}

static struct ban_table_entry *ban_table_least_recent(const struct ban_table *t)
{
    return list_empty(&t->offenders) ? NULL
                                     : LIST_ENTRY(t->offenders.next, struct ban_table_entry, link);
}

static bool ban_table_ends_before(const void *a, const void *b)
{
    const struct ban_table_entry *first = a, *second = b;

    return first->until_ns < second->until_ns;
}

static void ban_table_moved(void *item, size_t at)
{
    struct ban_table_entry *e = item;

    e->at = (uint32_t)at;
}

static void ban_table_tell(struct ban_table *t)
{
    atomic_store_explicit(&t->n_bans, (unsigned)t->bans.n,
                          memory_order_relaxed); /* see note: bans */
}

void ban_table_end(struct ban_table *t, struct ban_table_entry *e)
{
    heap_remove(&t->bans, e->at);
    ban_table_tell(t);
    e->until_ns = 0;
    memset(e->counts, 0, sizeof(e->counts));
    list_append(t->offenders.next, &e->link); /* the next to be evicted */
}

unsigned ban_table_expire(struct ban_table *t, int64_t now_ns, unsigned max)
{
    struct ban_table_entry *e;
    unsigned n = 0;

    for (; n < max && (e = heap_first(&t->bans)) != NULL && e->until_ns <= now_ns; n++)
        ban_table_end(t, e);
    return n;
}

static uint32_t *ban_table_chain(const struct ban_table *t, const struct client_name *name)
{
    return &t->chains[name->hash & t->chain_mask];
}

struct ban_table_entry *ban_table_find(const struct ban_table *t, const struct client_name *name)
{
    struct ban_table_entry *e;

    for (uint32_t place = *ban_table_chain(t, name); place; place = e->chain) {
        e = ban_table_at(t, place);
        if (memcmp(&e->name, name, sizeof(*name)) == 0)
            return e;
    }
    return NULL;
}

static void ban_table_unchain(struct ban_table *t, const struct ban_table_entry *e)
{
    uint32_t *at = ban_table_chain(t, &e->name);

    while (ban_table_at(t, *at) != e)
        at = &ban_table_at(t, *at)->chain;
    *at = e->chain;
}

static unsigned ban_table_sum(const struct ban_table_entry *e)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < BAN_TABLE_PARTS; i++)
        sum += e->counts[i];
    return sum;
}

static int64_t ban_table_part(const struct ban_table *t, int64_t now_ns)
{
    return now_ns / (t->conf.ban.window_ns / BAN_TABLE_PARTS);
}

/* An unused entry, or the least recent offender's; NULL: all entries are bans. */
static struct ban_table_entry *ban_table_take(struct ban_table *t, int64_t now_ns)
{
    struct ban_table_entry *e;

    if (t->n < t->conf.max_clients)
        return ban_table_at(t, ++t->n);
    e = ban_table_least_recent(t);
    if (!e)
        return NULL;
    t->forgot_offender =
        ban_table_sum(e) > 0 && ban_table_part(t, now_ns) - e->part < BAN_TABLE_PARTS;
    list_remove(&e->link);
    ban_table_unchain(t, e);
    return e;
}

struct ban_table_entry *ban_table_get(struct ban_table *t, const struct client_name *name,
                                      int64_t now_ns)
{
    struct ban_table_entry *e = ban_table_find(t, name);

    if (e) {
        list_remove(&e->link);
        return e;
    }
    e = ban_table_take(t, now_ns);
    if (!e)
        return NULL;
    *e = (struct ban_table_entry){.name = *name, .chain = *ban_table_chain(t, name)};
    list_init(&e->link);
    *ban_table_chain(t, name) = (uint32_t)(e - t->entries) + 1;
    return e;
}

bool ban_table_is_full(const struct ban_table *t)
{
    return t->bans.n >= t->max_bans;
}

void ban_table_evict(struct ban_table *t, int64_t now_ns)
{
    struct ban_table_entry *first = heap_first(&t->bans);

    t->forgot_ban = first->until_ns > now_ns;
    ban_table_end(t, first);
}

void ban_table_begin(struct ban_table *t, struct ban_table_entry *e, int64_t since_ns,
                     int64_t until_ns)
{
    e->since_ns = since_ns;
    e->until_ns = until_ns;
    e->refused = 0;
    heap_add(&t->bans, e);
    ban_table_tell(t);
}

/* Count one offence; returns their number within the window. */
static unsigned ban_table_count(const struct ban_table *t, struct ban_table_entry *e,
                                int64_t now_ns)
{
    int64_t part = ban_table_part(t, now_ns), gone = part - e->part;

    for (int64_t i = 1; i <= gone && i <= BAN_TABLE_PARTS; i++)
        e->counts[(e->part + i) % BAN_TABLE_PARTS] = 0;
    if (gone > 0)
        e->part = part;
    e->counts[e->part % BAN_TABLE_PARTS]++;
    return ban_table_sum(e);
}

struct ban ban_table_ban(const struct ban_table *t, const struct ban_table_entry *e)
{
    return (struct ban){.block = client_name_block(&e->name, &t->conf.name),
                        .zone = e->name.zone,
                        .offence = e->offence,
                        .since_ns = e->since_ns,
                        .until_ns = e->until_ns,
                        .refused = e->refused,
                        .is_dry = e->is_dry};
}

/* ---- for all ---- */

bool ban_table_has_bans(const struct ban_table *t)
{
    return atomic_load_explicit(&t->n_bans, memory_order_relaxed) > 0; /* see note: bans */
}

bool ban_table_refuses(struct ban_table *t, const struct address *a, int64_t now_ns)
{
    struct client_name name;
    struct ban_table_entry *e;

    if (!client_name_of(&name, a, &t->conf.name, &t->key))
        return false;
    lock_take(&t->lock);
    ban_table_expire(t, now_ns, ENDED_AT_ONCE);
    e = ban_table_find(t, &name);
    if (e && e->until_ns > now_ns)
        e->refused++;
    else
        e = NULL;
    lock_release(&t->lock);
    return e != NULL;
}

/* Count ${offence} of ${name}, which is not banned. */
static void ban_table_judge(struct ban_table *t, const struct client_name *name,
                            enum ban_offence offence, int64_t now_ns, struct ban_judgement *out)
{
    struct ban_table_entry *e = ban_table_get(t, name, now_ns);

    if (!e)
        return;
    out->is_counted = true;
    e->offence = (uint8_t)offence;
    out->is_banned = ban_table_count(t, e, now_ns) >= t->conf.ban.offences;
    if (out->is_banned) {
        if (ban_table_is_full(t))
            ban_table_evict(t, now_ns);
        e->is_dry = t->conf.ban.is_dry;
        ban_table_begin(t, e, now_ns, now_ns + t->conf.ban.ban_ns);
        out->ban = ban_table_ban(t, e);
    } else {
        list_append(&t->offenders, &e->link);
    }
}

void ban_table_offend(struct ban_table *t, const struct address *a, enum ban_offence offence,
                      int64_t now_ns, struct ban_judgement *out)
{
    struct client_name name;
    struct ban_table_entry *e;

    *out = (struct ban_judgement){.is_banned = false};
    if (!client_name_of(&name, a, &t->conf.name, &t->key))
        return;
    lock_take(&t->lock);
    t->forgot_offender = t->forgot_ban = false;
    ban_table_expire(t, now_ns, ENDED_AT_ONCE);
    e = ban_table_find(t, &name);
    if (e && e->until_ns > 0 && e->until_ns <= now_ns)
        ban_table_end(t, e);
    if (!e || e->until_ns == 0)
        ban_table_judge(t, &name, offence, now_ns, out);
    out->forgot_offender = t->forgot_offender;
    out->forgot_ban = t->forgot_ban;
    lock_release(&t->lock);
}

bool ban_table_fits(const struct ban_table *t, const struct ban_table_conf *conf)
{
    return t->conf.max_clients == conf->max_clients &&
           t->conf.name.prefix_v4 == conf->name.prefix_v4 &&
           t->conf.name.prefix_v6 == conf->name.prefix_v6;
}

/* Forget all offences, and end the bans of the dry run if ${dry_run_ends}; return their number. */
static unsigned ban_table_forget(struct ban_table *t, bool dry_run_ends)
{
    unsigned ended = 0;

    for (uint32_t place = 1; place <= t->n; place++) {
        struct ban_table_entry *e = ban_table_at(t, place);

        if (dry_run_ends && e->until_ns > 0 && e->is_dry) {
            ban_table_end(t, e);
            ended++;
        }
        e->part = 0;
        memset(e->counts, 0, sizeof(e->counts));
    }
    return ended;
}

/* With another window the counts are of other times, and those of a dry run harm nobody. */
unsigned ban_table_set(struct ban_table *t, const struct ban_conf *ban)
{
    bool dry_run_ends;
    unsigned ended = 0;

    lock_take(&t->lock);
    dry_run_ends = t->conf.ban.is_dry && !ban->is_dry;
    if (dry_run_ends || ban->window_ns != t->conf.ban.window_ns)
        ended = ban_table_forget(t, dry_run_ends);
    t->conf.ban = *ban;
    lock_release(&t->lock);
    return ended;
}

int ban_table_create(struct ban_table **out, const struct ban_table_conf *conf)
{
    struct ban_table *t = calloc(1, sizeof(*t));
    uint32_t n_chains = 1;
    int rc = 0;

    if (!t)
        return -ENOMEM;
    while (n_chains < conf->max_clients)
        n_chains *= 2;
    ref_init(&t->references);
    t->conf = *conf;
    t->max_bans = conf->max_clients - conf->max_clients / BAN_TABLE_PARTS;
    t->chain_mask = n_chains - 1;
    lock_init(&t->lock);
    list_init(&t->offenders);
    t->bans = (struct heap){.items = calloc(t->max_bans, sizeof(void *)),
                            .before = ban_table_ends_before,
                            .moved = ban_table_moved};
    t->entries = calloc(conf->max_clients, sizeof(*t->entries));
    t->chains = calloc(n_chains, sizeof(*t->chains));
    if (!t->entries || !t->chains || !t->bans.items)
        rc = -ENOMEM;
    else if (getrandom(&t->key, sizeof(t->key), 0) < 0)
        rc = -errno;
    if (rc < 0) {
        ban_table_release(t);
        return rc;
    }
    *out = t;
    return 0;
}

struct ban_table *ban_table_hold(struct ban_table *t)
{
    if (t)
        ref_hold(&t->references);
    return t;
}

void ban_table_release(struct ban_table *t)
{
    if (!t || !ref_release(&t->references))
        return;
    free(t->bans.items);
    free(t->chains);
    free(t->entries);
    lock_close(&t->lock);
    free(t);
}
