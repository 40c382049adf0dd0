#include "upstream/membership.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check/checker.h"
#include "engine/grace.h"
#include "upstream/membership_internal.h"
#include "upstream/server_line.h"
#include "upstream/upstream_internal.h"

struct server_set *membership_hold_set(struct membership *r)
{
    struct server_set *set;

    lock_take(&r->lock);
    set = membership_now(r);
    ref_hold(&set->references);
    lock_release(&r->lock);
    return set;
}

void membership_release_set(struct server_set *set)
{
    MUST(!ref_release(&set->references));
}

static bool membership_is_unused(const struct upstream_server *server)
{
    uint32_t load = atomic_load_explicit(server->endpoint.load, memory_order_acquire);

    return !server->is_listed && (load & ENDPOINT_COUNT_MASK) == 0 &&
           ref_count(&server->references) == 1;
}

void membership_free_set(struct server_set *set)
{
    if (!set)
        return;
    balancer_destroy(set->balancer);
    free(set);
}

static int membership_build_balancer(struct membership *r, struct server_set *set,
                                     const struct upstream_conf *conf,
                                     const struct balancer_share *shares)
{
    struct endpoint **list = calloc((size_t)set->n + 1, sizeof(struct endpoint *));
    struct balancer_conf balancer = {.kind = conf->balance,
                                     .endpoints = list,
                                     .shares = shares,
                                     .n_endpoints = set->n,
                                     .hash_balance_factor = conf->hash_balance_factor,
                                     .by_address = conf->hash_server == UPSTREAM_HASH_ADDRESS,
                                     .panic_threshold = conf->panic_threshold,
                                     .spills = conf->backup_when_full,
                                     .stays = conf->failback == UPSTREAM_FAILBACK_NO,
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

int membership_build_set(struct server_set **out, struct membership *r,
                         const struct upstream_conf *conf, const struct membership_wanted *wanted)
{
    struct server_set *set;
    int rc;

    if (wanted->n > BALANCER_MAX_ENDPOINTS)
        return -E2BIG;
    set = calloc(1, sizeof(*set) + wanted->n * sizeof(set->servers[0]));
    if (!set)
        return -ENOMEM;
    ref_init(&set->references);
    list_init(&set->link);
    set->n = wanted->n;
    for (unsigned i = 0; i < set->n; i++) {
        set->servers[i] = wanted->servers[i];
        set->n_used += wanted->shares ? wanted->shares[i].weight > 0
                                      : endpoint_is_used(&wanted->servers[i]->endpoint);
    }
    rc = membership_build_balancer(r, set, conf, wanted->shares);
    if (rc < 0) {
        membership_free_set(set);
        return rc;
    }
    *out = set;
    return 0;
}

static int membership_build_wanted(struct server_set **out, struct membership *r)
{
    struct membership_wanted wanted = {0};
    unsigned n = 0;
    int rc;

    list_for_each (node, &r->servers)
        n += LIST_ENTRY(node, struct upstream_server, link)->is_wanted;
    wanted.servers = calloc((size_t)n + 1, sizeof(struct upstream_server *));
    if (!wanted.servers)
        return -ENOMEM;
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->is_wanted)
            wanted.servers[wanted.n++] = server;
    }
    rc = membership_build_set(out, r, r->upstream->conf, &wanted);
    free(wanted.servers);
    return rc;
}

void membership_set_unseen(void *cookie)
{
    struct server_set *set = cookie;

    atomic_store_explicit(&set->unseen, true, memory_order_release);
}

static bool membership_has_garbage(const struct membership *r)
{
    list_for_each (node, &r->servers)
        if (!LIST_ENTRY(node, struct upstream_server, link)->is_listed)
            return true;
    return !list_empty(&r->replaced);
}

bool membership_sweep(struct membership *r)
{
    uint64_t oldest = UINT64_MAX;

    if (r->is_being_changed)
        return true; /* the change may use unlisted servers */
    list_for_each_safe (node, &r->replaced) {
        struct server_set *set = LIST_ENTRY(node, struct server_set, link);

        if (!atomic_load_explicit(&set->unseen, memory_order_acquire) ||
            ref_count(&set->references) > 1)
            continue;
        list_remove(&set->link);
        membership_free_set(set);
    }
    if (!list_empty(&r->replaced))
        oldest = LIST_ENTRY(r->replaced.next, struct server_set, link)->number;
    list_for_each_safe (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->gone_with > oldest)
            continue; /* a set with it may still be read */
        /* A session that failed after the removal may have ejected the server again. */
        if (!server->is_listed)
            ejection_cancel(&r->upstream->ejection, &server->ejection, &server->endpoint);
        if (!membership_is_unused(server))
            continue;
        list_remove(&server->link);
        membership_free_server(server);
    }
    return membership_has_garbage(r);
}

bool membership_is_at(const struct upstream_server *server, const struct membership_place *place)
{
    struct endpoint_addresses *at = endpoint_hold_addresses(&server->endpoint);
    bool is_there = at ? endpoint_addresses_are(at, place->list, place->n) : place->n == 0;

    endpoint_release_addresses(at);
    return is_there;
}

