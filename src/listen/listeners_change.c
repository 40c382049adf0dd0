/* listen/listeners_change: a new configuration of the listeners: see listeners.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "handlers/fault_handler.h"
#include "limits/connection_limit.h"
#include "listen/listener_generation.h"
#include "listen/listener_internal.h"
#include "listen/listener_socket.h"
#include "listen/listeners.h"
#include "listen/listeners_internal.h"
#include "listen/socket_store.h"
#include "net/sock.h"
#include "service/session.h"

static struct listener *listeners_find(const struct listeners *ls, const char *name)
{
    for (unsigned i = 0; i < ls->n; i++)
        if (strcmp(ls->list[i]->name, name) == 0)
            return ls->list[i];
    return NULL;
}

static int listeners_prepare_listener(struct listeners_change *change,
                                      const struct listener_conf *conf,
                                      const struct listener_generation_from *from)
{
    struct listeners *ls = change->listeners;
    struct listeners_change_item *item = &change->items[change->n];
    struct listener *known = listeners_find(ls, conf->name);
    const struct admission_share share = listeners_limits_share(change, conf->limits);
    int rc = 0;

    if (known)
        item->listener = listener_hold(known);
    else
        rc = listener_create(&item->listener, conf->name, &conf->quota, ls->env.connection_limit);
    if (rc < 0)
        return rc;
    change->list[change->n] = item->listener;
    change->n++;
    return listener_generation_create(&item->generation, item->listener, conf, &share, from);
}

static int listeners_intern(struct listeners *ls, struct listeners_address **out,
                            const struct address *a)
{
    struct listeners_address *la = listeners_look_up(ls, a);

    *out = la;
    if (la)
        return 0;
    la = calloc(1, sizeof(*la));
    if (!la)
        return -ENOMEM;
    la->address = *a;
    list_init(&la->sockets);
    list_init(&la->opened);
    lock_take(&ls->lock);
    list_append(&ls->addresses, &la->link);
    la->first_loop = ls->n_addresses++;
    lock_release(&ls->lock);
    *out = la;
    return 0;
}

/*
 * Explain ${error}. Sockets opened before privileges were dropped belong to root: other users'
 * sockets cannot share their port.
 */
static const char *listeners_why(const struct listeners_address *la, int error)
{
    if (error == -ENOTSOCK)
        return "the path is another file, not a socket";
    if (error == -EADDRNOTAVAIL)
        return "Cannot assign requested address: this host does not have it (freebind = yes: it may "
               "come later)";
    if (error == -EADDRINUSE && la->n_sockets > 0)
        return "Address already in use by a socket of ours, bound as another user: upgrade instead";
    return strerror(-error);
}

static int listeners_prepare_address(struct listeners_change *change, const struct address *a,
                                     struct listener_generation *gen)
{
    const char *name = gen->listener->name;
    struct listeners_address *la;
    char text[ADDRESS_TEXT_BYTES];
    int rc = listeners_intern(change->listeners, &la, a);

    if (rc < 0)
        return rc;
    address_format(text, sizeof(text), a);
    if (la->next) {
        listeners_refuse(change, "listen %s: %s: cannot listen: listen %s has this address too",
                         name, text, la->next->listener->name);
        return -EADDRINUSE;
    }
    la->next = gen;
    rc = listeners_open_sockets(change->listeners, la, gen, change->accept_batch);
    if (rc < 0)
        listeners_refuse(change, "listen %s: %s: cannot listen: %s", name, text,
                         listeners_why(la, rc));
    return rc;
}

