#include "names/resolver_cache.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/parse.h"
#include "base/text_stream.h"
#include "names/resolver_internal.h"

#define RESOLVER_CACHE_HOST    "host:"
#define RESOLVER_CACHE_SERVICE "service:"

static struct list *resolver_cache_bucket(struct resolver_cache *c, const char *key)
{
    return &c->buckets[hash_stable(key, strlen(key)) % RESOLVER_CACHE_BUCKETS];
}

static struct resolver_cache_entry *resolver_cache_find(struct list *bucket, const char *key)
{
    list_for_each (node, bucket) {
        struct resolver_cache_entry *entry = LIST_ENTRY(node, struct resolver_cache_entry, link);

        if (strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

static struct resolver_cache_entry *resolver_cache_open(struct resolver_cache *c, const char *key)
{
    struct list *bucket = resolver_cache_bucket(c, key);
    struct resolver_cache_entry *entry = resolver_cache_find(bucket, key);

    if (!entry) {
        entry = calloc(1, sizeof(*entry) + strlen(key) + 1);
        if (!entry)
            return NULL;
        memcpy(entry->key, key, strlen(key) + 1);
        lock_take(&c->lock);
        list_append(bucket, &entry->link);
        lock_release(&c->lock);
    }
    entry->users++;
    return entry;
}

/* Host names are not case-sensitive, and have no port in their key. */
static char *resolver_cache_key(enum upstream_names names, const char *word,
                                const struct name_servers *servers)
{
    const char *kind = names == UPSTREAM_SERVICE ? RESOLVER_CACHE_SERVICE : RESOLVER_CACHE_HOST;
    char host[ADDRESS_HOST_BYTES], *key;
    uint16_t port;

    if (names != UPSTREAM_SERVICE && address_split_port(host, sizeof(host), word, &port) == 0)
        word = host;
    if (asprintf(&key, "%s%s%s%s", kind, word, servers ? "@" : "", servers ? servers->name : "") <
        0)
        return NULL;
    for (char *c = key; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return key;
}

struct resolver_cache_entry *resolver_cache_take(struct resolver_cache *c,
                                                 enum upstream_names names, const char *word,
                                                 const struct name_servers *servers)
{
    char *key = resolver_cache_key(names, word, servers);
    struct resolver_cache_entry *entry = key ? resolver_cache_open(c, key) : NULL;

    free(key);
    return entry;
}

void resolver_cache_release(struct resolver_cache *c, struct resolver_cache_entry *entry)
{
    if (!entry || --entry->users > 0)
        return;
    lock_take(&c->lock);
    list_remove(&entry->link);
    lock_release(&c->lock);
    free(entry->answer);
    free(entry);
}

/* ---- an answer as text ---- */

static void resolver_cache_print_address(FILE *f, char mark, const struct address *a)
{
    char text[ADDRESS_TEXT_BYTES];

    if (mark)
        fputc(mark, f);
    fputs(address_format(text, sizeof(text), a), f);
}

static void resolver_cache_print_records(FILE *f, const struct resolver_found_addresses *found)
{
    const struct resolver_service *s = found->service;

    for (unsigned r = 0; r < s->n; r++) {
        fprintf(f, "%s%s;%u;%u", r > 0 ? "," : "", s->records[r].target, s->records[r].priority,
                s->records[r].weight);
        for (unsigned i = 0; i < found->n; i++)
            if (found->record[i] == r)
                resolver_cache_print_address(f, ';', &found->list[i]);
    }
}

static char *resolver_cache_print(const struct resolver_found_addresses *found)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        return NULL;
    if (found->service)
        resolver_cache_print_records(f, found);
    for (unsigned i = 0; i < found->n && !found->service; i++)
        resolver_cache_print_address(f, i > 0 ? ',' : '\0', &found->list[i]);
    return text_stream_close(f, &text) == 0 ? text : NULL;
}

static void resolver_cache_scan_address(struct resolver_found_addresses *found, const char *word,
                                        unsigned record, uint16_t port)
{
    struct address parsed[2]; /* as address_parse() demands */
    unsigned i = found->n;

    if (i == RESOLVER_ADDRESSES || address_parse(parsed, 2, word) != 1)
        return;
    found->list[i] = parsed[0];
    if (port > 0)
        address_set_port(&found->list[i], port);
    found->record[i] = record;
    found->weight[i] = 1;
    found->level[i] = 0;
    found->n++;
}

/* Add the record in ${text}, and its addresses; a malformed one is left out. */
static void resolver_cache_scan_record(struct resolver_found_addresses *found, char *text)
{
    struct resolver_service *s = found->service;
    struct srv_record *record = &s->records[s->n];
    const char *target = strsep(&text, ";"), *priority = text ? strsep(&text, ";") : NULL;
    const char *weight = text ? strsep(&text, ";") : NULL;
    uint64_t number[2];

    if (s->n == RESOLVER_ADDRESSES || !weight || strlen(target) >= sizeof(record->target) ||
        parse_uint(&number[0], priority, UINT16_MAX) < 0 ||
        parse_uint(&number[1], weight, UINT16_MAX) < 0)
        return;
    memcpy(record->target, target, strlen(target) + 1);
    record->priority = (uint16_t)number[0];
    record->weight = (uint16_t)number[1];
    while (text)
        resolver_cache_scan_address(found, strsep(&text, ";"), s->n, 0);
    s->n++;
}

static void resolver_cache_scan(struct resolver_found_addresses *found, char *text, uint16_t port)
{
    while (text) {
        char *word = strsep(&text, ",");

        if (found->service)
            resolver_cache_scan_record(found, word);
        else
            resolver_cache_scan_address(found, word, 0, port);
    }
    if (found->service)
        resolver_service_weigh(found);
}

/* ---- control loop ---- */

static void resolver_cache_set(struct resolver_cache *c, struct resolver_cache_entry *entry,
                               char *answer, int64_t answered_at_ns, int64_t ttl_ns)
{
    char *before = entry->answer;

    lock_take(&c->lock);
    entry->answer = answer;
    entry->answered_at_ns = answered_at_ns;
    entry->ttl_ns = ttl_ns;
    lock_release(&c->lock);
    free(before);
}

void resolver_cache_put(struct resolver_cache *c, struct resolver_cache_entry *entry,
                        const struct resolver_found_addresses *found, int64_t answered_at_ns)
{
    char *answer = resolver_cache_print(found);

    if (answer)
        resolver_cache_set(c, entry, answer, answered_at_ns, found->ttl_ns);
}

void resolver_cache_forget(struct resolver_cache *c, struct resolver_cache_entry *entry)
{
    resolver_cache_set(c, entry, NULL, 0, 0);
}

int resolver_cache_get(const struct resolver_cache_entry *entry, const char *word,
                       struct resolver_found_addresses **out)
{
    bool is_service =
        strncmp(entry->key, RESOLVER_CACHE_SERVICE, strlen(RESOLVER_CACHE_SERVICE)) == 0;
    struct resolver_found_addresses *found;
    char host[ADDRESS_HOST_BYTES], *text;
    uint16_t port = 0;

    if (!entry->answer)
        return -ENODATA;
    text = strdup(entry->answer);
    found = malloc(sizeof(*found));
    if (text && found) {
        found->n = found->failed = found->kept = 0;
        found->ttl_ns = entry->ttl_ns;
        found->service = is_service ? calloc(1, sizeof(*found->service)) : NULL;
    }
    if (!text || !found || (is_service && !found->service)) {
        free(text);
        free(found);
        return -ENOMEM;
    }
    if (!is_service && address_split_port(host, sizeof(host), word, &port) < 0)
        port = 0; /* as in the answer */
    resolver_cache_scan(found, text, port);
    free(text);
    if (found->n > 0) {
        *out = found;
        return 0;
    }
    resolver_free_found(found);
    return -ENODATA;
}

/* ---- other processes ---- */

void resolver_cache_write(struct resolver_cache *c, FILE *f)
{
    lock_take(&c->lock);
    for (unsigned i = 0; i < RESOLVER_CACHE_BUCKETS; i++)
        list_for_each (node, &c->buckets[i]) {
            const struct resolver_cache_entry *entry =
                LIST_ENTRY(node, struct resolver_cache_entry, link);

            if (entry->answer)
                fprintf(f, "name %s %" PRId64 " %" PRId64 " %s\n", entry->key,
                        entry->answered_at_ns, entry->ttl_ns, entry->answer);
        }
    lock_release(&c->lock);
}

static int resolver_cache_read_line(struct resolver_cache *c, char *line)
{
    const char *kind = strsep(&line, " "), *key = line ? strsep(&line, " ") : NULL;
    int64_t answered_at_ns, ttl_ns;
    struct resolver_cache_entry *entry;
    char *answer;
    int at = 0;

    if (!key || !line || strcmp(kind, "name") != 0 ||
        sscanf(line, "%" SCNd64 " %" SCNd64 " %n", &answered_at_ns, &ttl_ns, &at) != 2 || at == 0)
        return 0;
    entry = resolver_cache_open(c, key);
    answer = entry ? strdup(line + at) : NULL;
    if (!answer || entry->is_handed_over) {
        resolver_cache_release(c, entry);
        free(answer);
        return entry ? 0 : -ENOMEM;
    }
    entry->is_handed_over = true;
    resolver_cache_set(c, entry, answer, answered_at_ns, ttl_ns);
    return 0;
}

int resolver_cache_read(struct resolver_cache *c, const char *text)
{
    char *copy = strdup(text), *rest = copy;
    int rc = copy ? 0 : -ENOMEM;

    while (rc == 0 && rest)
        rc = resolver_cache_read_line(c, strsep(&rest, "\n"));
    free(copy);
    return rc;
}

void resolver_cache_drop_unused(struct resolver_cache *c)
{
    for (unsigned i = 0; i < RESOLVER_CACHE_BUCKETS; i++)
        list_for_each_safe (node, &c->buckets[i]) {
            struct resolver_cache_entry *entry =
                LIST_ENTRY(node, struct resolver_cache_entry, link);

            if (!entry->is_handed_over)
                continue;
            entry->is_handed_over = false;
            resolver_cache_release(c, entry);
        }
}

void resolver_cache_init(struct resolver_cache *c)
{
    lock_init(&c->lock);
    for (unsigned i = 0; i < RESOLVER_CACHE_BUCKETS; i++)
        list_init(&c->buckets[i]);
}

void resolver_cache_close(struct resolver_cache *c)
{
    resolver_cache_drop_unused(c);
    lock_close(&c->lock);
}