void membership_warm(const struct membership *r, struct upstream_server *server)
{
    if (r->upstream->conf->slow_start_ns == 0)
        return;
    atomic_store_explicit(&server->endpoint.warming_since_ns, clock_now_ns(), memory_order_relaxed);
    (void)endpoint_set_flag(&server->endpoint, ENDPOINT_WARMING);
}

void membership_bring_in(const struct membership *r, struct upstream_server *server,
                         const struct server_line *line)
{
    if (upstream_starts_down(r->upstream->conf, &line->conf) && atomic_load(&server->is_disabled) &&
        !checker_has(server->target))
        (void)endpoint_set_flag(&server->endpoint, ENDPOINT_DOWN);
    membership_warm(r, server);
}

struct server_set *membership_publish(struct membership *r, struct server_set *set)
{
    struct server_set *before = membership_now(r);

    lock_take(&r->lock);
    set->number = ++r->n_published;
    atomic_store(&r->set, set); /* sequentially consistent, for grace_begin() */
    lock_release(&r->lock);
    upstream_in_use_begin(r->upstream, set);
    wait_queue_use(&r->upstream->waiting, set->balancer);
    ejection_group_resize(&r->upstream->ejection, set->n_used);
    r->is_stale = false;
    if (before)
        list_append(&r->replaced, &before->link);
    return before;
}

/* Call it before publishing: a set of returning servers only would have no fit server. */
void membership_reset_returning(struct membership *r)
{
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (!server->is_wanted || server->is_listed)
            continue;
        ejection_cancel(&r->upstream->ejection, &server->ejection, &server->endpoint);
        if (upstream_starts_down(r->upstream->conf, &server->line->conf) &&
            !atomic_load(&server->is_disabled) && !checker_has(server->target))
            /* a check must pass first */
            (void)endpoint_set_flag(&server->endpoint, ENDPOINT_DOWN);
        upstream_state_came(r->upstream, server);
        if (atomic_load(&server->endpoint.addresses))
            (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_ABSENT);
    }
}

void membership_note_changes(struct membership *r)
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
        server->gone_with = r->n_published;
        (void)endpoint_set_flag(&server->endpoint, ENDPOINT_ABSENT);
        ejection_cancel(&r->upstream->ejection, &server->ejection, &server->endpoint);
        if (r->watch.went)
            r->watch.went(r->watch.cookie, server);
    }
}

int membership_replace_set(struct membership *r)
{
    struct server_set *before = membership_now(r), *set;
    struct grace *grace = NULL;
    int rc = membership_build_wanted(&set, r);

    if (rc < 0)
        return rc;
    if (before && r->upstream->workers)
        rc = grace_create(&grace, r->upstream->workers, membership_set_unseen, before);
    if (rc < 0) {
        membership_free_set(set);
        return rc;
    }
    membership_reset_returning(r);
    (void)membership_publish(r, set);
    membership_note_changes(r);
    if (grace)
        grace_begin(grace);
    else if (before)
        membership_set_unseen(before);
    return 0;
}

static int membership_add_lines(struct membership *r, const struct upstream_conf *conf)
{
    r->lines = calloc((size_t)conf->n_servers + 1, sizeof(struct server_line *));
    if (!r->lines)
        return -ENOMEM;
    for (; r->n_lines < conf->n_servers; r->n_lines++) {
        int rc = server_line_create(&r->lines[r->n_lines], &conf->servers[r->n_lines]);

        if (rc < 0)
            return rc;
    }
    return 0;
}

struct server_line *membership_find_line(const struct membership *r, const char *id)
{
    for (unsigned i = 0; i < r->n_lines; i++)
        if (strcmp(r->lines[i]->conf.id, id) == 0)
            return r->lines[i];
    return NULL;
}

int membership_open(struct membership *r, struct upstream *up)
{
    int rc;

    *r = (struct membership){.upstream = up};
    lock_init(&r->lock);
    list_init(&r->servers);
    list_init(&r->slabs);
    list_init(&r->replaced);
    rc = membership_add_lines(r, up->conf);
    for (unsigned i = 0; i < r->n_lines && rc == 0; i++) {
        const struct upstream_server_conf *conf = &r->lines[i]->conf;
        struct membership_place place = {
            .list = conf->addresses, .n = conf->n_addresses, .weight = conf->weight};
        struct upstream_server *server;

        if (!membership_is_one(conf))
            continue;
        rc = membership_add_server(&server, r, i, &place);
        if (rc == 0)
            server->is_wanted = true;
    }
    return rc == 0 ? membership_replace_set(r) : rc;
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
    for (unsigned i = 0; i < r->n_lines; i++)
        server_line_release(r->lines[i]);
    free(r->lines);
    lock_close(&r->lock);
}

unsigned membership_count_up(const struct membership *m, unsigned *n_used)
{
    const struct server_set *set = membership_now(m);
    unsigned n_up = 0;

    *n_used = 0;
    for (unsigned i = 0; i < set->n; i++) {
        const struct endpoint *e = &set->servers[i]->endpoint;

        if (!endpoint_is_used(e))
            continue;
        ++*n_used;
        n_up += (endpoint_load(e) & (ENDPOINT_ABSENT | ENDPOINT_ANY_DOWN)) == 0;
    }
    return n_up;
}
