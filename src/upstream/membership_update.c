/* upstream/membership_update: change the servers of one line, a name. */
#include <errno.h>

#include "check/checker.h"
#include "upstream/membership_internal.h"
#include "upstream/upstream.h"

static struct upstream_server *membership_find(const struct membership *r,
                                               const struct server_line *line,
                                               const struct membership_place *place)
{
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->line == line && membership_is_at(server, place))
            return server;
    }
    return NULL;
}

static int membership_want(struct membership *r, unsigned position,
                           const struct membership_place *places, unsigned n)
{
    const struct server_line *line = r->lines[position];
    const struct upstream_server_conf *conf = &line->conf;
    bool was_known = false;

    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        server->is_wanted = server->is_listed && server->line != line;
        was_known |= server->is_listed && server->line == line;
    }
    for (unsigned i = 0; i < n; i++) {
        struct upstream_server *server = membership_find(r, line, &places[i]);
        unsigned level = membership_level(conf, &places[i]), weight;

        if (!server) {
            int rc = membership_add_server(&server, r, position, &places[i]);

            if (rc < 0)
                return rc;
        }
        weight = membership_weight(line, server, &places[i]);
        if (was_known && !server->is_listed)
            membership_warm(r, server);
        if (atomic_exchange_explicit(&server->endpoint.weight, weight, memory_order_relaxed) !=
                weight ||
            server->endpoint.level != level)
            r->is_stale = true;
        server->endpoint.level = level;
        server->place_weight = places[i].weight;
        server->place_level = places[i].level;
        server->is_wanted = true;
    }
    return 0;
}

/* Will a wanted server of ${line} get sessions, and has no first result of its checks yet? */
static bool membership_has_undecided(const struct membership *r, const struct server_line *line)
{
    bool starts_down = upstream_starts_down(r->upstream->conf, &line->conf);

    list_for_each (node, &r->servers) {
        const struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->line == line && server->is_wanted && endpoint_is_used(&server->endpoint) &&
            (server->is_listed ? checker_is_undecided(server->target) : starts_down))
            return true;
    }
    return false;
}

/* Want the servers of ${line} that would go; true if there are any. */
static bool membership_keep(const struct membership *r, const struct server_line *line)
{
    bool kept = false;

    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->line != line || server->is_wanted || !server->is_listed)
            continue;
        server->is_wanted = kept = true;
    }
    return kept;
}

static bool membership_has_changed(const struct membership *r)
{
    bool changed = r->is_stale;

    list_for_each (node, &r->servers) {
        const struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        changed |= server->is_wanted != server->is_listed;
    }
    return changed;
}

static unsigned membership_position(const struct membership *r, const struct server_line *line)
{
    unsigned i = 0;

    while (i < r->n_lines && r->lines[i] != line)
        i++;
    return i;
}

int membership_update(struct membership *r, const struct server_line *line,
                      const struct membership_place *places, unsigned n, bool *kept)
{
    unsigned position = membership_position(r, line);
    int rc;

    if (position == r->n_lines)
        return -ESTALE;
    if (r->is_being_changed)
        return -EBUSY;
    (void)membership_sweep(r);
    rc = membership_want(r, position, places, n);
    if (rc < 0)
        return rc;
    if (kept)
        *kept = membership_has_undecided(r, line) && membership_keep(r, line);
    if (!membership_has_changed(r))
        return 0;
    rc = membership_replace_set(r);
    if (rc < 0)
        return rc;
    upstream_serve(r->upstream);
    upstream_spares_refresh(&r->upstream->spares);
    return 1;
}
