/* names/resolver_service: SRV records and their hosts' addresses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "names/resolver_internal.h"
#include "net/resolve.h"

/* Each name server is queried once, with this timeout. */
#define RESOLVER_HOST_TIMEOUT_S 1

/*
 * Level of ${record}: the number of different priorities before its own, as records are sorted by
 * priority; at most the last level.
 */
static unsigned resolver_level(const struct resolver_service *s, unsigned record)
{
    unsigned level = 0;

    for (unsigned i = 1; i <= record; i++)
        level += s->records[i].priority != s->records[i - 1].priority;
    return level < BALANCER_LEVELS ? level : BALANCER_LEVELS - 1;
}

/* Scale an SRV weight to 1 ... 256: weight 0 gets a share, too. */
static unsigned resolver_weight(const struct resolver_service *s, unsigned record)
{
    unsigned most = BALANCER_MAX_WEIGHT, weight;

    for (unsigned i = 0; i < s->n; i++)
        most = s->records[i].weight > most ? s->records[i].weight : most;
    weight = (unsigned)s->records[record].weight * BALANCER_MAX_WEIGHT / most;
    return weight > 0 ? weight : 1;
}

/* Insert an address of ${record}, in the order of records; return its index. */
static unsigned resolver_insert(struct resolver_found_addresses *f, unsigned record)
{
    unsigned at = f->n++;

    for (; at > 0 && f->record[at - 1] > record; at--) {
        f->list[at] = f->list[at - 1];
        f->record[at] = f->record[at - 1];
    }
    f->record[at] = record;
    return at;
}

static void resolver_remove(struct resolver_found_addresses *f, unsigned at)
{
    f->n--;
    for (; at < f->n; at++) {
        f->list[at] = f->list[at + 1];
        f->record[at] = f->record[at + 1];
    }
}

/*
 * Add an address once, under the first record that has it. In a full list it replaces an address of
 * a later record.
 */
static void resolver_add_address(struct resolver_found_addresses *f, const struct address *a,
                                 unsigned record)
{
    for (unsigned i = 0; i < f->n; i++) {
        if (!address_equal(&f->list[i], a))
            continue;
        if (f->record[i] <= record)
            return;
        resolver_remove(f, i);
        break;
    }
    if (f->n == ARRAY_LEN(f->list) && f->record[f->n - 1] > record)
        f->n--;
    if (f->n < ARRAY_LEN(f->list))
        f->list[resolver_insert(f, record)] = *a;
}

/* Index of the record for ${target} in the last answer; -1: no such record. */
static int resolver_last_record(const struct resolver_name *name, const char *target)
{
    const struct resolver_service *last = name->last ? name->last->service : NULL;

    for (unsigned i = 0; last && i < last->n; i++)
        if (strcmp(last->records[i].target, target) == 0)
            return (int)i;
    return -1;
}

/* Families of the addresses that ${record} had in the last answer. */
static unsigned resolver_last_families(const struct resolver_name *name, unsigned record)
{
    int was = resolver_last_record(name, name->found->service->records[record].target);
    unsigned families = 0;

    for (unsigned i = 0; was >= 0 && i < name->last->n; i++)
        if (name->last->record[i] == (unsigned)was)
            families |= resolve_family(&name->last->list[i]);
    return families;
}

/* Note that the lookup of ${families} of ${record} failed, and keep their last addresses. */
static void resolver_fail_record(struct resolver_name *name, unsigned record, unsigned families,
                                 int error)
{
    struct resolver_service *s = name->found->service;
    const struct resolver_found_addresses *last = name->last;
    int was = resolver_last_record(name, s->records[record].target);

    s->errors[record] = error;
    s->error = s->error < 0 ? s->error : error;
    s->n_failed++;
    for (unsigned i = 0; was >= 0 && i < last->n; i++)
        if (last->record[i] == (unsigned)was && resolve_family(&last->list[i]) & families)
            resolver_add_address(name->found, &last->list[i], record);
}

