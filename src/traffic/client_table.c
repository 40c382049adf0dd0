/* traffic/client_table: see client_table.h. Places are numbered from 1 in each part; 0 is none. */
#include "traffic/client_table.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cache_line.h"
#include "base/hash.h"
#include "engine/lock.h"
#include "net/address.h"

/* More threads than boss threads there usually are; a part is worth its overhead only with some clients. */
#define CLIENT_TABLE_PARTS      16
#define CLIENT_TABLE_PART_LEAST 64

struct client {
    uint64_t net; /* the address, or the first half of it */
    struct token_bucket bucket;
    uint32_t open;
    uint32_t chain;        /* the next with the same bucket of the hash table */
    uint32_t newer, older; /* without a connection: neighbours in the order of last use */
    bool is_ipv6;
};

/* See note: shards. */
struct client_table_part {
    alignas(CACHE_LINE_BYTES) struct lock lock;
    struct client *clients; /* place i is clients[i - 1] */
    uint32_t n, max;        /* places that were ever used, and that there are */
    uint32_t *chains;
    uint32_t chain_mask;
    uint32_t newest, oldest; /* of those without a connection */
    uint64_t refused[CLIENT_TABLE_ANSWERS];
    uint64_t uncounted;
};

struct client_table {
    struct client_table_conf conf;
    struct hash_key key;
    unsigned n_parts;
    struct client_table_part parts[];
};

/* ---- one part, whose lock is held ---- */

static struct client *client_table_at(const struct client_table_part *part, uint32_t place)
{
    return &part->clients[place - 1];
}

static uint32_t client_table_place(const struct client_table_part *part, const struct client *c)
{
    return (uint32_t)(c - part->clients) + 1;
}

/* The client is in use: it cannot be forgotten. */
static void client_table_keep(struct client_table_part *part, struct client *c)
{
    if (c->newer)
        client_table_at(part, c->newer)->older = c->older;
    else
        part->newest = c->older;
    if (c->older)
        client_table_at(part, c->older)->newer = c->newer;
    else
        part->oldest = c->newer;
    c->newer = c->older = 0;
}

/* It is not any more: the last one to be forgotten. */
static void client_table_let_go(struct client_table_part *part, struct client *c)
{
    uint32_t place = client_table_place(part, c);

    c->newer = 0;
    c->older = part->newest;
    if (part->newest)
        client_table_at(part, part->newest)->newer = place;
    else
        part->oldest = place;
    part->newest = place;
}

static void client_table_unchain(struct client_table_part *part, const struct client *c,
                                 uint64_t hash)
{
    uint32_t *at = &part->chains[hash & part->chain_mask];

    while (client_table_at(part, *at) != c)
        at = &client_table_at(part, *at)->chain;
    *at = c->chain;
}

static uint64_t client_table_hash(const struct client_table *t, const struct client *c)
{
    struct {
        uint64_t net, is_ipv6;
    } key = {c->net, c->is_ipv6};

    return hash_bytes(&t->key, &key, sizeof(key));
}

/* A place that nobody has, or that of the client that was seen the longest ago; NULL: there is none. */
static struct client *client_table_make_room(const struct client_table *t,
                                             struct client_table_part *part)
{
    struct client *c;

    if (part->n < part->max)
        return client_table_at(part, ++part->n);
    if (!part->oldest)
        return NULL;
    c = client_table_at(part, part->oldest);
    client_table_keep(part, c);
    client_table_unchain(part, c, client_table_hash(t, c));
    return c;
}

