/* What handles many bans, some at a time, so that an accept never waits long for the lock. */
#include "limits/ban_table_internal.h"

/* Under one hold of the lock: entries looked at, and bans copied. */
#define ENTRIES_AT_ONCE 1024
#define BANS_AT_ONCE    128

/* ---- adding ---- */

/* Is ${ban} of a client that ${t} would name the same? */
static bool ban_table_knows(const struct ban_table *t, const struct ban *ban)
{
    struct client_name name;
    struct cidr block;

    client_name_of_block(&name, &ban->block, ban->zone, &t->key);
    block = client_name_block(&name, &t->conf.name);
    return block.len == ban->block.len && block.bits == ban->block.bits;
}

static int64_t ban_table_first_ends_ns(const struct ban_table *t)
{
    return ((const struct ban_table_entry *)heap_first(&t->bans))->until_ns;
}

/* Does the ban of ${e} make ${ban} needless? A real one does not end with the dry run. */
static bool ban_table_outlasts(const struct ban_table_entry *e, const struct ban *ban,
                               int64_t now_ns)
{
    if (e->until_ns <= now_ns)
        return false;
    return e->is_dry == ban->is_dry ? e->until_ns > ban->until_ns : ban->is_dry;
}

/* Add ${ban}, which is in force. */
static void ban_table_add_one(struct ban_table *t, const struct ban *ban, int64_t now_ns,
                              struct ban_losses *lost)
{
    struct client_name name;
    struct ban_table_entry *e;

    client_name_of_block(&name, &ban->block, ban->zone, &t->key);
    e = ban_table_find(t, &name);
    if (e && ban_table_outlasts(e, ban, now_ns))
        return;
    if (e && e->until_ns > 0)
        ban_table_end(t, e);
    t->forgot_ban = false;
    if (ban_table_is_full(t) && ban_table_first_ends_ns(t) < ban->until_ns)
        ban_table_evict(t, now_ns);
    e = ban_table_is_full(t) ? NULL : ban_table_get(t, &name, now_ns);
    lost->full += !e || t->forgot_ban;
    if (!e)
        return;
    e->offence = (uint8_t)ban->offence;
    e->is_dry = ban->is_dry;
    ban_table_begin(t, e, ban->since_ns, ban->until_ns);
    e->refused = ban->refused;
}

void ban_table_add(struct ban_table *t, const struct ban *list, unsigned n, int64_t now_ns,
                   struct ban_losses *lost)
{
    lock_take(&t->lock);
    for (unsigned i = 0; i < n; i++) {
        bool has_ended = list[i].until_ns <= now_ns, knows = ban_table_knows(t, &list[i]);
        bool is_wanted = !list[i].is_dry || t->conf.ban.is_dry;

        lost->ended += has_ended;
        lost->prefix += !has_ended && !knows;
        lost->dry += !has_ended && knows && !is_wanted;
        if (!has_ended && knows && is_wanted)
            ban_table_add_one(t, &list[i], now_ns, lost);
    }
    lock_release(&t->lock);
}

/* ---- visiting ---- */

struct ban_batch {
    uint32_t at; /* entries that were looked at */
    unsigned n;
    struct ban list[BANS_AT_ONCE];
};

/* Copy the bans of the next entries; false: there are no more. */
static bool ban_table_next(struct ban_table *t, struct ban_batch *b, int64_t now_ns)
{
    bool more;

    lock_take(&t->lock);
    more = b->at < t->n && t->bans.n > 0;
    b->n = 0;
    for (unsigned i = 0; i < ENTRIES_AT_ONCE && b->n < BANS_AT_ONCE && b->at < t->n; i++) {
        const struct ban_table_entry *e = ban_table_at(t, ++b->at);

        if (e->until_ns > now_ns)
            b->list[b->n++] = ban_table_ban(t, e);
    }
    lock_release(&t->lock);
    return more;
}

void ban_table_each(struct ban_table *t, int64_t now_ns,
                    void (*visit)(void *cookie, const struct ban *ban), void *cookie)
{
    struct ban_batch batch = {.at = 0};

    while (ban_table_next(t, &batch, now_ns))
        for (unsigned i = 0; i < batch.n; i++)
            visit(cookie, &batch.list[i]);
}

void ban_table_copy(struct ban_table *t, struct ban_table *from, int64_t now_ns,
                    struct ban_losses *lost)
{
    struct ban_batch batch = {.at = 0};

    while (ban_table_next(from, &batch, now_ns))
        ban_table_add(t, batch.list, batch.n, now_ns, lost);
}

/* Lift bans behind entry ${at}, and move ${at}; returns their number. */
static unsigned ban_table_lift_some(struct ban_table *t, uint32_t *at, const struct cidr *block,
                                    int64_t now_ns)
{
    unsigned n = 0;

    for (unsigned i = 0; i < ENTRIES_AT_ONCE && *at < t->n; i++) {
        struct ban_table_entry *e = ban_table_at(t, ++*at);
        const struct ban ban = ban_table_ban(t, e);

        if (e->until_ns == 0 || !ban_is_of(&ban, block))
            continue;
        n += e->until_ns > now_ns;
        ban_table_end(t, e);
    }
    return n;
}

unsigned ban_table_lift(struct ban_table *t, const struct cidr *block, int64_t now_ns)
{
    unsigned n = 0;
    uint32_t at = 0;
    bool more;

    do {
        lock_take(&t->lock);
        n += ban_table_lift_some(t, &at, block, now_ns);
        more = at < t->n && t->bans.n > 0;
        lock_release(&t->lock);
    } while (more);
    return n;
}

unsigned ban_table_bans(struct ban_table *t, int64_t now_ns)
{
    unsigned n;
    bool more;

    do {
        lock_take(&t->lock);
        more = ban_table_expire(t, now_ns, BANS_AT_ONCE) == BANS_AT_ONCE;
        n = (unsigned)t->bans.n;
        lock_release(&t->lock);
    } while (more);
    return n;
}
