#include "upstream/membership_change_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/membership_admin.h"
#include "upstream/upstream.h"

struct server_line *membership_change_line(const struct membership_change *ch, const char *id)
{
    unsigned position = server_lines_position(&ch->lines, id);

    return position < ch->lines.n ? ch->lines.list[position] : NULL;
}

static struct membership_place membership_change_place(const struct upstream_server_conf *conf)
{
    return (struct membership_place){
        .list = conf->addresses, .n = conf->n_addresses, .weight = conf->weight};
}

static bool membership_change_continues(const struct upstream_server *server,
                                        const struct upstream_server_conf *conf)
{
    const struct upstream_server_conf *was = &server->line->conf;
    struct membership_place place = membership_change_place(conf);

    if (was->names != conf->names || membership_is_one(was) != membership_is_one(conf))
        return false;
    return conf->names == UPSTREAM_LITERAL ? membership_is_at(server, &place)
                                           : strcmp(was->address_text, conf->address_text) == 0;
}

static struct membership_next *membership_change_find(const struct membership_change *ch,
                                                      const struct upstream_server *server)
{
    for (unsigned i = 0; i < ch->n; i++)
        if (ch->list[i].server == server)
            return &ch->list[i];
    return NULL;
}

/* Reserve memory before a server is created, so that adding it cannot fail. */
static int membership_change_reserve(struct membership_change *ch)
{
    unsigned capacity = ch->capacity > 0 ? 2 * ch->capacity : 16;
    struct membership_next *list;

    if (ch->n < ch->capacity)
        return 0;
    list = realloc(ch->list, capacity * sizeof(*list));
    if (!list)
        return -ENOMEM;
    ch->list = list;
    ch->capacity = capacity;
    return 0;
}

static struct membership_next *membership_change_add(struct membership_change *ch,
                                                     struct upstream_server *server,
                                                     unsigned position)
{
    struct membership_next *next = &ch->list[ch->n++];

    *next = (struct membership_next){.server = server,
                                     .position = position,
                                     .weight = server->place_weight,
                                     .level = server->place_level};
    return next;
}

static int membership_change_create_server(struct membership_change *ch, unsigned position,
                                           const struct membership_place *place)
{
    struct upstream_server *server;
    struct membership_next *next;
    int rc = membership_change_reserve(ch);

    if (rc == 0)
        rc = membership_create_server(&server, ch->r, ch->lines.list[position], place);
    if (rc < 0)
        return rc;
    next = membership_change_add(ch, server, position);
    next->is_new = next->is_wanted = true;
    return 0;
}

/* Keep the servers of lines that continue; a one-server line also takes back its removed server. */
static int membership_change_keep_servers(struct membership_change *ch, bool *has_server)
{
    list_for_each (node, &ch->r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);
        unsigned position = server_lines_position(&ch->lines, server->line->conf.id);
        int rc;

        if (position == ch->lines.n ||
            !membership_change_continues(server, &ch->lines.list[position]->conf))
            continue;
        rc = membership_change_reserve(ch);
        if (rc < 0)
            return rc;
        membership_change_add(ch, server, position)->is_wanted =
            server->is_listed || membership_is_one(&ch->lines.list[position]->conf);
        has_server[position] = true;
    }
    return 0;
}

static int membership_change_collect(struct membership_change *ch)
{
    bool *has_server = calloc((size_t)ch->lines.n + 1, sizeof(*has_server));
    int rc = has_server ? membership_change_keep_servers(ch, has_server) : -ENOMEM;

    for (unsigned i = 0; i < ch->lines.n && rc == 0; i++) {
        const struct upstream_server_conf *conf = &ch->lines.list[i]->conf;
        struct membership_place place = membership_change_place(conf);

        if (!has_server[i] && membership_is_one(conf))
            rc = membership_change_create_server(ch, i, &place);
    }
    free(has_server);
    return rc;
}

static int membership_change_compare(const void *a, const void *b)
{
    const struct membership_next *one = a, *other = b;

    if (one->position != other->position)
        return one->position < other->position ? -1 : 1;
    return strcmp(one->server->name, other->server->name);
}

struct balancer_share membership_change_share(const struct membership_change *ch,
                                              const struct membership_next *next)
{
    const struct server_line *line = ch->lines.list[next->position];
    const struct upstream_server_conf *conf = &line->conf;
    struct membership_place place = {.weight = conf->names == UPSTREAM_SERVICE ? next->weight
                                                                               : conf->weight,
                                     .level = next->level};

    return (struct balancer_share){.weight = membership_weight(line, next->server, &place),
                                   .level = membership_level(conf, &place),
                                   .max_connections =
                                       server_line_own_max(line, next->server->name)};
}

