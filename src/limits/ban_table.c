/* Entries are numbered from 1; 0 means no entry. */
#include "limits/ban_table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/ref.h"
#include "engine/lock.h"
#include "net/address.h"

#define PARTS 8 /* of the window */

struct offender {
    struct client_name name;
    int64_t part;     /* number of the newest part of the window */
    int64_t since_ns; /* of the ban */
    int64_t until_ns; /* 0: not banned */
    uint64_t refused;
    uint32_t chain;
    struct list link;
    uint16_t counts[PARTS];
    uint8_t offence; /* enum ban_offence, the last one */
};

_Static_assert(BAN_OFFENCES_MAX < UINT16_MAX, "counts[]");

struct ban_table {
    struct ref references;
    struct ban_table_conf conf; /* immutable but for `ban`, which the lock guards */
    struct hash_key key;
    uint32_t max_bans;
    atomic_uint n_bans;       /* changed under the lock; see note: bans */
    struct lock lock;         /* guards the members below, and all entries */
    struct offender *entries; /* entry i is entries[i - 1] */
    uint32_t n;               /* entries in use, or used before */
    uint32_t *chains;
    uint32_t chain_mask;
    struct list offenders;            /* the least recent offence first */
    struct list bans;                 /* as they began */
    bool forgot_offender, forgot_ban; /* since the last judgement */
};

/* ---- entries, under the lock ---- */

static struct offender *ban_table_at(const struct ban_table *t, uint32_t place)
{
    return &t->entries[place - 1];
}

static struct offender *ban_table_oldest(const struct list *list)
{
    return list_empty(list) ? NULL : LIST_ENTRY(list->next, struct offender, link);
}

static void ban_table_count_bans(struct ban_table *t, int by)
{
    unsigned n = atomic_load_explicit(&t->n_bans, memory_order_relaxed);

    atomic_store_explicit(&t->n_bans, n + (unsigned)by, memory_order_relaxed); /* see note: bans */
}

static void ban_table_end(struct ban_table *t, struct offender *e)
{
    list_remove(&e->link);
    ban_table_count_bans(t, -1);
    e->until_ns = 0;
    memset(e->counts, 0, sizeof(e->counts));
    list_append(t->offenders.next, &e->link); /* the next to be evicted */
}

/* End the bans whose time has come; they begin in the order in which they end, but for reloads. */
static void ban_table_expire(struct ban_table *t, int64_t now_ns)
{
    struct offender *e;

    while ((e = ban_table_oldest(&t->bans)) != NULL && e->until_ns <= now_ns)
        ban_table_end(t, e);
}

static uint32_t *ban_table_chain(const struct ban_table *t, const struct client_name *name)
{
    return &t->chains[name->hash & t->chain_mask];
}

static struct offender *ban_table_find(const struct ban_table *t, const struct client_name *name)
{
    struct offender *e;

    for (uint32_t place = *ban_table_chain(t, name); place; place = e->chain) {
        e = ban_table_at(t, place);
        if (memcmp(&e->name, name, sizeof(*name)) == 0)
            return e;
    }
    return NULL;
}

static void ban_table_unchain(struct ban_table *t, const struct offender *e)
{
    uint32_t *at = ban_table_chain(t, &e->name);

    while (ban_table_at(t, *at) != e)
        at = &ban_table_at(t, *at)->chain;
    *at = e->chain;
}

static unsigned ban_table_sum(const struct offender *e)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < PARTS; i++)
        sum += e->counts[i];
    return sum;
}

static int64_t ban_table_part(const struct ban_table *t, int64_t now_ns)
{
    return now_ns / (t->conf.ban.window_ns / PARTS);
}

/* An unused entry, or the least recent offender's; NULL: all entries are bans. */
static struct offender *ban_table_take(struct ban_table *t, int64_t now_ns)
{
    struct offender *e;

    if (t->n < t->conf.max_clients)
        return ban_table_at(t, ++t->n);
    e = ban_table_oldest(&t->offenders);
    if (!e)
        return NULL;
    t->forgot_offender = ban_table_sum(e) > 0 && ban_table_part(t, now_ns) - e->part < PARTS;
    list_remove(&e->link);
    ban_table_unchain(t, e);
    return e;
}

