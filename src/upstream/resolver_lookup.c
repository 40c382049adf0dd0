/* upstream/resolver_lookup: what a name stands for, on a thread of the executor. See resolver_internal.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "net/srv.h"
#include "upstream/resolver_internal.h"

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
    int n = name->resolver->conf.lookup(f->list, ARRAY_LEN(f->list), name->server->address_text);

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

/* How many different priorities are lower than that of ${record}. */
static unsigned resolver_level(const struct srv_record *records, int n, int record)
{
    unsigned level = 0;

    for (int i = 0; i < n; i++) {
        bool is_first = true;

        for (int j = 0; j < i && is_first; j++)
            is_first = records[j].priority != records[i].priority;
        level += is_first && records[i].priority < records[record].priority;
    }
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
    struct address list[ENDPOINT_ADDRESSES];
    int n = name->resolver->conf.lookup(list, ARRAY_LEN(list), records[record].target);

    if (n == -EINVAL || n == -ERANGE)
        return -ENOENT; /* what is no host name has no address */
    for (int i = 0; i < n && f->n < ARRAY_LEN(f->list); i++) {
        if (resolver_has(f, &list[i]))
            continue;
        f->list[f->n] = list[i];
        f->record[f->n] = (unsigned)record;
        f->weight[f->n] = resolver_weight(records, n_records, record);
        f->level[f->n] = resolver_level(records, n_records, record);
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

int resolver_look_up(struct resolver_name *name)
{
    int rc;

    name->found = malloc(sizeof(*name->found));
    if (!name->found)
        return -ENOMEM;
    rc = name->server->names == UPSTREAM_SERVICE ? resolver_look_up_service(name)
                                                 : resolver_look_up_host(name);
    return rc < 0 ? rc : resolver_drop_loops(name);
}
