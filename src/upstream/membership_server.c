/* upstream/membership_server: create and free servers. */
#include <ctype.h>
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "check/checker.h"
#include "tls/tls_sessions.h"
#include "upstream/membership_internal.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"

/* Load words of a slab; `used` has a bit for each. */
#define MEMBERSHIP_SLAB_LOADS 64

struct membership_slab {
    alignas(CACHE_LINE_BYTES) _Atomic uint32_t loads[MEMBERSHIP_SLAB_LOADS];
    struct list link;
    uint64_t used;
};

static struct membership_slab *membership_slab_with_space(const struct membership *r)
{
    list_for_each (node, &r->slabs) {
        struct membership_slab *slab = LIST_ENTRY(node, struct membership_slab, link);

        if (slab->used != UINT64_MAX)
            return slab;
    }
    return NULL;
}

static int membership_take_load(struct membership *r, struct upstream_server *server)
{
    struct membership_slab *slab = membership_slab_with_space(r);
    unsigned i;

    if (!slab) {
        slab = aligned_alloc(alignof(struct membership_slab), sizeof(*slab));
        if (!slab)
            return -ENOMEM;
        slab->used = 0;
        list_append(r->slabs.next, &slab->link); /* in front: full slabs are behind */
    }
    i = (unsigned)__builtin_ctzll(~slab->used);
    slab->used |= UINT64_C(1) << i;
    server->slab = slab;
    server->endpoint.load = &slab->loads[i];
    atomic_init(server->endpoint.load, ENDPOINT_ABSENT);
    return 0;
}

static void membership_give_load_back(struct upstream_server *server)
{
    if (server->slab)
        server->slab->used &= ~(UINT64_C(1) << (server->endpoint.load - server->slab->loads));
}

void membership_free_server(struct upstream_server *server)
{
    if (server->spare)
        server->spare->ops->destroy(server->spare);
    tls_sessions_release(server->tls_sessions);
    checker_target_destroy(server->target);
    checker_target_destroy(server->agent);
    endpoint_close(&server->endpoint);
    membership_give_load_back(server);
    server_line_release(server->line);
    free(server);
}

static void membership_insert(struct membership *r, struct upstream_server *server)
{
    struct list *before = &r->servers;

    while (before->prev != &r->servers) {
        const struct upstream_server *other =
            LIST_ENTRY(before->prev, struct upstream_server, link);

        if (other->position < server->position ||
            (other->position == server->position && strcmp(other->name, server->name) < 0))
            break;
        before = before->prev;
    }
    list_append(before, &server->link);
}

static struct upstream_server *membership_alloc_server(const struct upstream_server_conf *conf,
                                                       const struct membership_place *place)
{
    char text[ADDRESS_TEXT_BYTES];
    const char *address = conf->address_text;
    size_t len = strlen(conf->id), name_bytes = len + 1;
    struct upstream_server *server;

    if (!membership_is_one(conf)) {
        address_format(text, sizeof(text), &place->list[0]);
        address = text;
        name_bytes += strlen(text) + 1;
    }
    server = calloc(1, sizeof(*server) + name_bytes + strlen(address) + 1);
    if (!server)
        return NULL;
    memcpy(server->name, conf->id, len);
    if (address == text) {
        server->name[len] = '@';
        memcpy(server->name + len + 1, text, strlen(text));
    }
    server->address_text = strcpy(server->name + name_bytes, address);
    return server;
}

/* Names are not case-sensitive. */
static uint64_t membership_hash_name(const char *text)
{
    char name[ADDRESS_HOST_BYTES + sizeof(":65535")];
    size_t n = 0;

    for (; n < sizeof(name) && text[n] != '\0'; n++)
        name[n] = (char)tolower((unsigned char)text[n]);
    return hash_stable(name, n);
}

/*
 * Hash the address of a server, as all processes that use it do: of several addresses the lowest
 * text, since the order of a lookup varies. A server whose addresses may change is its name.
 */
static uint64_t membership_hash_address(const struct upstream_server_conf *conf,
                                        const struct membership_place *place)
{
    char lowest[ADDRESS_TEXT_BYTES], text[ADDRESS_TEXT_BYTES];

    if (conf->names == UPSTREAM_NAME_ONE || place->n == 0)
        return membership_hash_name(conf->address_text);
    address_format(lowest, sizeof(lowest), &place->list[0]);
    for (unsigned i = 1; i < place->n; i++)
        if (strcmp(address_format(text, sizeof(text), &place->list[i]), lowest) < 0)
            memcpy(lowest, text, sizeof(lowest));
    return hash_stable(lowest, strlen(lowest));
}

static int membership_create_spare(const struct membership *r, struct upstream_server *server)
{
    struct upstream_spare *spare = NULL;
    int rc = upstream_spares_prepare(&r->upstream->spares, &spare, server, r->upstream->conf,
                                     &server->line->conf);

    atomic_init(&server->spare, spare);
    return rc;
}

int membership_create_server(struct upstream_server **out, struct membership *r,
                             struct server_line *line, const struct membership_place *place)
{
    const struct upstream_server_conf *conf = &line->conf;
    struct upstream_server *server = membership_alloc_server(conf, place);
    struct endpoint *e;
    int rc;

    if (!server)
        return -ENOMEM;
    server->conf = conf;
    atomic_init(&server->is_disabled, server_line_own_is_disabled(line, server->name));
    atomic_init(&server->is_backup, conf->backup);
    atomic_init(&server->is_by_hand, line->is_by_hand);
    atomic_init(&server->is_draining,
                server_line_own_admin(line, server->name).state == SERVER_LINE_DRAIN);
    server->line = server_line_hold(line);
    ref_init(&server->references);
    server->place_weight = place->weight;
    server->place_level = place->level;
    list_init(&server->link);
    e = &server->endpoint;
    e->name = server->name;
    lock_init(&e->why_lock);
    atomic_init(&e->changed_at_ns, clock_now_ns());
    atomic_init(&e->weight, membership_weight(line, server, place));
    e->level = membership_level(conf, place);
    e->max_connections = server_line_own_max(line, server->name);
    e->hash = hash_stable(server->name, strlen(server->name));
    e->address_hash = membership_hash_address(conf, place);
    e->group = &r->upstream->group;
    rc = membership_take_load(r, server);
    if (rc == 0)
        rc = checker_target_create(&server->target);
    if (rc == 0)
        rc = checker_target_create(&server->agent);
    if (rc == 0)
        rc = membership_create_spare(r, server);
    if (rc == 0 && place->n > 0)
        rc = endpoint_set_addresses(e, NULL, place->list, place->n);
    if (rc < 0) {
        membership_free_server(server);
        return rc;
    }
    *out = server;
    return 0;
}

int membership_add_server(struct upstream_server **out, struct membership *r, unsigned position,
                          const struct membership_place *place)
{
    int rc = membership_create_server(out, r, r->lines[position], place);

    if (rc < 0)
        return rc;
    (*out)->position = position;
    membership_insert(r, *out);
    return 0;
}

void membership_free_slabs(struct membership *r)
{
    list_for_each_safe (node, &r->slabs)
        free(LIST_ENTRY(node, struct membership_slab, link));
}