/* Find or add ${name}, and take it from its list; NULL: all entries are bans. */
static struct offender *ban_table_get(struct ban_table *t, const struct client_name *name,
                                      int64_t now_ns)
{
    struct offender *e = ban_table_find(t, name);

    if (e) {
        list_remove(&e->link);
        return e;
    }
    e = ban_table_take(t, now_ns);
    if (!e)
        return NULL;
    *e = (struct offender){.name = *name, .chain = *ban_table_chain(t, name)};
    list_init(&e->link);
    *ban_table_chain(t, name) = (uint32_t)(e - t->entries) + 1;
    return e;
}

/* Begin the ban of ${e}, which is in no list. */
static void ban_table_begin(struct ban_table *t, struct offender *e, int64_t since_ns,
                            int64_t until_ns)
{
    if (atomic_load_explicit(&t->n_bans, memory_order_relaxed) >= t->max_bans) {
        t->forgot_ban = true;
        ban_table_end(t, ban_table_oldest(&t->bans));
    }
    e->since_ns = since_ns;
    e->until_ns = until_ns;
    e->refused = 0;
    ban_table_count_bans(t, 1);
    list_append(&t->bans, &e->link);
}

/* Count one offence; returns their number within the window. */
static unsigned ban_table_count(const struct ban_table *t, struct offender *e, int64_t now_ns)
{
    int64_t part = ban_table_part(t, now_ns), gone = part - e->part;

    for (int64_t i = 1; i <= gone && i <= PARTS; i++)
        e->counts[(e->part + i) % PARTS] = 0;
    if (gone > 0)
        e->part = part;
    e->counts[e->part % PARTS]++;
    return ban_table_sum(e);
}

static struct ban ban_table_ban(const struct ban_table *t, const struct offender *e)
{
    return (struct ban){.block = client_name_block(&e->name, &t->conf.name),
                        .zone = e->name.zone,
                        .offence = e->offence,
                        .since_ns = e->since_ns,
                        .until_ns = e->until_ns,
                        .refused = e->refused};
}

/* ---- for all ---- */

bool ban_table_has_bans(const struct ban_table *t)
{
    return atomic_load_explicit(&t->n_bans, memory_order_relaxed) > 0; /* see note: bans */
}

