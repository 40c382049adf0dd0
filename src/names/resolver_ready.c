/* names/resolver_ready: names that need no lookup; is enough known to use a configuration? */
#include <errno.h>

#include "base/log.h"
#include "names/resolver_internal.h"

bool resolver_recall(struct resolver_name *name, struct proxy_loop *listeners)
{
    if (resolver_cache_get(name->cached, name->word, &name->found) < 0)
        return false;
    if (resolver_filter_loops(name, listeners) < 0 ||
        (name->names == UPSTREAM_NAME_ONE && resolver_keep_one(name->found) < 0)) {
        resolver_free_found(name->found);
        name->found = NULL;
        return false;
    }
    name->looked_up = 0;
    name->has_answer = true;
    name->answered_at_ns = name->cached->answered_at_ns;
    return true;
}

bool resolver_is_known(const struct resolver_name *name)
{
    return name->known || (name->has_answer && name->looked_up == 0);
}

static const char *resolver_why_unknown(const struct resolver_name *name)
{
    int error = name->has_answer ? name->looked_up : name->error;

    return error < 0 ? resolver_error_text(error) : "it is still being looked up";
}

static int resolver_look_at(const struct resolver_step *step)
{
    struct resolver_name *name = step->name;

    if (!step->is_new || resolver_is_known(name))
        return 0;
    name->late = true;
    if (step->is_required) {
        log_error("upstream %s: server %s (%s): the name has no address yet: %s; resolve_required "
                  "demands one",
                  name->upstream_name, name->id, name->shown, resolver_why_unknown(name));
        return -ENODATA;
    }
    if (!name->has_answer && name->error == 0)
        log_warning(
            "upstream %s: server %s (%s): the name is still being looked up; until it is known, "
            "the server gets no clients",
            name->upstream_name, name->id, name->shown);
    return 0;
}

/* Has ${up} no server already, because of its names? */
static bool resolver_is_without(const struct resolver *r, struct upstream *up)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (endpoint_is_used(&set->servers[i]->endpoint) &&
            (endpoint_load(&set->servers[i]->endpoint) & ENDPOINT_ABSENT) == 0)
            return false;
    list_for_each (node, &r->names)
        if (LIST_ENTRY(node, struct resolver_name, link)->upstream == up)
            return true;
    return false; /* ${up} is new */
}

/*
 * Look at the steps of one upstream, from ${first} to before ${end}. Their names must not leave it
 * without a server.
 */
static int resolver_look_at_upstream(const struct resolver_change *change, unsigned first,
                                     unsigned end)
{
    const struct resolver_name *unknown = NULL;

    for (unsigned i = first; i < end; i++) {
        const struct resolver_step *step = &change->steps[i];

        if (!step->is_alone || (step->is_used && resolver_is_known(step->name)))
            return 0;
        if (step->is_used && !unknown)
            unknown = step->name;
    }
    if (!unknown || resolver_is_without(change->resolver, unknown->upstream))
        return 0;
    log_error("upstream %s: server %s (%s): the name has no address yet: %s; without it the "
              "upstream has no server",
              unknown->upstream_name, unknown->id, unknown->shown, resolver_why_unknown(unknown));
    return -ENODATA;
}

static int resolver_look_at_upstreams(const struct resolver_change *change)
{
    unsigned first = 0;
    int rc = 0;

    for (unsigned i = 1; i <= change->n; i++) {
        if (i < change->n && change->steps[i].name->upstream == change->steps[first].name->upstream)
            continue;
        if (resolver_look_at_upstream(change, first, i) < 0)
            rc = -ENODATA;
        first = i;
    }
    return rc;
}

int resolver_look_at_all(const struct resolver_change *change)
{
    int rc = 0;

    for (unsigned i = 0; i < change->n; i++)
        if (resolver_look_at(&change->steps[i]) < 0)
            rc = -ENODATA;
    return rc < 0 || change->next.is_first ? rc : resolver_look_at_upstreams(change);
}
