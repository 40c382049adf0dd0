/*
 * names/resolver_hold: addresses that stay in use although the name server fails, or for a while
 * although it says that there is no such name.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "names/resolver_internal.h"
#include "net/resolve.h"
#include "upstream/upstream.h"

/* Insert ${a} of a host at ${at}. */
static void resolver_hold_insert(struct resolver_found_addresses *f, unsigned at,
                                 const struct address *a)
{
    memmove(&f->list[at + 1], &f->list[at], (f->n - at) * sizeof(f->list[0]));
    f->list[at] = *a;
    f->record[f->n] = 0;
    f->weight[f->n] = 1;
    f->level[f->n] = 0;
    f->n++;
}

/* Add the addresses of ${last} whose lookup failed now, in front if they were in front. */
static void resolver_hold_add(struct resolver_found_addresses *f,
                              const struct resolver_found_addresses *last)
{
    unsigned at = last->n > 0 && resolve_family(&last->list[0]) & f->failed ? 0 : f->n;

    for (unsigned i = 0; i < last->n && f->n < ARRAY_LEN(f->list); i++) {
        unsigned family = resolve_family(&last->list[i]) & f->failed;

        if (!family)
            continue;
        resolver_hold_insert(f, at++, &last->list[i]);
        f->kept |= family;
    }
}

void resolver_hold_families(struct resolver_name *name)
{
    struct resolver_found_addresses *f = name->found, *last;

    if (!f->failed || resolver_cache_get(name->cached, name->word, &last) < 0)
        return;
    resolver_hold_add(f, last);
    resolver_free_found(last);
    name->looked_up = resolver_filter_loops(name, name->listeners);
    if (name->looked_up == 0 && name->names == UPSTREAM_NAME_ONE)
        name->looked_up = resolver_keep_one(f);
}

static const char *resolver_hold_text(unsigned families)
{
    return families == RESOLVE_IPV4 ? "IPv4" : "IPv6";
}

void resolver_hold_found(struct resolver_name *name)
{
    const struct resolver_found_addresses *f = name->found;
    unsigned before = name->kept;

    name->denied_at_ns = 0;
    name->families = 0;
    for (unsigned i = 0; i < f->n; i++)
        name->families |= resolve_family(&f->list[i]);
    name->kept = f->kept;
    if (name->kept == before)
        return;
    if (name->kept)
        log_warning("upstream %s: server %s (%s): cannot look up the %s addresses of the name: %s; "
                    "they stay in use; trying again within %g s",
                    name->upstream_name, name->id, name->shown, resolver_hold_text(f->kept),
                    resolver_error_text(f->error), (double)resolver_name_retry_ns(name) / NS_PER_S);
    else
        log_notice("upstream %s: server %s (%s): lookups of its %s addresses no longer fail",
                   name->upstream_name, name->id, name->shown, resolver_hold_text(before));
}

int64_t resolver_hold_left_ns(struct resolver_name *name)
{
    int64_t until_ns;

    if (name->denied_at_ns == 0)
        name->denied_at_ns = name->answered_at_ns;
    until_ns = clock_add_ns(name->denied_at_ns, name->upstream->conf->resolve_hold_ns);
    return until_ns == CLOCK_NEVER ? CLOCK_NEVER : until_ns - name->answered_at_ns;
}

static int resolver_hold_remove(struct resolver_name *name)
{
    const struct server_set *set = membership_now(&name->upstream->membership);

    if (name->names != UPSTREAM_NAME_ONE)
        return membership_update(&name->upstream->membership, name->line, NULL, 0, NULL);
    for (unsigned i = 0; i < set->n; i++)
        if (set->servers[i]->line == name->line)
            upstream_withdraw(name->upstream, set->servers[i]);
    return 0;
}

int resolver_hold_end(struct resolver_name *name)
{
    int rc = resolver_hold_remove(name);

    if (rc < 0)
        return rc;
    log_warning(
        "upstream %s: server %s (%s): the name does not exist any more: no new clients go to "
        "its addresses, for which resolve_hold is over; trying again within %g s",
        name->upstream_name, name->id, name->shown,
        (double)resolver_name_retry_ns(name) / NS_PER_S);
    name->known = false;
    name->denied_at_ns = 0;
    name->families = name->kept = 0;
    name->error = -ENOENT; /* logged */
    resolver_free_found(name->last);
    name->last = NULL;
    resolver_cache_forget(&name->resolver->cache, name->cached);
    return 0;
}