/* Refuse ${la} if an address is in its way (note: in the way); config/ should have found that. */
static int listeners_check_address(const struct listeners_change *change,
                                   const struct listeners_address *la)
{
    const struct listeners *ls = change->listeners;
    const struct listeners_address *other = la->in_the_way ? listeners_find_conflict(ls, la) : NULL;
    char text[2][ADDRESS_TEXT_BYTES];

    if (!other)
        return 0;
    listeners_refuse(
        change, "listen %s: %s: cannot listen: %s of listen %s is in the way",
        la->next->listener->name, address_format(text[0], sizeof(text[0]), &la->address),
        address_format(text[1], sizeof(text[1]), &other->address), other->next->listener->name);
    return -EADDRINUSE;
}

int listeners_prepare(struct listeners *ls, const struct listeners_sources *src,
                      struct listeners_change **out)
{
    const struct listener_generation_from from = {
        .sources = src, .executor = ls->env.executor, .handshakes = ls->env.handshakes};
    struct listeners_change *change =
        calloc(1, sizeof(*change) + src->n * sizeof(change->items[0]));
    int rc = 0;

    if (!change)
        return -ENOMEM;
    change->listeners = ls;
    list_init(&change->replaced);
    change->accept_batch = src->accept_batch;
    change->acceptors = src->acceptors;
    change->leave_ns = src->leave_ns;
    change->why = src->why;
    change->list = calloc(src->n + 1, sizeof(struct listener *));
    if (!change->list)
        rc = -ENOMEM;
    for (unsigned i = 0; rc == 0 && i < src->n; i++)
        rc = listeners_prepare_listener(change, &src->list[i], &from);
    for (unsigned i = 0; rc == 0 && i < src->n; i++)
        for (unsigned j = 0; rc == 0 && j < src->list[i].n_addresses; j++)
            rc = listeners_prepare_address(change, &src->list[i].addresses[j],
                                           change->items[i].generation);
    list_for_each (node, &ls->addresses)
        if (rc == 0)
            rc = listeners_check_address(change, LIST_ENTRY(node, struct listeners_address, link));
    if (rc < 0) {
        listeners_cancel(change);
        return rc;
    }
    *out = change;
    return 0;
}

void listeners_destroy_opened(struct listeners_address *la)
{
    while (!list_empty(&la->opened)) {
        struct listener_socket *sock = LIST_FIRST(&la->opened, struct listener_socket, link);

        list_remove(&sock->link);
        listener_socket_destroy(sock);
    }
    la->n_opened = 0;
    la->in_the_way = false;
}

void listeners_cancel_address(struct listeners *ls, struct listeners_address *la)
{
    listeners_destroy_opened(la);
    if (la->shared)
        (void)listeners_share(ls, la, false);
    la->next = NULL;
}

void listeners_cancel(struct listeners_change *change)
{
    struct listeners *ls = change->listeners;

    list_for_each (node, &ls->addresses)
        listeners_cancel_address(ls, LIST_ENTRY(node, struct listeners_address, link));
    for (unsigned i = 0; i < change->n; i++) {
        listener_generation_release(change->items[i].generation);
        listener_release(change->items[i].listener);
    }
    free(change->list);
    free(change);
}

static void listeners_warn_of_faults(const struct listener_generation *gen)
{
    if (fault_handler_wanted(&gen->conf.pipeline.fault))
        log_warning(
            "listen %s: fault injection is on (fault_*): connections are disturbed on purpose",
            gen->listener->name);
}

/* Log ${la} if it is new, moves to another listener, or is closed. */
static void listeners_log_address(const struct listeners_address *la)
{
    const struct listener_generation *from = la->current, *to = la->next;
    const char *namespace = NULL;
    char text[ADDRESS_TEXT_BYTES];

    address_format(text, sizeof(text), &la->address);
    if (la->address.netns != 0 && (from || to))
    namespace = (to ? to : from)->conf.socket.namespace;
    if (to && (!from || from->listener != to->listener))
        log_info("listen %s: %s on %s%s%s%s%s", to->listener->name, to->service.ops->name, text,
                 namespace ? ", namespace " : "", namespace ? namespace : "",
                 to->conf.upstream ? ", upstream " : "",
                 to->conf.upstream ? to->conf.upstream : "");
    if (from && !to)
        log_info("listen %s: %s%s%s: removed: its sockets close", from->listener->name, text,
                 namespace ? ", namespace " : "", namespace ? namespace : "");
}