static int membership_change_fill(const struct membership_change *ch,
                                  struct membership_wanted *wanted)
{
    wanted->servers = calloc((size_t)ch->n + 1, sizeof(struct upstream_server *));
    wanted->shares = calloc((size_t)ch->n + 1, sizeof(*wanted->shares));
    if (!wanted->servers || !wanted->shares)
        return -ENOMEM;
    for (unsigned i = 0; i < ch->n; i++) {
        if (!ch->list[i].is_wanted)
            continue;
        wanted->servers[wanted->n] = ch->list[i].server;
        wanted->shares[wanted->n++] = membership_change_share(ch, &ch->list[i]);
    }
    return 0;
}

/* Create or prepare spares for servers that may have spare connections now. */
static int membership_change_add_spares(struct membership_change *ch)
{
    int rc = 0;

    for (unsigned i = 0; i < ch->n && rc == 0; i++) {
        struct membership_next *next = &ch->list[i];

        rc = upstream_spares_prepare(&ch->r->upstream->spares, &next->spare, next->server, ch->conf,
                                     &ch->lines.list[next->position]->conf);
    }
    return rc;
}

int membership_change_build(struct membership_change *ch)
{
    struct membership_wanted wanted = {0};
    int rc;

    if (ch->set)
        return 0;
    if (ch->n > 1)
        qsort(ch->list, ch->n, sizeof(ch->list[0]), membership_change_compare);
    rc = membership_change_add_spares(ch);
    if (rc == 0)
        rc = membership_change_fill(ch, &wanted);
    if (rc == 0)
        rc = membership_build_set(&ch->set, ch->r, ch->conf, &wanted);
    free(wanted.servers);
    free(wanted.shares);
    return rc;
}

int membership_change_prepare(struct membership_change **out, struct membership *r,
                              const struct upstream_conf *conf)
{
    struct membership_change *ch;
    int rc;

    if (r->is_being_changed)
        return -EBUSY;
    ch = calloc(1, sizeof(*ch));
    if (!ch)
        return -ENOMEM;
    r->is_being_changed = true;
    ch->r = r;
    ch->conf = conf;
    rc = server_lines_open(&ch->lines, conf->servers, conf->n_servers);
    for (unsigned i = 0; i < r->n_lines && rc == 0; i++)
        server_lines_keep(&ch->lines, r->lines[i]);
    if (rc == 0)
        rc = membership_change_collect(ch);
    if (rc == 0)
        rc = membership_change_build(ch);
    if (rc < 0) {
        membership_change_cancel(ch);
        return rc;
    }
    *out = ch;
    return 0;
}

static bool membership_change_has(const struct membership_change *ch, unsigned position)
{
    for (unsigned i = 0; i < ch->n; i++)
        if (ch->list[i].position == position && ch->list[i].is_wanted)
            return true;
    return false;
}

static int membership_change_place_one(const struct membership_change *ch, unsigned position,
                                       const struct membership_place *place)
{
    for (unsigned i = 0; i < ch->n; i++) {
        const struct membership_next *next = &ch->list[i];

        if (next->position != position || atomic_load(&next->server->endpoint.addresses))
            continue;
        return endpoint_set_addresses(&next->server->endpoint, NULL, place->list, place->n) < 0
                   ? -ENOMEM
                   : 0;
    }
    return 0;
}

/* Find the server at ${place} in the old line ${id}, if that has several servers; NULL: none. */
static struct upstream_server *membership_change_old(const struct membership_change *ch,
                                                     const char *id,
                                                     const struct membership_place *place)
{
    list_for_each (node, &ch->r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);
        const struct upstream_server_conf *was = &server->line->conf;

        if (!membership_is_one(was) && strcmp(was->id, id) == 0 && membership_is_at(server, place))
            return server;
    }
    return NULL;
}

static int membership_change_place_each(struct membership_change *ch, unsigned position,
                                        const struct membership_place *place)
{
    const char *id = ch->lines.list[position]->conf.id;
    struct upstream_server *server = membership_change_old(ch, id, place);
    struct membership_next *next = server ? membership_change_find(ch, server) : NULL;

    if (!server)
        return membership_change_create_server(ch, position, place);
    if (!next && membership_change_reserve(ch) < 0)
        return -ENOMEM;
    if (!next)
        next = membership_change_add(ch, server, position);
    next->weight = place->weight;
    next->level = place->level;
    next->is_wanted = true;
    return 0;
}

int membership_change_places(struct membership_change *ch, const struct server_line *line,
                             const struct membership_place *places, unsigned n)
{
    unsigned position = server_lines_position(&ch->lines, line->conf.id);
    int rc = 0;

    MUST(n > 0 && position < ch->lines.n && ch->lines.list[position] == line);
    if (membership_is_one(&line->conf))
        return membership_change_place_one(ch, position, &places[0]);
    if (membership_change_has(ch, position))
        return 0;
    membership_free_set(ch->set);
    ch->set = NULL; /* membership_change_build() builds a new one */
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = membership_change_place_each(ch, position, &places[i]);
    return rc;
}

