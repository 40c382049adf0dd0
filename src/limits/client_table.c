/* Entries are numbered from 1; 0 means no entry. */
#include "limits/client_table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/ref.h"
#include "base/hash.h"
#include "engine/lock.h"
#include "net/address.h"

struct client {
    struct client_name name;
    struct token_bucket bucket;
    uint32_t open;
    uint32_t chain;
    uint32_t newer, older; /* neighbours in the LRU list of clients without connections */
};

struct client_table {
    struct ref references;
    struct client_table_conf conf; /* immutable but for `each`, which the lock guards */
    struct hash_key key;
    struct lock lock;       /* guards the members below; see note: one lock */
    struct client *clients; /* entry i is clients[i - 1] */
    uint32_t n;             /* entries in use */
    uint32_t *chains;
    uint32_t chain_mask;
    uint32_t newest, oldest;
    bool forgot; /* the last eviction was too early */
};

static struct client *client_table_at(const struct client_table *t, uint32_t place)
{
    return &t->clients[place - 1];
}

static uint32_t client_table_place(const struct client_table *t, const struct client *c)
{
    return (uint32_t)(c - t->clients) + 1;
}

/* Remove ${c} from the LRU list. */
static void client_table_keep(struct client_table *t, struct client *c)
{
    if (c->newer)
        client_table_at(t, c->newer)->older = c->older;
    else
        t->newest = c->older;
    if (c->older)
        client_table_at(t, c->older)->newer = c->newer;
    else
        t->oldest = c->newer;
    c->newer = c->older = 0;
}

static void client_table_lru_add(struct client_table *t, struct client *c)
{
    uint32_t place = client_table_place(t, c);

    c->newer = 0;
    c->older = t->newest;
    if (t->newest)
        client_table_at(t, t->newest)->newer = place;
    else
        t->oldest = place;
    t->newest = place;
}

static uint32_t *client_table_chain(const struct client_table *t, const struct client_name *who)
{
    return &t->chains[who->hash & t->chain_mask];
}

static void client_table_unchain(struct client_table *t, const struct client *c)
{
    uint32_t *at = client_table_chain(t, &c->name);

    while (client_table_at(t, *at) != c)
        at = &client_table_at(t, *at)->chain;
    *at = c->chain;
}

/* Return an unused entry, or evict the least recently used; NULL: all clients have connections. */
static struct client *client_table_evict(struct client_table *t, int64_t now_ns)
{
    const struct token_bucket_conf *rate = &t->conf.each.rate;
    struct client *c;

    if (t->n < t->conf.max_clients)
        return client_table_at(t, ++t->n);
    if (!t->oldest)
        return NULL;
    c = client_table_at(t, t->oldest);
    t->forgot = token_bucket_wait_ns(&c->bucket, rate, rate->burst, now_ns) > 0;
    client_table_keep(t, c);
    client_table_unchain(t, c);
    return c;
}

/* Find or add ${who} and take it off the LRU list; NULL: all clients have connections. */
static struct client *client_table_get(struct client_table *t, const struct client_name *who,
                                       int64_t now_ns)
{
    uint32_t *head = client_table_chain(t, who);
    struct client *c;

    for (uint32_t place = *head; place; place = c->chain) {
        c = client_table_at(t, place);
        if (memcmp(&c->name, who, sizeof(*who)) != 0)
            continue;
        if (c->open == 0)
            client_table_keep(t, c);
        return c;
    }
    c = client_table_evict(t, now_ns);
    if (!c)
        return NULL;
    *c = (struct client){.name = *who, .chain = *head};
    *head = client_table_place(t, c);
    return c;
}

static enum client_table_answer client_table_ask(const struct quota_conf *each, struct client *c,
                                                 int64_t now_ns)
{
    if (each->max_connections > 0 && c->open >= each->max_connections)
        return CLIENT_TABLE_TOO_MANY;
    if (!token_bucket_take(&c->bucket, &each->rate, 1, now_ns))
        return CLIENT_TABLE_TOO_FAST;
    return CLIENT_TABLE_IN;
}