static void resolver_look_up_record(struct resolver_name *name, unsigned record)
{
    struct resolver_found_addresses *f = name->found;
    struct dns_terms terms = resolver_terms(name, RESOLVER_HOST_TIMEOUT_S);
    struct address list[ENDPOINT_ADDRESSES];
    int n;

    terms.known = resolver_last_families(name, record);
    n = resolver_ask(name, list, ARRAY_LEN(list), f->service->records[record].target, &terms);
    if (n == -ENOENT || n == -EINVAL || n == -ERANGE)
        return;
    if (n < 0) {
        resolver_fail_record(name, record, RESOLVE_IPV4 | RESOLVE_IPV6, n);
        return;
    }
    f->ttl_ns = terms.ttl_ns < f->ttl_ns ? terms.ttl_ns : f->ttl_ns;
    for (int i = 0; i < n; i++)
        resolver_add_address(f, &list[i], record);
    if (terms.failed & terms.known)
        resolver_fail_record(name, record, terms.failed, terms.error);
}

/* Log one line for newly failing hosts of a service, and one when no host fails any more. */
static void resolver_log_hosts(const struct resolver_name *name)
{
    const struct resolver_service *s = name->found->service;
    int first = -1;

    for (unsigned i = 0; first < 0 && i < s->n; i++) {
        int was = s->errors[i] < 0 ? resolver_last_record(name, s->records[i].target) : -1;

        if (s->errors[i] < 0 && (was < 0 || name->last->service->errors[was] == 0))
            first = (int)i;
    }
    if (first >= 0)
        log_warning(
            "upstream %s: server %s (%s): %u of %u SRV hosts cannot be looked up, such as %s: "
            "%s; their last known addresses, if any, stay in use",
            name->upstream_name, name->id, name->shown, s->n_failed, s->n, s->records[first].target,
            resolver_error_text(s->errors[first]));
    else if (s->n_failed == 0 && name->last && name->last->service->n_failed > 0)
        log_notice("upstream %s: server %s (%s): lookups of its SRV hosts no longer fail",
                   name->upstream_name, name->id, name->shown);
}

void resolver_service_weigh(struct resolver_found_addresses *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        f->weight[i] = resolver_weight(f->service, f->record[i]);
        f->level[i] = resolver_level(f->service, f->record[i]);
    }
}

static int resolver_service_end(struct resolver_name *name)
{
    struct resolver_found_addresses *f = name->found;

    if (f->n == 0)
        return f->service->error < 0 ? f->service->error : -ENOENT;
    resolver_service_weigh(f);
    resolver_log_hosts(name);
    return 0;
}

int resolver_service_begin(struct resolver_name *name)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    struct dns_terms terms = resolver_terms(name, 0);
    struct resolver_service *s = calloc(1, sizeof(*s));
    int n;

    if (!s)
        return -ENOMEM;
    name->found->service = s;
    n = conf->lookup_service(s->records, ARRAY_LEN(s->records), name->word, &terms);
    if (n < 0)
        return n;
    name->found->ttl_ns = terms.ttl_ns;
    s->n = (unsigned)n;
    s->begin = n > 0 ? name->begin % s->n : 0;
    s->until_ns = clock_add_ns(clock_now_ns(), conf->service_ns);
    name->begin = 0;
    return n > 0 ? RESOLVER_MORE : -ENOENT;
}

int resolver_service_go_on(struct resolver_name *name)
{
    struct resolver_service *s = name->found->service;

    resolver_look_up_record(name, (s->begin + s->done++) % s->n);
    if (s->done < s->n && clock_now_ns() < s->until_ns)
        return RESOLVER_MORE;
    if (s->done < s->n)
        name->begin = (s->begin + s->done) % s->n;
    for (; s->done < s->n; s->done++)
        resolver_fail_record(name, (s->begin + s->done) % s->n, RESOLVE_IPV4 | RESOLVE_IPV6,
                             -ETIME);
    return resolver_service_end(name);
}