/* Move the server to its new line; the old line stays until no worker reads it. */
static void membership_change_apply(struct membership_change *ch, struct membership_next *next)
{
    struct upstream_server *server = next->server;
    struct server_line *line = ch->lines.list[next->position];
    struct balancer_share share = membership_change_share(ch, next);

    if (server->is_listed && !endpoint_is_used(&server->endpoint) && share.weight > 0)
        membership_bring_in(ch->r, server, line);
    next->before = server->line;
    server->line = server_line_hold(line);
    atomic_store(&server->conf, &line->conf); /* sequentially consistent, for grace_begin() */
    atomic_store(&server->is_disabled, server_line_own_is_disabled(line, server->name));
    atomic_store(&server->is_draining,
                 server_line_own_admin(line, server->name).state == SERVER_LINE_DRAIN);
    atomic_store(&server->is_backup, line->conf.backup);
    atomic_store(&server->is_by_hand, line->is_by_hand);
    atomic_store(&server->endpoint.weight, share.weight);
    atomic_store(&server->endpoint.level, share.level);
    atomic_store(&server->endpoint.max_connections, share.max_connections);
    if (line->conf.never_ejected)
        ejection_cancel(&ch->r->upstream->ejection, &server->ejection, &server->endpoint);
    if (next->spare)
        atomic_store(&server->spare, next->spare);
    if (server->spare)
        server->spare->ops->commit(server->spare, ch->conf, &line->conf);
    server->position = next->position;
    server->place_weight = next->weight;
    server->place_level = next->level;
    server->is_wanted = next->is_wanted;
    next->was_listed = server->is_listed;
    if (next->is_wanted && !server->is_listed && ch->r->set)
        membership_warm(ch->r, server);
}

/* Sort the list: servers of the new lines in their order, then removed servers. */
static void membership_change_order(struct membership_change *ch)
{
    struct list *servers = &ch->r->servers;

    list_for_each (node, servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        server->position = UINT32_MAX;
        server->is_wanted = false;
    }
    for (unsigned i = ch->n; i-- > 0;) {
        struct upstream_server *server = ch->list[i].server;

        list_remove(&server->link);
        list_append(servers->next, &server->link);
    }
}

static void membership_change_swap_lines(struct membership_change *ch)
{
    struct membership *r = ch->r;
    struct server_line **lines = r->lines;
    unsigned n_lines = r->n_lines;

    r->lines = ch->lines.list;
    r->n_lines = ch->lines.n;
    ch->lines.list = lines;
    ch->lines.n = n_lines;
}

static void membership_change_report(const struct membership_change *ch)
{
    const struct membership_watch *watch = &ch->r->watch;

    for (unsigned i = 0; watch->changed && i < ch->n; i++) {
        struct upstream_server *server = ch->list[i].server;

        if (server->is_listed && ch->list[i].was_listed && ch->list[i].before != server->line)
            watch->changed(watch->cookie, server);
    }
}

void membership_change_commit(struct membership_change *ch)
{
    struct membership *r = ch->r;

    MUST(ch->set);
    membership_change_order(ch);
    for (unsigned i = 0; i < ch->lines.n; i++)
        ch->lines.list[i]->is_by_hand = ch->conf->servers[i].by_hand;
    for (unsigned i = 0; i < ch->n; i++)
        membership_change_apply(ch, &ch->list[i]);
    membership_admin_log_lost(r, &ch->lines);
    membership_change_swap_lines(ch);
    membership_reset_returning(r);
    ch->before = membership_publish(r, ch->set);
    ch->set = NULL;
    membership_note_changes(r);
    membership_change_report(ch);
    r->is_being_changed = false;
}

static void membership_change_free(struct membership_change *ch)
{
    server_lines_close(&ch->lines);
    membership_free_set(ch->set);
    free(ch->list);
    free(ch);
}

void membership_change_end(struct membership_change *ch)
{
    for (unsigned i = 0; i < ch->n; i++)
        server_line_release(ch->list[i].before);
    membership_set_unseen(ch->before);
    membership_change_free(ch);
}

void membership_change_cancel(struct membership_change *ch)
{
    if (!ch)
        return;
    ch->r->is_being_changed = false;
    for (unsigned i = 0; i < ch->n; i++) {
        if (ch->list[i].spare)
            ch->list[i].spare->ops->destroy(ch->list[i].spare);
        if (ch->list[i].is_new)
            membership_free_server(ch->list[i].server);
    }
    membership_change_free(ch);
}
