#include "net/srv.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/lookup_share.h"

/* Record before its host: priority, weight, port (RFC 2782). */
#define SRV_HEAD_BYTES 6

#define SRV_MAX_RECORDS (NS_MAXMSG / (NS_RRFIXEDSZ + SRV_HEAD_BYTES))

struct srv_list {
    struct srv_record *all;
    size_t n, capacity;
    bool full; /* out of memory */
};

/* May ${host} be used? False for the root ("no service"), "*" and unix paths. */
static bool srv_is_host(const char *host)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t len = strlen(host);

    return len > 0 && host[0] != '.' && strspn(host, allowed) == len &&
           len + sizeof(":65535") <= SRV_TARGET_BYTES;
}

/* A total order: the result stays the same when name servers rotate their answers. */
static int srv_compare(const void *a, const void *b)
{
    const struct srv_record *one = a, *other = b;

    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    if (one->weight != other->weight)
        return one->weight > other->weight ? -1 : 1;
    return strcmp(one->target, other->target);
}

static struct srv_record *srv_reserve(struct srv_list *list)
{
    size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
    struct srv_record *all;

    if (list->n < list->capacity)
        return &list->all[list->n];
    all = list->capacity < SRV_MAX_RECORDS ? realloc(list->all, capacity * sizeof(*all)) : NULL;
    if (!all)
        return NULL;
    list->all = all;
    list->capacity = capacity;
    return &list->all[list->n];
}

static void srv_take(void *cookie, const struct dns_record *record)
{
    struct srv_list *list = cookie;
    struct srv_record *out;
    char host[NS_MAXDNAME];
    unsigned port;
    int len;

    if (record->len <= SRV_HEAD_BYTES || dns_name(host, sizeof(host), record, SRV_HEAD_BYTES) < 0 ||
        !srv_is_host(host))
        return;
    port = ns_get16(record->data + 4);
    if (port == 0)
        return;
    out = srv_reserve(list);
    if (!out) {
        list->full = true;
        return;
    }
    len = snprintf(out->target, sizeof(out->target), "%s:%u", host, port);
    if (len < 0 || (size_t)len >= sizeof(out->target))
        return;
    out->priority = (uint16_t)ns_get16(record->data);
    out->weight = (uint16_t)ns_get16(record->data + 2);
    list->n++;
}

/* As srv_resolve(). */
static int srv_ask(void *out, size_t max, const char *name, struct dns_terms *terms)
{
    static const uint16_t types[] = {ns_t_srv};
    struct srv_list list = {.n = 0};
    struct dns_search search = {
        .name = name, .types = types, .n_types = 1, .on_record = srv_take, .cookie = &list};
    int rc = dns_search(&search, terms);

    if (rc >= 0)
        rc = list.full ? -ENOMEM : list.n == 0 ? -ENOENT : 0;
    if (rc == 0) {
        qsort(list.all, list.n, sizeof(*list.all), srv_compare);
        rc = (int)(list.n < max ? list.n : max);
        memcpy(out, list.all, (size_t)rc * sizeof(*list.all));
    }
    free(list.all);
    return rc;
}

int srv_resolve(struct srv_record *out, size_t max, const char *name, struct dns_terms *terms)
{
    const struct lookup lookup = {.ask = srv_ask, .name = name, .item_bytes = sizeof(*out)};

    return lookup_share_ask(out, max, &lookup, terms);
}
