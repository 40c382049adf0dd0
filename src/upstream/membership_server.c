/* upstream/membership_server: create and free servers. */
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "upstream/membership_internal.h"
#include "upstream/upstream.h"

/* Load words of a slab; one bit of `used` each. */
#define MEMBERSHIP_SLAB_LOADS 64

struct membership_slab {
    alignas(CACHE_LINE_BYTES) _Atomic uint32_t loads[MEMBERSHIP_SLAB_LOADS];
    struct list link;
    uint64_t used;
};

static struct membership_slab *membership_slab_with_room(const struct membership *r)
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
    struct membership_slab *slab = membership_slab_with_room(r);
    unsigned i;

    if (!slab) {
        slab = aligned_alloc(alignof(struct membership_slab), sizeof(*slab));
        if (!slab)
            return -ENOMEM;
        slab->used = 0;
        list_append(r->slabs.next, &slab->link); /* before the full ones */
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
    spare_destroy(server->spare);
    endpoint_close(&server->endpoint);
    membership_give_load_back(server);
    free(server);
}

/* Insert in order of line and name. */
static void membership_insert(struct membership *r, struct upstream_server *server)
{
    struct list *before = &r->servers;

    while (before->prev != &r->servers) {
        const struct upstream_server *other =
            LIST_ENTRY(before->prev, struct upstream_server, link);

        if (other->line < server->line ||
            (other->line == server->line && strcmp(other->name, server->name) < 0))
            break;
        before = before->prev;
    }
    list_append(before, &server->link);
}

static struct upstream_server *membership_alloc_server(const struct upstream_server_conf *conf,
                                                       const struct membership_place *place)
{
    char text[ADDRESS_TEXT_BYTES] = "";
    size_t len = strlen(conf->id);
    struct upstream_server *server;

    if (!membership_is_one(conf))
        address_format(text, sizeof(text), &place->list[0]);
    server = calloc(1, sizeof(*server) + len + 1 + strlen(text) + 1);
    if (!server)
        return NULL;
    memcpy(server->name, conf->id, len);
    if (text[0] != '\0') {
        server->name[len] = '@';
        memcpy(server->name + len + 1, text, strlen(text));
    }
    return server;
}

int membership_add_server(struct upstream_server **out, struct membership *r, unsigned line,
                          const struct membership_place *place)
{
    const struct upstream_server_conf *conf = &r->upstream->conf->servers[line];
    struct upstream_server *server = membership_alloc_server(conf, place);
    struct endpoint *e;
    int rc;

    if (!server)
        return -ENOMEM;
    server->conf = conf;
    server->line = line;
    e = &server->endpoint;
    e->name = server->name;
    atomic_init(&e->weight, membership_weight(conf, place));
    e->level = membership_level(conf, place);
    e->max_connections = conf->max_connections;
    e->hash = hash_stable(server->name, strlen(server->name));
    e->group = &r->upstream->group;
    rc = membership_take_load(r, server);
    if (rc == 0)
        rc = spare_create(&server->spare, r->upstream, server);
    if (rc == 0 && place->n > 0)
        rc = endpoint_set_addresses(e, NULL, place->list, place->n);
    if (rc < 0) {
        membership_free_server(server);
        return rc;
    }
    membership_insert(r, server);
    *out = server;
    return 0;
}

void membership_free_slabs(struct membership *r)
{
    list_for_each_safe (node, &r->slabs)
        free(LIST_ENTRY(node, struct membership_slab, link));
}