/* The client ${who}, known or new, without a place in the order of last use; NULL: there is no room for it. */
static struct client *client_table_get(const struct client_table *t, struct client_table_part *part,
                                       const struct client *who, uint64_t hash)
{
    uint32_t *head = &part->chains[hash & part->chain_mask];
    struct client *c;

    for (uint32_t place = *head; place; place = c->chain) {
        c = client_table_at(part, place);
        if (c->net != who->net || c->is_ipv6 != who->is_ipv6)
            continue;
        if (c->open == 0)
            client_table_keep(part, c);
        return c;
    }
    c = client_table_make_room(t, part);
    if (!c)
        return NULL;
    *c = *who;
    c->chain = *head;
    *head = client_table_place(part, c);
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

/* ---- all parts ---- */

static bool client_table_identify(struct client *who, const struct address *a)
{
    size_t len;
    const void *host = address_host(a, &len);

    *who = (struct client){.is_ipv6 = len > sizeof(who->net)};
    if (!host)
        return false;
    memcpy(&who->net, host, len < sizeof(who->net) ? len : sizeof(who->net));
    return true;
}

/* The upper bits choose the part, the lower ones the chain. */
static struct client_table_part *client_table_part_of(struct client_table *t, uint64_t hash)
{
    return &t->parts[hash_reduce(hash, t->n_parts)];
}

enum client_table_answer client_table_enter(struct client_table *t, const struct address *a,
                                            int64_t now_ns, struct client **out)
{
    enum client_table_answer answer = CLIENT_TABLE_IN;
    struct client_table_part *part;
    struct client who, *c;
    uint64_t hash;

    *out = NULL;
    if (!client_table_identify(&who, a))
        return CLIENT_TABLE_IN;
    hash = client_table_hash(t, &who);
    part = client_table_part_of(t, hash);
    lock_take(&part->lock);
    c = client_table_get(t, part, &who, hash);
    if (c) {
        answer = client_table_ask(&t->conf.each, c, now_ns);
        if (answer == CLIENT_TABLE_IN)
            c->open++;
        else
            part->refused[answer]++;
        if (c->open == 0)
            client_table_let_go(part, c);
    } else {
        part->uncounted++;
    }
    lock_release(&part->lock);
    *out = answer == CLIENT_TABLE_IN ? c : NULL;
    return answer;
}

void client_table_leave(struct client_table *t, struct client *c)
{
    struct client_table_part *part;

    if (!c)
        return;
    part = client_table_part_of(t, client_table_hash(t, c)); /* a client in use keeps its address */
    lock_take(&part->lock);
    MUST(c->open > 0);
    if (--c->open == 0)
        client_table_let_go(part, c);
    lock_release(&part->lock);
}

void client_table_read(struct client_table *t, struct client_table_view *out)
{
    *out = (struct client_table_view){0};
    for (unsigned i = 0; i < t->n_parts; i++) {
        struct client_table_part *part = &t->parts[i];

        lock_take(&part->lock);
        out->clients += part->n;
        out->uncounted += part->uncounted;
        for (unsigned j = 0; j < CLIENT_TABLE_ANSWERS; j++)
            out->refused[j] += part->refused[j];
        lock_release(&part->lock);
    }
}

/* ---- life ---- */

static int client_table_create_part(struct client_table_part *part, uint32_t max)
{
    uint32_t n_chains = 1;

    while (n_chains < max)
        n_chains *= 2;
    part->max = max;
    part->chain_mask = n_chains - 1;
    part->clients = calloc(max, sizeof(*part->clients));
    part->chains = calloc(n_chains, sizeof(*part->chains));
    return part->clients && part->chains ? 0 : -ENOMEM;
}

static unsigned client_table_count_parts(unsigned max_clients)
{
    unsigned n = max_clients / CLIENT_TABLE_PART_LEAST;

    n = n > 0 ? n : 1;
    return n < CLIENT_TABLE_PARTS ? n : CLIENT_TABLE_PARTS;
}

int client_table_create(struct client_table **out, const struct client_table_conf *conf)
{
    unsigned n_parts = client_table_count_parts(conf->max_clients);
    size_t bytes = sizeof(struct client_table) + n_parts * sizeof(struct client_table_part);
    struct client_table *t = aligned_alloc(CACHE_LINE_BYTES, bytes);
    int rc = 0;

    if (!t)
        return -ENOMEM;
    memset(t, 0, bytes);
    t->conf = *conf;
    t->n_parts = n_parts;
    for (unsigned i = 0; i < n_parts; i++)
        lock_init(&t->parts[i].lock);
    if (getrandom(&t->key, sizeof(t->key), 0) < 0)
        rc = -errno;
    for (unsigned i = 0; rc == 0 && i < n_parts; i++) /* those left over one each */
        rc = client_table_create_part(&t->parts[i], conf->max_clients / n_parts +
                                                        (i < conf->max_clients % n_parts));
    if (rc < 0) {
        client_table_destroy(t);
        return rc;
    }
    *out = t;
    return 0;
}

void client_table_destroy(struct client_table *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->n_parts; i++) {
        free(t->parts[i].chains);
        free(t->parts[i].clients);
        lock_close(&t->parts[i].lock);
    }
    free(t);
}
