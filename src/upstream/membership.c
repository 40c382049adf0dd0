#include "upstream/membership.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/grace.h"
#include "upstream/membership_internal.h"
#include "upstream/upstream.h"

struct server_set *membership_take(struct membership *r)
{
    struct server_set *set;

    lock_take(&r->lock);
    set = membership_now(r);
    atomic_fetch_add_explicit(&set->held, 1, memory_order_relaxed);
    lock_release(&r->lock);
    return set;
}

void membership_give_back(struct server_set *set)
{
    atomic_fetch_sub_explicit(&set->held, 1, memory_order_release);
}

/* ---- servers ---- */

void membership_hold(struct upstream_server *server)
{
    atomic_fetch_add_explicit(&server->held, 1, memory_order_relaxed);
}

void membership_let_go(struct upstream_server *server)
{
    /* Release: pairs with the acquire before the free. */
    MUST(atomic_fetch_sub_explicit(&server->held, 1, memory_order_release) > 0);
}

static bool membership_is_unused(const struct upstream_server *server)
{
    uint32_t load = atomic_load_explicit(server->endpoint.load, memory_order_acquire);

    return !server->is_listed && (load & ENDPOINT_COUNT_MASK) == 0 &&
           atomic_load_explicit(&server->held, memory_order_acquire) == 0;
}

/* ---- sets ---- */

static void membership_free_set(struct server_set *set)
{
    if (!set)
        return;
    balancer_destroy(set->balancer);
    free(set);
}

static int membership_build_balancer(struct membership *r, struct server_set *set)
{
    const struct upstream_conf *conf = r->upstream->conf;
    struct endpoint **list = calloc((size_t)set->n + 1, sizeof(struct endpoint *));
    struct balancer_conf balancer = {.kind = conf->balance,
                                     .endpoints = list,
                                     .n_endpoints = set->n,
                                     .hash_balance_factor = conf->hash_balance_factor,
                                     .panic_threshold = conf->panic_threshold,
                                     .slow_start_ns = conf->slow_start_ns,
                                     .generation = ++r->generation};
    int rc;

    if (!list)
        return -ENOMEM;
    for (unsigned i = 0; i < set->n; i++)
        list[i] = &set->servers[i]->endpoint;
    rc = balancer_create(&set->balancer, &balancer);
    free(list);
    return rc;
}

static int membership_build_set(struct server_set **out, struct membership *r)
{
    struct server_set *set;
    unsigned n = 0;
    int rc;

    list_for_each (node, &r->servers)
        n += LIST_ENTRY(node, struct upstream_server, link)->is_wanted;
    if (n > BALANCER_MAX_ENDPOINTS)
        return -E2BIG;
    set = calloc(1, sizeof(*set) + n * sizeof(set->servers[0]));
    if (!set)
        return -ENOMEM;
    list_init(&set->link);
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->is_wanted)
            set->servers[set->n++] = server;
        set->n_used += server->is_wanted && atomic_load(&server->endpoint.weight) > 0;
    }
    rc = membership_build_balancer(r, set);
    if (rc < 0) {
        membership_free_set(set);
        return rc;
    }
    *out = set;
    return 0;
}

static void membership_set_unseen(void *cookie)
{
    struct server_set *set = cookie;

    atomic_store_explicit(&set->unseen, true, memory_order_release);
}

void membership_sweep(struct membership *r)
{
    list_for_each_safe (node, &r->replaced) {
        struct server_set *set = LIST_ENTRY(node, struct server_set, link);

        if (!atomic_load_explicit(&set->unseen, memory_order_acquire) ||
            atomic_load_explicit(&set->held, memory_order_acquire) > 0)
            continue;
        list_remove(&set->link);
        membership_free_set(set);
    }
    if (!list_empty(&r->replaced))
        return; /* it may contain unlisted servers */
    list_for_each_safe (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        /* a session that failed after the removal may have ejected it again */
        if (!server->is_listed)
            ejection_cancel(&r->upstream->ejection, &server->ejection, &server->endpoint);
        if (!membership_is_unused(server))
            continue;
        list_remove(&server->link);
        membership_free_server(server);
    }
}

/* ---- a change ---- */

static bool membership_is_at(const struct upstream_server *server,
                             const struct membership_place *place)
{
    struct endpoint_addresses *at = endpoint_use_addresses(&server->endpoint);
    bool is_there = at && endpoint_addresses_are(at, place->list, place->n);

    endpoint_release_addresses(at);
    return is_there;
}

static struct upstream_server *membership_find(const struct membership *r, unsigned line,
                                               const struct membership_place *place)
{
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->line == line && membership_is_at(server, place))
            return server;
    }
    return NULL;
}

/* Slow start for an added server, unless the whole line is new. */
static void membership_warm(const struct membership *r, struct upstream_server *server)
{
    if (r->upstream->conf->slow_start_ns == 0)
        return;
    atomic_store_explicit(&server->endpoint.warming_since_ns, clock_now_ns(), memory_order_relaxed);
    (void)endpoint_set_flag(&server->endpoint, ENDPOINT_WARMING);
}