static void listeners_log_change(const struct listeners_change *change)
{
    list_for_each (node, &change->listeners->addresses)
        listeners_log_address(LIST_ENTRY(node, struct listeners_address, link));
    for (unsigned i = 0; i < change->n; i++)
        listeners_warn_of_faults(change->items[i].generation);
}

static void listeners_replace(struct listeners_change *change, struct listener_generation *before)
{
    if (before)
        list_append(&change->replaced, &before->link);
}

struct listener_generation *listeners_change_find(const struct listeners_change *change,
                                                  const struct listener *l)
{
    for (unsigned i = 0; i < change->n; i++)
        if (change->items[i].listener == l)
            return change->items[i].generation;
    return NULL;
}

static void listeners_commit_generations(struct listeners_change *change)
{
    struct listeners *ls = change->listeners;
    int64_t leave_by_ns =
        change->leave_ns > 0 ? clock_add_ns(clock_now_ns(), change->leave_ns) : CLOCK_NEVER;

    for (unsigned i = 0; i < change->n; i++)
        listeners_replace(change, listener_generation_begin(change->items[i].generation));
    for (unsigned i = 0; i < ls->n; i++)
        if (!listeners_change_find(change, ls->list[i]))
            listeners_replace(change, listener_generation_end(ls->list[i], leave_by_ns));
}

/* Let ${sock} listen and accept. False: it cannot listen and is freed. */
static bool listeners_use(struct listeners *ls, const struct listeners_address *la,
                          struct listener_socket *sock)
{
    const char *name = atomic_load(&sock->generation)->listener->name;
    char text[ADDRESS_TEXT_BYTES];
    int rc = sock->bind_only ? listener_socket_listen(sock) : 0;

    address_format(text, sizeof(text), sock->address);
    if (rc < 0) {
        log_event(LOG_LISTENER, LOG_LEVEL_ERROR, "listen %s: %s: cannot listen: %s; %s", name, text,
                  strerror(-rc),
                  la->n_sockets > 0 ? "continues with fewer sockets" : "clients are refused");
        listener_socket_destroy(sock);
        return false;
    }
    rc = atomic_load(&ls->started) ? listeners_start_socket(ls, la, la->n_sockets, sock) : 0;
    if (rc < 0)
        log_error("listen %s: %s: clients are not accepted: cannot start a %s thread: %s", name,
                  text, listeners_acceptor_name(ls), strerror(-rc));
    return true;
}

void listeners_commit_opened(struct listeners *ls, struct listeners_address *la)
{
    bool started = atomic_load(&ls->started);

    list_for_each_safe (node, &la->opened) {
        struct listener_socket *sock = LIST_ENTRY(node, struct listener_socket, link);

        if (sock->bind_only && !started)
            continue;
        list_remove(&sock->link);
        la->n_opened--;
        if (!listeners_use(ls, la, sock))
            continue;
        if (socket_store_keep(ls->env.store, sock->address, sock->fd))
            sock->linked = false;
        list_append(&la->sockets, &sock->link);
        la->n_sockets++;
        la->file = sock->file;
        ls->env.opened(ls->env.cookie);
    }
    la->in_the_way = false;
}

