/*
 * upstream/upstream_in_use: which servers of an upstream are in use, and the log line when others
 * come into use. The choice itself: balance/balancer.
 */
#include <stdio.h>
#include <string.h>

#include "balance/balancer.h"
#include "upstream/upstream_internal.h"

/* Names in a log line; the others are counted. */
#define UPSTREAM_IN_USE_NAMES 4

void upstream_in_use_init(struct upstream *up)
{
    lock_init(&up->group.lock);
    lock_init(&up->in_use.lock);
}

void upstream_in_use_close(struct upstream *up)
{
    lock_close(&up->in_use.lock);
    lock_close(&up->group.lock);
}

bool upstream_in_use_is(const struct upstream_server *server)
{
    return endpoint_is_used(&server->endpoint) && endpoint_is_in_use(&server->endpoint) &&
           (endpoint_load(&server->endpoint) & ENDPOINT_UNFIT) == 0;
}

/* Write the names of the servers in use to ${text}, of UPSTREAM_IN_USE_BYTES. Are all backups? */
static bool upstream_in_use_names(const struct server_set *set, char *text)
{
    bool are_backups = true;
    size_t len = 0;
    unsigned n = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < set->n; i++) {
        const struct upstream_server *server = set->servers[i];

        if (!upstream_in_use_is(server))
            continue;
        are_backups &= atomic_load(&server->is_backup);
        if (++n > UPSTREAM_IN_USE_NAMES || len >= UPSTREAM_IN_USE_BYTES)
            continue;
        len +=
            (size_t)snprintf(text + len, UPSTREAM_IN_USE_BYTES - len, "%s%s%s", n > 1 ? ", " : "",
                             server->name, atomic_load(&server->is_backup) ? " (backup)" : "");
    }
    if (n > UPSTREAM_IN_USE_NAMES && len < UPSTREAM_IN_USE_BYTES)
        snprintf(text + len, UPSTREAM_IN_USE_BYTES - len, " and %u more",
                 n - UPSTREAM_IN_USE_NAMES);
    return are_backups;
}

/* With ${continues}, this is what another process has counted and logged. */
static void upstream_in_use_tell(struct upstream *up, const struct server_set *set, bool continues)
{
    struct upstream_in_use *u = &up->in_use;
    char names[UPSTREAM_IN_USE_BYTES], before[UPSTREAM_IN_USE_BYTES];
    bool has_moved, are_backups;
    uint64_t n_moves;

    lock_take(&u->lock);
    n_moves = atomic_load_explicit(&up->group.n_moves, memory_order_relaxed);
    are_backups = upstream_in_use_names(set, names);
    if (names[0] == '\0') { /* none is fit: the last ones may return */
        lock_release(&u->lock);
        return;
    }
    has_moved = !continues && u->n_moves != n_moves;
    if (has_moved)
        atomic_fetch_add_explicit(&u->changes, n_moves - u->n_moves, memory_order_relaxed);
    u->n_moves = n_moves;
    if (are_backups || (has_moved && u->are_backups))
        atomic_store(&u->backups_are_over, !are_backups);
    u->are_backups = are_backups;
    memcpy(before, u->names, sizeof(before));
    memcpy(u->names, names, sizeof(names));
    lock_release(&u->lock);
    if (has_moved && before[0] != '\0')
        log_event(LOG_UPSTREAM, LOG_LEVEL_NOTICE, "upstream %s: servers in use: %s; before: %s",
                  up->name, names, before);
}

/* The process before may have had other levels, and so servers in use that have two here. */
static void upstream_in_use_put(struct upstream *up, struct upstream_server *server)
{
    endpoint_put_in_use(&server->endpoint, !up->in_use.is_continued);
    up->in_use.is_continued = true;
}

void upstream_in_use_begin(struct upstream *up, struct server_set *set)
{
    bool continues = false;

    for (unsigned i = 0; i < set->n; i++) {
        struct upstream_server *server = set->servers[i];

        if (server->was_in_use)
            upstream_in_use_put(up, server);
        continues |= server->was_in_use;
        server->was_in_use = false;
    }
    balancer_settle(set->balancer);
    upstream_in_use_tell(up, set, continues);
}

static void upstream_in_use_look_again(struct upstream *up, bool continues)
{
    struct server_set *set;

    if (!atomic_load(&up->membership.set))
        return; /* a process that starts */
    set = membership_hold_set(&up->membership);
    balancer_settle(set->balancer);
    upstream_in_use_tell(up, set, continues);
    membership_release_set(set);
}

void upstream_in_use_look(struct upstream *up)
{
    upstream_in_use_look_again(up, false);
}

void upstream_in_use_continue(struct upstream *up, struct upstream_server *server)
{
    if (!server->is_listed) {
        server->was_in_use = true;
        return;
    }
    upstream_in_use_put(up, server);
    upstream_in_use_look_again(up, true);
}
