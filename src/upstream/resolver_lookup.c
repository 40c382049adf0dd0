/* upstream/resolver_lookup: what a name stands for, on a thread of the executor. See resolver_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "net/srv.h"
#include "upstream/resolver_internal.h"

/* So many addresses of a name are looked at, more than go into an answer of a name server in practice. */
#define RESOLVER_ANSWER 4096

static int resolver_compare(const void *a, const void *b)
{
    const struct address *one = a, *other = b;

    if (one->len != other->len)
        return one->len < other->len ? -1 : 1;
    return memcmp(&one->u, &other->u, one->len);
}

/*
 * Leave ${max} of the ${n} different addresses of ${list}, in their order: the same ones, in whatever order they come. Name
 * servers turn their answers, and those that happened to come first would be other servers each time.
 */
static int resolver_choose(struct address *list, unsigned n, unsigned max)
{
    struct address *sorted;
    unsigned kept = 0;

    if (n <= max)
        return (int)n;
    sorted = malloc(n * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, list, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), resolver_compare);
    for (unsigned i = 0; i < n && kept < max; i++)
        if (resolver_compare(&list[i], &sorted[max - 1]) <= 0)
            list[kept++] = list[i];
    free(sorted);
    return (int)kept;
}

/* The addresses of a host, ${max} of them if there are more. */
static int resolver_ask(const struct resolver_name *name, struct address *out, unsigned max,
                        const char *host)
{
    struct address *all = malloc(RESOLVER_ANSWER * sizeof(*all));
    int n;

    if (!all)
        return -ENOMEM;
    n = name->resolver->conf.lookup(all, RESOLVER_ANSWER, host);
    if (n > 0)
        n = resolver_choose(all, (unsigned)n, max);
    if (n > 0)
        memcpy(out, all, (unsigned)n * sizeof(*all));
    free(all);
    return n;
}

static void resolver_move(struct resolver_found *f, unsigned to, unsigned from)
{
    f->list[to] = f->list[from];
    f->record[to] = f->record[from];
    f->weight[to] = f->weight[from];
    f->level[to] = f->level[from];
}

/* Take out of what was found what would go round for ever. 0, or -ELOOP when nothing is left. */
static int resolver_drop_loops(struct resolver_name *name)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    struct resolver_found *f = name->found;
    char text[ADDRESS_TEXT_BYTES];
    bool told = name->loops;
    unsigned kept = 0;

    name->loops = false;
    for (unsigned i = 0; i < f->n; i++) {
        if (!conf->leads_back(conf->cookie, name->upstream, &f->list[i])) {
            resolver_move(f, kept++, i);
            continue;
        }
        name->loops = true;
        if (!told)
            log_error("upstream %s: server %s (%s): %s is where clients of this upstream come in, "
                      "so that a connection would go round for ever; it is left out",
                      name->upstream->conf->name, name->server->id, name->server->address_text,
                      address_format(text, sizeof(text), &f->list[i]));
    }
    f->n = kept;
    return kept > 0 ? 0 : -ELOOP;
}

static int resolver_look_up_host(struct resolver_name *name)
{
    struct resolver_found *f = name->found;
    int n = resolver_ask(name, f->list, ARRAY_LEN(f->list), name->server->address_text);

    f->n = n > 0 ? (unsigned)n : 0;
    for (unsigned i = 0; i < f->n; i++) {
        f->record[i] = 0;
        f->weight[i] = name->server->weight;
        f->level[i] = 0;
    }
    return n < 0 ? n : 0;
}

static bool resolver_has(const struct resolver_found *f, const struct address *a)
{
    for (unsigned i = 0; i < f->n; i++)
        if (address_equal(&f->list[i], a))
            return true;
    return false;
}

/* How many different priorities are lower than that of ${record}. They come in their order. */
static unsigned resolver_level(const struct srv_record *records, int record)
{
    unsigned level = 0;

    for (int i = 1; i <= record; i++)
        level += records[i].priority != records[i - 1].priority;
    return level < BALANCER_LEVELS ? level : BALANCER_LEVELS - 1;
}

/* The weights of all records as ours, which are 1 to 256: a weight of 0 has a share, too, if a small one. */
static unsigned resolver_weight(const struct srv_record *records, int n, int record)
{
    unsigned most = BALANCER_MAX_WEIGHT, weight;

    for (int i = 0; i < n; i++)
        most = records[i].weight > most ? records[i].weight : most;
    weight = (unsigned)records[record].weight * BALANCER_MAX_WEIGHT / most;
    return weight > 0 ? weight : 1;
}

/* All addresses of the host of a record. */
static int resolver_look_up_record(struct resolver_name *name, const struct srv_record *records,
                                   int n_records, int record)
{
    struct resolver_found *f = name->found;
    unsigned weight = resolver_weight(records, n_records, record);
    unsigned level = resolver_level(records, record);
    struct address list[ENDPOINT_ADDRESSES];
    int n = resolver_ask(name, list, ARRAY_LEN(list), records[record].target);

    if (n == -EINVAL || n == -ERANGE)
        return -ENOENT; /* what is no host name has no address */
    for (int i = 0; i < n && f->n < ARRAY_LEN(f->list); i++) {
        if (resolver_has(f, &list[i]))
            continue;
        f->list[f->n] = list[i];
        f->record[f->n] = (unsigned)record;
        f->weight[f->n] = weight;
        f->level[f->n] = level;
        f->n++;
    }
    return n < 0 ? n : 0;
}

/*
 * A host without an address is left out as long as others have one; but when no name server answers nothing is known, and
 * the others alone would be too few.
 */
static int resolver_look_up_service(struct resolver_name *name)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    struct srv_record *records = malloc(RESOLVER_ADDRESSES * sizeof(*records));
    int n, rc = 0;

    if (!records)
        return -ENOMEM;
    name->found->n = 0;
    n = conf->lookup_service(records, RESOLVER_ADDRESSES, name->server->address_text);
    for (int i = 0; i < n && (rc == 0 || rc == -ENOENT); i++)
        rc = resolver_look_up_record(name, records, n, i);
    free(records);
    if (n < 0)
        return n;
    return rc == -ENOENT && name->found->n > 0 ? 0 : rc;
}

/* What one server can have of the addresses that can be used. */
static int resolver_keep_one(struct resolver_found *f)
{
    int n = resolver_choose(f->list, f->n, ENDPOINT_ADDRESSES);

    f->n = n > 0 ? (unsigned)n : 0;
    return n < 0 ? n : 0;
}

int resolver_look_up(struct resolver_name *name)
{
    int rc;

    name->found = malloc(sizeof(*name->found));
    if (!name->found)
        return -ENOMEM;
    rc = name->server->names == UPSTREAM_SERVICE ? resolver_look_up_service(name)
                                                 : resolver_look_up_host(name);
    if (rc == 0)
        rc = resolver_drop_loops(name);
    if (rc == 0 && name->server->names == UPSTREAM_NAME_ONE)
        rc = resolver_keep_one(name->found);
    return rc;
}