/* Close or hide the sockets of ${la}. Returns for how many the caller must call env.stopped(). */
static unsigned listeners_close(struct listeners_change *change, struct listeners_address *la)
{
    struct listeners *ls = change->listeners;
    bool ours = la->n_sockets > 0 && socket_store_forget(ls->env.store, &la->address);
    unsigned n_closed = 0;

    while (!list_empty(&la->sockets)) {
        struct listener_socket *sock = LIST_FIRST(&la->sockets, struct listener_socket, link);
        bool hidden = ours && !address_is_unix(&la->address) && sock_hide(sock->fd);
        struct listener_generation *heir =
            listeners_heir(ls, la, atomic_load(&sock->generation)->listener);

        sock->linked = ours;
        list_remove(&sock->link);
        if (hidden && heir && sock->loop && sock_share_port(sock->fd, true) == 0)
            listeners_hide(ls, sock, heir, change->accept_batch);
        else
            n_closed += listeners_stop_socket(ls, sock);
    }
    la->n_sockets = 0;
    return n_closed;
}

static void listeners_give(struct listeners_change *change, struct listeners_address *la)
{
    list_for_each (node, &la->sockets)
        listener_socket_give(LIST_ENTRY(node, struct listener_socket, link), la->next,
                             change->accept_batch);
}

static void listeners_commit_address(struct listeners_change *change, struct listeners_address *la)
{
    struct listeners *ls = change->listeners;

    if (ls->stopping) {
        listeners_destroy_opened(la);
    } else if (la->next) {
        listeners_give(change, la);
        listeners_commit_opened(ls, la);
    }
    la->current = la->next;
    la->next = NULL;
    la->shared = false;
}

/*
 * Open new addresses before old ones close: a wildcard serves the clients of the address that it
 * replaces. Returns for how many sockets the caller must call env.stopped().
 */
static unsigned listeners_commit_addresses(struct listeners_change *change)
{
    struct listeners *ls = change->listeners;
    unsigned n_closed = 0;

    list_for_each (node, &ls->addresses)
        listeners_commit_address(change, LIST_ENTRY(node, struct listeners_address, link));
    list_for_each (node, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(node, struct listeners_address, link);

        if (!la->current && !ls->stopping)
            n_closed += listeners_close(change, la);
    }
    return n_closed + listeners_commit_hidden(change);
}

/* An administrator's max_connections lasts until the configured value changes. */
static struct quota_conf listeners_quota(struct listener *ls, const struct listener_generation *gen)
{
    struct quota_conf quota = gen->conf.quota;

    if (quota.max_connections != ls->admin_max.configured)
        ls->admin_max.is_set = false;
    if (ls->admin_max.is_set)
        quota.max_connections = ls->admin_max.max;
    return quota;
}

/* Set the limits. This wakes waiting sockets: their new listener may have a higher limit. */
static void listeners_commit_limits(struct listeners_change *change)
{
    struct connection_limit *connection_limit = change->listeners->env.connection_limit;

    for (unsigned i = 0; i < change->n; i++) {
        struct listeners_change_item *item = &change->items[i];
        struct quota_conf quota = listeners_quota(item->listener, item->generation);

        connection_limit_set(connection_limit, &item->listener->quota, &quota);
    }
}

static void listeners_commit_list(struct listeners_change *change)
{
    struct listeners *ls = change->listeners;
    struct listener **before = ls->list;
    unsigned n = ls->n;

    ls->list = change->list;
    ls->n = change->n;
    for (unsigned i = 0; i < n; i++)
        listener_release(before[i]);
    free(before);
}

void listeners_commit(struct listeners_change *change)
{
    struct listeners *ls = change->listeners;
    unsigned n_closed;

    MUST(!atomic_load(&ls->started) || loop_is_current(ls->env.control));
    listeners_log_change(change);
    lock_take(&ls->lock);
    listeners_commit_generations(change);
    n_closed = listeners_commit_addresses(change);
    listeners_place_sockets(ls);
    listeners_commit_limits(change);
    listeners_commit_list(change);
    ls->accept_batch = change->accept_batch;
    ls->acceptors = change->acceptors;
    lock_release(&ls->lock);
    while (n_closed-- > 0)
        ls->env.stopped(ls->env.cookie);
    if (!list_empty(&change->replaced))
        ls->env.replaced(ls->env.cookie, &change->replaced);
    free(change);
}