bool ban_table_refuses(struct ban_table *t, const struct address *a, int64_t now_ns)
{
    struct client_name name;
    struct offender *e;

    if (!client_name_of(&name, a, &t->conf.name, &t->key))
        return false;
    lock_take(&t->lock);
    ban_table_expire(t, now_ns);
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
    struct offender *e = ban_table_get(t, name, now_ns);

    if (!e)
        return;
    out->is_counted = true;
    e->offence = (uint8_t)offence;
    out->is_banned = ban_table_count(t, e, now_ns) >= t->conf.ban.offences;
    if (out->is_banned) {
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
    struct offender *e;

    *out = (struct ban_judgement){.is_banned = false};
    if (!client_name_of(&name, a, &t->conf.name, &t->key))
        return;
    lock_take(&t->lock);
    t->forgot_offender = t->forgot_ban = false;
    ban_table_expire(t, now_ns);
    e = ban_table_find(t, &name);
    if (e && e->until_ns > 0 && e->until_ns <= now_ns)
        ban_table_end(t, e);
    if (!e || e->until_ns == 0)
        ban_table_judge(t, &name, offence, now_ns, out);
    out->forgot_offender = t->forgot_offender;
    out->forgot_ban = t->forgot_ban;
    lock_release(&t->lock);
}

/* Is ${ban} of a client that ${t} would name the same? */
static bool ban_table_knows(const struct ban_table *t, const struct ban *ban)
{
    struct client_name name;
    struct cidr block;

    client_name_of_block(&name, &ban->block, ban->zone, &t->key);
    block = client_name_block(&name, &t->conf.name);
    return block.len == ban->block.len && block.bits == ban->block.bits;
}

bool ban_table_add(struct ban_table *t, const struct ban *ban, int64_t now_ns)
{
    struct client_name name;
    struct offender *e;

    if (ban->until_ns <= now_ns || !ban_table_knows(t, ban))
        return false;
    client_name_of_block(&name, &ban->block, ban->zone, &t->key);
    lock_take(&t->lock);
    e = ban_table_find(t, &name);
    if (e && e->until_ns > 0)
        ban_table_end(t, e);
    e = ban_table_get(t, &name, now_ns);
    if (e) {
        e->offence = (uint8_t)ban->offence;
        ban_table_begin(t, e, ban->since_ns, ban->until_ns);
        e->refused = ban->refused;
    }
    lock_release(&t->lock);
    return e != NULL;
}

struct ban_table_copying {
    struct ban_table *to;
    int64_t now_ns;
    unsigned left_out;
};

static void ban_table_copy_one(void *cookie, const struct ban *ban)
{
    struct ban_table_copying *c = cookie;

    c->left_out += !ban_table_add(c->to, ban, c->now_ns);
}

unsigned ban_table_copy(struct ban_table *t, struct ban_table *from, int64_t now_ns)
{
    struct ban_table_copying copying = {.to = t, .now_ns = now_ns};

    ban_table_each(from, now_ns, ban_table_copy_one, &copying);
    return copying.left_out;
}

unsigned ban_table_lift(struct ban_table *t, const struct cidr *block, int64_t now_ns)
{
    unsigned n = 0;

    lock_take(&t->lock);
    ban_table_expire(t, now_ns);
    for (struct list *node = t->bans.next, *next; node != &t->bans; node = next) {
        struct offender *e = LIST_ENTRY(node, struct offender, link);
        const struct ban ban = ban_table_ban(t, e);

        next = node->next;
        if (!ban_is_of(&ban, block))
            continue;
        n += e->until_ns > now_ns;
        ban_table_end(t, e);
    }
    lock_release(&t->lock);
    return n;
}

void ban_table_each(struct ban_table *t, int64_t now_ns,
                    void (*visit)(void *cookie, const struct ban *ban), void *cookie)
{
    lock_take(&t->lock);
    ban_table_expire(t, now_ns);
    list_for_each (node, &t->bans) {
        const struct ban ban = ban_table_ban(t, LIST_ENTRY(node, struct offender, link));

        if (ban.until_ns > now_ns)
            visit(cookie, &ban);
    }
    lock_release(&t->lock);
}

unsigned ban_table_bans(struct ban_table *t, int64_t now_ns)
{
    unsigned n;

    lock_take(&t->lock);
    ban_table_expire(t, now_ns);
    n = atomic_load_explicit(&t->n_bans, memory_order_relaxed);
    lock_release(&t->lock);
    return n;
}

bool ban_table_fits(const struct ban_table *t, const struct ban_table_conf *conf)
{
    return t->conf.max_clients == conf->max_clients &&
           t->conf.name.prefix_v4 == conf->name.prefix_v4 &&
           t->conf.name.prefix_v6 == conf->name.prefix_v6;
}

/* With another window the counts are of other times: forget them. */
void ban_table_set(struct ban_table *t, const struct ban_conf *ban)
{
    lock_take(&t->lock);
    if (ban->window_ns != t->conf.ban.window_ns)
        for (uint32_t place = 1; place <= t->n; place++) {
            ban_table_at(t, place)->part = 0;
            memset(ban_table_at(t, place)->counts, 0, sizeof(ban_table_at(t, place)->counts));
        }
    t->conf.ban = *ban;
    lock_release(&t->lock);
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
    t->max_bans = conf->max_clients - conf->max_clients / PARTS;
    t->chain_mask = n_chains - 1;
    lock_init(&t->lock);
    list_init(&t->offenders);
    list_init(&t->bans);
    t->entries = calloc(conf->max_clients, sizeof(*t->entries));
    t->chains = calloc(n_chains, sizeof(*t->chains));
    if (!t->entries || !t->chains)
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
    free(t->chains);
    free(t->entries);
    lock_close(&t->lock);
    free(t);
}