enum client_table_answer client_table_enter(struct client_table *t, const struct address *a,
                                            int64_t now_ns, struct client **out, bool *forgot)
{
    enum client_table_answer answer = CLIENT_TABLE_IN;
    struct client_name who;
    struct client *c;

    *out = NULL;
    *forgot = false;
    if (!client_name_of(&who, a, &t->conf.name, &t->key))
        return CLIENT_TABLE_IN;
    lock_take(&t->lock);
    t->forgot = false;
    c = client_table_get(t, &who, now_ns);
    if (c) {
        answer = client_table_ask(&t->conf.each, c, now_ns);
        if (answer == CLIENT_TABLE_IN)
            c->open++;
        if (c->open == 0)
            client_table_lru_add(t, c);
    }
    *forgot = t->forgot;
    lock_release(&t->lock);
    *out = answer == CLIENT_TABLE_IN ? c : NULL;
    return answer;
}

struct client *client_table_count(struct client_table *t, const struct address *a, int64_t now_ns)
{
    struct client_name who;
    struct client *c;

    if (!client_name_of(&who, a, &t->conf.name, &t->key))
        return NULL;
    lock_take(&t->lock);
    c = client_table_get(t, &who, now_ns);
    if (c)
        c->open++;
    lock_release(&t->lock);
    return c;
}

bool client_table_fits(const struct client_table *t, const struct client_table_conf *conf)
{
    return t->conf.max_clients == conf->max_clients &&
           t->conf.name.prefix_v4 == conf->name.prefix_v4 &&
           t->conf.name.prefix_v6 == conf->name.prefix_v6;
}

static bool client_table_same_rate(const struct token_bucket_conf *a,
                                   const struct token_bucket_conf *b)
{
    return a->tokens == b->tokens && a->period_ns == b->period_ns && a->burst == b->burst;
}

/* Holds the lock for some milliseconds with a million clients and another rate. */
void client_table_set(struct client_table *t, const struct quota_conf *each, int64_t now_ns)
{
    const struct token_bucket_conf *rate = &t->conf.each.rate;

    lock_take(&t->lock);
    if (!client_table_same_rate(rate, &each->rate))
        for (uint32_t place = 1; place <= t->n; place++)
            token_bucket_convert(&client_table_at(t, place)->bucket, rate, &each->rate, now_ns);
    t->conf.each = *each;
    lock_release(&t->lock);
}

void client_table_leave(struct client_table *t, struct client *c)
{
    if (!c)
        return;
    lock_take(&t->lock);
    MUST(c->open > 0);
    if (--c->open == 0)
        client_table_lru_add(t, c);
    lock_release(&t->lock);
}

unsigned client_table_clients(struct client_table *t)
{
    unsigned n;

    lock_take(&t->lock);
    n = t->n;
    lock_release(&t->lock);
    return n;
}

int client_table_create(struct client_table **out, const struct client_table_conf *conf)
{
    struct client_table *t = calloc(1, sizeof(*t));
    uint32_t n_chains = 1;
    int rc = 0;

    if (!t)
        return -ENOMEM;
    while (n_chains < conf->max_clients)
        n_chains *= 2;
    ref_init(&t->references);
    t->conf = *conf;
    t->chain_mask = n_chains - 1;
    lock_init(&t->lock);
    t->clients = calloc(conf->max_clients, sizeof(*t->clients));
    t->chains = calloc(n_chains, sizeof(*t->chains));
    if (!t->clients || !t->chains)
        rc = -ENOMEM;
    else if (getrandom(&t->key, sizeof(t->key), 0) < 0)
        rc = -errno;
    if (rc < 0) {
        client_table_release(t);
        return rc;
    }
    *out = t;
    return 0;
}

struct client_table *client_table_hold(struct client_table *t)
{
    if (t)
        ref_hold(&t->references);
    return t;
}

void client_table_release(struct client_table *t)
{
    if (!t || !ref_release(&t->references))
        return;
    free(t->chains);
    free(t->clients);
    lock_close(&t->lock);
    free(t);
}
