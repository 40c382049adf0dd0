/* names/resolver_lookup: one lookup, on an executor thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "names/resolver_internal.h"

/* Maximum addresses read from an answer. */
#define RESOLVER_ANSWER 4096

static int resolver_compare(const void *a, const void *b)
{
    const struct address *one = a, *other = b;

    if (one->len != other->len)
        return one->len < other->len ? -1 : 1;
    return memcmp(&one->u, &other->u, one->len);
}

/*
 * Keep the ${max} lowest of ${n} distinct addresses, in their order: the choice stays the same when
 * name servers rotate their answers.
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

struct dns_terms resolver_terms(const struct resolver_name *name, unsigned timeout_s)
{
    return (struct dns_terms){.servers = name->servers,
                              .timeout_s = timeout_s,
                              .preference = &name->resolver->preference,
                              .share = &name->resolver->share,
                              .due_at_ns = name->due_at_ns,
                              .ttl_ns = CLOCK_NEVER};
}

int resolver_ask(const struct resolver_name *name, struct address *out, unsigned max,
                 const char *host, struct dns_terms *terms)
{
    struct address *all = malloc(RESOLVER_ANSWER * sizeof(*all));
    int n;

    if (!all)
        return -ENOMEM;
    n = name->resolver->conf.lookup(all, RESOLVER_ANSWER, host, terms);
    if (n > 0)
        n = resolver_choose(all, (unsigned)n, max);
    if (n > 0)
        memcpy(out, all, (unsigned)n * sizeof(*all));
    free(all);
    return n;
}

static void resolver_move(struct resolver_found_addresses *f, unsigned to, unsigned from)
{
    f->list[to] = f->list[from];
    f->record[to] = f->record[from];
    f->weight[to] = f->weight[from];
    f->level[to] = f->level[from];
}

int resolver_filter_loops(struct resolver_name *name, struct proxy_loop *listeners)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    struct resolver_found_addresses *f = name->found;
    char text[ADDRESS_TEXT_BYTES];
    bool told = name->loops;
    unsigned kept = 0;

    name->loops = false;
    for (unsigned i = 0; i < f->n; i++) {
        if (!conf->leads_back(listeners, name->upstream_name, &f->list[i])) {
            resolver_move(f, kept++, i);
            continue;
        }
        name->loops = true;
        if (!told)
            log_error(
                "upstream %s: server %s (%s): proxy loop: %s is a listener of this process, which "
                "could lead back to this upstream; the address is not used",
                name->upstream_name, name->id, name->shown,
                address_format(text, sizeof(text), &f->list[i]));
    }
    f->n = kept;
    return kept > 0 ? 0 : -ELOOP;
}

static int resolver_look_up_host(struct resolver_name *name)
{
    struct resolver_found_addresses *f = name->found;
    struct dns_terms terms = resolver_terms(name, 0);
    int n;

    terms.known = name->families;
    n = resolver_ask(name, f->list, ARRAY_LEN(f->list), name->word, &terms);

    f->failed = n > 0 ? terms.failed : 0;
    f->error = terms.error;
    f->ttl_ns = terms.ttl_ns;
    f->n = n > 0 ? (unsigned)n : 0;
    for (unsigned i = 0; i < f->n; i++) {
        f->record[i] = 0;
        f->weight[i] = 1;
        f->level[i] = 0;
    }
    return n < 0 ? n : 0;
}

int resolver_keep_one(struct resolver_found_addresses *f)
{
    int n = resolver_choose(f->list, f->n, ENDPOINT_ADDRESSES);

    f->n = n > 0 ? (unsigned)n : 0;
    return n < 0 ? n : 0;
}

void resolver_free_found(struct resolver_found_addresses *found)
{
    if (found)
        free(found->service);
    free(found);
}

const char *resolver_error_text(int error)
{
    switch (error) {
    case -ENOENT: return "there is no such name";
    case -EAGAIN: return "no name server answers";
    case -EREMOTEIO: return "the name server fails";
    case -ETIME: return "no time is left for the lookup";
    case -ELOOP: return "none of its addresses can be used";
    default: return strerror(-error);
    }
}

int resolver_look_up(struct resolver_name *name)
{
    bool is_service = name->names == UPSTREAM_SERVICE, begins = !name->found;
    int rc;

    if (begins) {
        name->found = malloc(sizeof(*name->found));
        if (!name->found)
            return -ENOMEM;
        name->found->n = name->found->failed = name->found->kept = 0;
        name->found->service = NULL;
    }
    if (is_service)
        rc = begins ? resolver_service_begin(name) : resolver_service_go_on(name);
    else
        rc = resolver_look_up_host(name);
    if (rc == 0)
        rc = resolver_filter_loops(name, name->listeners);
    if (rc == 0 && name->names == UPSTREAM_NAME_ONE)
        rc = resolver_keep_one(name->found);
    return rc;
}
