/*
 * upstream/upstream_in_use: which servers of an upstream are in use, and the log line when others
 * come into use. The choice itself: balance/balancer.
 */
#include <stdio.h>
#include <string.h>

#include "balance/balancer.h"
#include "base/text.h"
#include "engine/loop.h"
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

/* Main, before start, only continues what another process has logged. */
static void upstream_in_use_tell(struct upstream *up, const struct server_set *set)
{
    struct upstream_in_use *u = &up->in_use;
    uint64_t n_moves = atomic_load_explicit(&up->group.n_moves, memory_order_relaxed);
    char names[UPSTREAM_IN_USE_BYTES], before[UPSTREAM_IN_USE_BYTES];
    bool has_moved, are_backups = upstream_in_use_names(set, names);

    if (names[0] == '\0')
        return; /* none is fit: the last ones may return */
    lock_take(&u->lock);
    has_moved = u->n_moves != n_moves;
    u->n_moves = n_moves;
    if (are_backups || (has_moved && u->are_backups))
        atomic_store(&u->backups_are_over, !are_backups);
    u->are_backups = are_backups;
    memcpy(before, u->names, sizeof(before));
    memcpy(u->names, names, sizeof(names));
    lock_release(&u->lock);
    if (has_moved && before[0] != '\0' && loop_current())
        log_notice("upstream %s: servers in use: %s; before: %s", up->name, names, before);
}

void upstream_in_use_begin(struct upstream *up, struct server_set *set)
{
    for (unsigned i = 0; i < set->n; i++) {
        struct upstream_server *server = set->servers[i];

        if (server->was_in_use)
            endpoint_put_in_use(&server->endpoint);
        server->was_in_use = false;
    }
    balancer_settle(set->balancer);
    upstream_in_use_tell(up, set);
}

/* A process that starts has no set yet. */
void upstream_in_use_look(struct upstream *up)
{
    struct server_set *set;

    if (!atomic_load(&up->membership.set))
        return;
    set = membership_hold_set(&up->membership);
    balancer_settle(set->balancer);
    upstream_in_use_tell(up, set);
    membership_release_set(set);
}

void upstream_in_use_continue(struct upstream *up, struct upstream_server *server)
{
    if (!server->is_listed) {
        server->was_in_use = true;
        return;
    }
    endpoint_put_in_use(&server->endpoint);
    upstream_in_use_look(up);
}
