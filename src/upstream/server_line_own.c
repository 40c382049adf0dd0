#include "upstream/server_line.h"

#include <stdlib.h>
#include <string.h>

static const struct server_line_admin nothing = {.state = SERVER_LINE_AS_CONFIGURED};

enum server_line_state server_line_ready(const struct server_line *line, bool one)
{
    bool is_ready = one ? line->admin.state <= SERVER_LINE_READY : !line->conf.disabled;

    return is_ready ? SERVER_LINE_AS_CONFIGURED : SERVER_LINE_READY;
}

int server_line_plain_weight(const struct server_line *line, bool one)
{
    if (one && line->admin.has_weight)
        return (int)line->admin.weight;
    return line->conf.names == UPSTREAM_SERVICE ? -1 : (int)line->conf.weight;
}

static bool server_line_own_add(struct server_line_own *own, const char *name,
                                const struct server_line_admin *admin)
{
    struct server_line_own_entry *entry = &own->list[own->n];

    if (admin->state == SERVER_LINE_AS_CONFIGURED && !admin->has_weight && !admin->has_max)
        return true;
    entry->admin = *admin;
    entry->name = strdup(name);
    own->n += entry->name != NULL;
    return entry->name != NULL;
}

static struct server_line_own *server_line_own_alloc(const struct server_line_own *own)
{
    size_t n = own ? own->n : 0;

    return calloc(1, sizeof(*own) + (n + 1) * sizeof(own->list[0]));
}

struct server_line_own *server_line_own_with(const struct server_line_own *own, const char *name,
                                             const struct server_line_admin *admin)
{
    struct server_line_own *next = server_line_own_alloc(own);
    bool ok = next && server_line_own_add(next, name, admin);

    for (unsigned i = 0; ok && own && i < own->n; i++)
        if (strcmp(own->list[i].name, name) != 0)
            ok = server_line_own_add(next, own->list[i].name, &own->list[i].admin);
    if (ok)
        return next;
    server_line_own_free(next);
    return NULL;
}

struct server_line_own *server_line_own_without(const struct server_line_own *own, unsigned forget)
{
    struct server_line_own *next = server_line_own_alloc(own);
    bool ok = next != NULL;

    for (unsigned i = 0; ok && own && i < own->n; i++) {
        struct server_line_admin admin = own->list[i].admin;

        if (forget & SERVER_LINE_OWN_STATES)
            admin.state = SERVER_LINE_AS_CONFIGURED;
        if (forget & SERVER_LINE_OWN_WEIGHTS)
            admin.has_weight = admin.has_max = false;
        ok = server_line_own_add(next, own->list[i].name, &admin);
    }
    if (ok)
        return next;
    server_line_own_free(next);
    return NULL;
}

void server_line_own_free(struct server_line_own *own)
{
    for (unsigned i = 0; own && i < own->n; i++)
        free(own->list[i].name);
    free(own);
}

struct server_line_admin server_line_own_get(const struct server_line *line, const char *name)
{
    for (unsigned i = 0; line->own && i < line->own->n; i++)
        if (strcmp(line->own->list[i].name, name) == 0)
            return line->own->list[i].admin;
    return nothing;
}

struct server_line_admin server_line_own_admin(const struct server_line *line, const char *name)
{
    struct server_line_admin admin = line->admin, own = server_line_own_get(line, name);

    if (own.state != SERVER_LINE_AS_CONFIGURED)
        admin.state = own.state;
    if (own.has_weight) {
        admin.has_weight = true;
        admin.weight = own.weight;
    }
    if (own.has_max) {
        admin.has_max = true;
        admin.max_connections = own.max_connections;
    }
    return admin;
}

bool server_line_own_is_disabled(const struct server_line *line, const char *name)
{
    const struct server_line_admin admin = server_line_own_admin(line, name);

    return server_line_admin_is_disabled(&admin, &line->conf);
}

unsigned server_line_own_weight(const struct server_line *line, const char *name, unsigned found)
{
    const struct server_line_admin admin = server_line_own_admin(line, name);

    return server_line_admin_weight(&admin, &line->conf, found);
}

unsigned server_line_own_max(const struct server_line *line, const char *name)
{
    const struct server_line_admin admin = server_line_own_admin(line, name);

    return server_line_admin_max(&admin, &line->conf);
}
