#include "upstream/membership_admin.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "upstream/membership_internal.h"
#include "upstream/server_lines.h"
#include "upstream/upstream.h"

static bool membership_admin_is_possible(const struct server_line *line,
                                         const struct server_line_admin *admin)
{
    const struct upstream_server_conf *conf = &line->conf;

    if (admin->has_weight && conf->names == UPSTREAM_SERVICE)
        return false;
    return !conf->disabled || conf->names == UPSTREAM_LITERAL ||
           admin->state == SERVER_LINE_AS_CONFIGURED || admin->state == SERVER_LINE_DISABLED;
}

static unsigned membership_admin_weight(const struct upstream_server *server)
{
    const struct server_line *line = server->line;

    return server_line_own_weight(line, server->name,
                                  line->conf.names == UPSTREAM_SERVICE ? server->place_weight
                                                                       : line->conf.weight);
}

/* Keep the current set's servers, and update the weights of ${line}; true if a weight changed. */
static bool membership_admin_weigh(struct membership *r, const struct server_line *line)
{
    bool changed = false;

    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);
        unsigned weight;

        server->is_wanted = server->is_listed;
        if (server->line != line)
            continue;
        weight = membership_admin_weight(server);
        changed |= atomic_exchange(&server->endpoint.weight, weight) != weight;
    }
    return changed;
}

/* Bring in the servers of ${line} that have no weight so far, and get one. */
static void membership_admin_enable(const struct membership *r, const struct server_line *line)
{
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->line == line && !endpoint_is_used(&server->endpoint) &&
            server_line_own_weight(line, server->name, 1) > 0)
            membership_bring_in(r, server, line);
    }
}

/* After an error, restore weights and clear ENDPOINT_DOWN: disabled servers count as up. */
static void membership_admin_undo(struct membership *r, const struct server_line *line)
{
    (void)membership_admin_weigh(r, line);
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (server->line == line && atomic_load(&server->is_disabled))
            (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_DOWN);
    }
}

/* More places may let waiting sessions in, so their queue must exist from now on. */
static void membership_admin_bound(const struct membership *r, struct upstream_server *server)
{
    unsigned max = server_line_own_max(server->line, server->name);

    if (max > 0)
        atomic_store(&r->upstream->bounded, true);
    atomic_store(&server->endpoint.max_connections, max);
}

static void membership_admin_show(const struct membership *r, const struct server_line *line)
{
    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);
        bool is_disabled;

        if (server->line != line)
            continue;
        is_disabled = server_line_own_is_disabled(line, server->name);
        if (atomic_exchange(&server->is_disabled, is_disabled) != is_disabled)
            atomic_store_explicit(&server->endpoint.changed_at_ns, clock_now_ns(),
                                  memory_order_relaxed);
        atomic_store(&server->is_draining,
                     server_line_own_admin(line, server->name).state == SERVER_LINE_DRAIN);
        membership_admin_bound(r, server);
        if (server->is_listed && r->watch.changed)
            r->watch.changed(r->watch.cookie, server);
    }
}

struct server_line_admin membership_admin_get(struct membership *r, const struct server_line *line)
{
    struct server_line_admin admin;

    lock_take(&r->lock);
    admin = line->admin;
    lock_release(&r->lock);
    return admin;
}

void membership_admin_each_own(struct membership *r, const struct server_line *line,
                               membership_admin_visit *visit, void *cookie)
{
    lock_take(&r->lock);
    for (unsigned i = 0; line->own && i < line->own->n; i++)
        visit(cookie, line->own->list[i].name, &line->own->list[i].admin);
    lock_release(&r->lock);
}

/* Locked: the main thread may read ${line}->admin and `own` meanwhile. */
static void membership_admin_put(struct membership *r, struct server_line *line,
                                 const struct server_line_admin *admin, struct server_line_own *own)
{
    lock_take(&r->lock);
    line->admin = *admin;
    line->own = own;
    lock_release(&r->lock);
}

/* Use ${admin} and ${own} for ${line}, which owns ${own}; after an error it is freed. */
static int membership_admin_use(struct membership *r, struct server_line *line,
                                const struct server_line_admin *admin, struct server_line_own *own)
{
    const struct server_line_admin before = line->admin;
    struct server_line_own *own_before = line->own;
    int rc = 0;

    if (!own)
        return -ENOMEM;
    membership_admin_put(r, line, admin, own);
    membership_admin_enable(r, line);
    if (membership_admin_weigh(r, line))
        rc = membership_replace_set(r);
    if (rc < 0) {
        membership_admin_put(r, line, &before, own_before);
        membership_admin_undo(r, line);
        server_line_own_free(own);
        return rc;
    }
    server_line_own_free(own_before);
    membership_admin_show(r, line);
    upstream_serve(r->upstream);
    upstream_spares_refresh(&r->upstream->spares);
    return 0;
}

int membership_admin_set(struct membership *r, struct server_line *line,
                         const struct server_line_admin *admin, unsigned forget)
{
    if (r->is_being_changed)
        return -EBUSY;
    if (!membership_admin_is_possible(line, admin))
        return -EOPNOTSUPP;
    return membership_admin_use(r, line, admin, server_line_own_without(line->own, forget));
}

int membership_admin_set_one(struct membership *r, struct server_line *line, const char *name,
                             const struct server_line_admin *admin)
{
    const struct server_line_admin of_line = line->admin;

    if (r->is_being_changed)
        return -EBUSY;
    return membership_admin_use(r, line, &of_line, server_line_own_with(line->own, name, admin));
}

int membership_admin_reset(struct membership *r)
{
    const struct server_line_admin none = {.state = SERVER_LINE_AS_CONFIGURED};
    int rc = 0;

    for (unsigned i = 0; i < r->n_lines; i++) {
        int one = server_line_is_changed(r->lines[i])
                      ? membership_admin_set(r, r->lines[i], &none,
                                             SERVER_LINE_OWN_STATES | SERVER_LINE_OWN_WEIGHTS)
                      : 0;

        rc = rc < 0 ? rc : one;
    }
    return rc;
}

void membership_admin_log_lost(const struct membership *r, const struct server_lines *next)
{
    for (unsigned i = 0; i < r->n_lines; i++) {
        const struct server_line *line = r->lines[i];
        unsigned position = server_lines_position(next, line->conf.id);
        bool stays = position < next->n && next->list[position] == line;

        if (server_line_is_changed(line) && !stays)
            log_event(LOG_SERVER, LOG_LEVEL_NOTICE,
                      "upstream %s: server %s: settings made by an administrator are dropped: "
                      "the reload changed or removed the server's line",
                      r->upstream->name, line->conf.id);
    }
}