/* Mark the wanted servers; 1 if a new set is needed. */
static int membership_plan(struct membership *r, unsigned line,
                           const struct membership_place *places, unsigned n)
{
    const struct upstream_server_conf *conf = &r->upstream->conf->servers[line];
    bool was_known = false, changed = false;

    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        server->is_wanted = server->is_listed && server->line != line;
        was_known |= server->is_listed && server->line == line;
    }
    for (unsigned i = 0; i < n; i++) {
        struct upstream_server *server = membership_find(r, line, &places[i]);
        unsigned level = membership_level(conf, &places[i]),
                 weight = membership_weight(conf, &places[i]);

        if (!server) {
            int rc = membership_add_server(&server, r, line, &places[i]);

            if (rc < 0)
                return rc;
        }
        if (was_known && !server->is_listed)
            membership_warm(r, server);
        if (atomic_exchange_explicit(&server->endpoint.weight, weight, memory_order_relaxed) !=
                weight ||
            server->endpoint.level != level)
            r->is_stale = true;
        server->endpoint.level = level;
        server->is_wanted = true;
    }
    list_for_each (node, &r->servers) {
        const struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        changed |= server->is_wanted != server->is_listed;
    }
    return changed || r->is_stale;
}

static void membership_publish(struct membership *r, struct server_set *set, struct grace *grace)
{
    struct server_set *before = membership_now(r);

    lock_take(&r->lock);
    atomic_store(&r->set, set); /* sequentially consistent, for grace_begin() */
    lock_release(&r->lock);
    wait_queue_use(&r->upstream->waiting, set->balancer);
    ejection_group_resize(&r->upstream->ejection, set->n_used);
    r->is_stale = false;
    if (!before)
        return;
    list_append(&r->replaced, &before->link);
    if (grace)
        grace_begin(grace);
    else
        membership_set_unseen(before);
}

/* Clear flags of servers that return, before publishing: the set may have no others. */
static void membership_reset_returning(struct membership *r)
{
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (!server->is_wanted || server->is_listed)
            continue;
        ejection_cancel(&r->upstream->ejection, &server->ejection, &server->endpoint);
        if (upstream_starts_down(r->upstream->conf) && !server->conf->disabled)
            /* before it can get sessions */
            (void)endpoint_set_flag(&server->endpoint, ENDPOINT_DOWN);
        if (atomic_load(&server->endpoint.addresses))
            (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_ABSENT);
    }
}

/* Set `is_listed` from `is_wanted`, and report changes to the watch. */
static void membership_note_changes(struct membership *r)
{
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);
        bool came = server->is_wanted && !server->is_listed;
        bool went = !server->is_wanted && server->is_listed;

        server->is_listed = server->is_wanted;
        if (came && r->watch.came)
            r->watch.came(r->watch.cookie, server);
        if (!went)
            continue;
        (void)endpoint_set_flag(&server->endpoint, ENDPOINT_ABSENT);
        ejection_cancel(&r->upstream->ejection, &server->ejection, &server->endpoint);
        if (r->watch.went)
            r->watch.went(r->watch.cookie, server);
    }
}

/* Build and publish a set of the wanted servers. */
static int membership_change(struct membership *r)
{
    struct server_set *before = membership_now(r), *set;
    struct grace *grace = NULL;
    int rc = membership_build_set(&set, r);

    if (rc < 0)
        return rc;
    if (before && r->upstream->workers)
        rc = grace_create(&grace, r->upstream->workers, membership_set_unseen, before);
    if (rc < 0) {
        membership_free_set(set);
        return rc;
    }
    membership_reset_returning(r);
    membership_publish(r, set, grace);
    membership_note_changes(r);
    return 0;
}

int membership_update(struct membership *r, unsigned line, const struct membership_place *places,
                      unsigned n)
{
    int rc;

    MUST(n > 0);
    membership_sweep(r);
    rc = membership_plan(r, line, places, n);
    if (rc <= 0)
        return rc;
    rc = membership_change(r);
    if (rc < 0)
        return rc;
    upstream_serve(r->upstream);
    spare_group_refresh(&r->upstream->spares);
    return 1;
}

/* ---- life ---- */

int membership_open(struct membership *r, struct upstream *up)
{
    *r = (struct membership){.upstream = up};
    lock_init(&r->lock);
    list_init(&r->servers);
    list_init(&r->slabs);
    list_init(&r->replaced);
    for (unsigned line = 0; line < up->conf->n_servers; line++) {
        const struct upstream_server_conf *conf = &up->conf->servers[line];
        struct membership_place place = {
            .list = conf->addresses, .n = conf->n_addresses, .weight = conf->weight};
        struct upstream_server *server;
        int rc;

        if (!membership_is_one(conf))
            continue;
        rc = membership_add_server(&server, r, line, &place);
        if (rc < 0)
            return rc;
        server->is_wanted = true;
    }
    return membership_change(r);
}

void membership_close(struct membership *r)
{
    if (!r->upstream)
        return; /* never opened */
    list_for_each_safe (node, &r->replaced)
        membership_free_set(LIST_ENTRY(node, struct server_set, link));
    membership_free_set(membership_now(r));
    list_for_each_safe (node, &r->servers)
        membership_free_server(LIST_ENTRY(node, struct upstream_server, link));
    membership_free_slabs(r);
    lock_close(&r->lock);
}
