/* listen/listeners_sockets: opens the sockets of an address. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "listen/listener_generation.h"
#include "listen/listener_internal.h"
#include "listen/listener_socket.h"
#include "listen/listeners_internal.h"
#include "listen/socket_store.h"
#include "net/descriptor_budget.h"
#include "net/sock.h"

/* Longest wait until a loop has closed a socket, which takes a turn. */
#define LISTENERS_CLOSING_NS (1 * NS_PER_S)

static bool listeners_closing(struct listeners *ls)
{
    bool closing;

    lock_take(&ls->lock);
    closing = !list_empty(&ls->closing);
    lock_release(&ls->lock);
    return closing;
}

static int listeners_open_socket(struct listeners *ls, struct listener_socket **out,
                                 const struct listener_socket_conf *conf,
                                 struct listener_generation *gen)
{
    int64_t until_ns = clock_now_ns() + LISTENERS_CLOSING_NS;
    bool closing;
    int rc;

    do {
        closing = listeners_closing(ls); /* read before the try: the socket may close meanwhile */
        rc = listener_socket_open(out, conf, gen);
    } while (rc == -EADDRINUSE && closing && clock_now_ns() < until_ns && usleep(1000) == 0);
    return rc;
}

static int listeners_open(struct listeners *ls, struct listeners_address *la,
                          struct listener_generation *gen, unsigned accept_batch, bool bind_only)
{
    struct listener_socket_conf conf = {.env = &ls->env,
                                        .lock = &ls->lock,
                                        .address = &la->address,
                                        .accept_batch = accept_batch,
                                        .bind_only = bind_only || la->in_the_way,
                                        .share_port = la->in_the_way ||
                                                      listeners_has_hidden(ls, &la->address)};
    struct listener_socket *sock;
    int rc = 0;

    if (atomic_load(&ls->started) && ls->env.descriptors &&
        !descriptor_budget_left(ls->env.descriptors, 1))
        rc = -EMFILE;
    if (rc == 0)
        rc = listeners_open_socket(ls, &sock, &conf, gen);
    if (rc < 0)
        return rc;
    list_append(&la->opened, &sock->link);
    la->n_opened++;
    return 0;
}

static bool listeners_shares(const struct listener_generation *gen)
{
    return gen && gen->sockets > 1;
}

int listeners_share(struct listeners *ls, struct listeners_address *la, bool shared)
{
    int rc = 0;

    if (listeners_shares(la->current))
        return 0;
    lock_take(&ls->lock);
    list_for_each (node, &la->sockets)
        if (rc == 0 && !ls->stopping)
            rc = sock_share_port(LIST_ENTRY(node, struct listener_socket, link)->fd, shared);
    lock_release(&ls->lock);
    la->shared = shared;
    return rc;
}

/*
 * Log that ${la} has fewer sockets than it should. Usual cause: the sockets of a .socket unit, or
 * opened before privileges were dropped, belong to root, and only sockets of the same user can
 * share an address. Workers without a socket then get clients from the others.
 */
static void listeners_warn_of_fewer(const struct listeners_address *la,
                                    const struct listener_generation *gen, int error)
{
    char text[ADDRESS_TEXT_BYTES];

    log_warning("listen %s: %s: sockets: %u, %s %u: cannot bind more: %s", gen->listener->name,
                address_format(text, sizeof(text), &la->address), la->n_sockets + la->n_opened,
                gen->sockets > gen->conf.reuseport ? "workers:" : "reuseport =", gen->sockets,
                strerror(-error));
}

/* Share the ports of the addresses in the way of ${la}; see note: in the way. */
static int listeners_share_conflicting(struct listeners *ls, struct listeners_address *la)
{
    int rc = 0;

    list_for_each (node, &ls->addresses) {
        struct listeners_address *other = LIST_ENTRY(node, struct listeners_address, link);

        if (other == la || other->n_sockets == 0 ||
            !address_conflicts(&other->address, &la->address, false))
            continue;
        la->in_the_way = true;
        if (rc == 0)
            rc = listeners_share(ls, other, true);
    }
    return rc;
}

const struct listeners_address *listeners_find_conflict(const struct listeners *ls,
                                                        const struct listeners_address *la)
{
    list_for_each (node, &ls->addresses) {
        const struct listeners_address *other = LIST_ENTRY(node, struct listeners_address, link);
        bool shared = listeners_shares(la->next) && listeners_shares(other->next);

        if (other != la && other->next && address_conflicts(&other->address, &la->address, shared))
            return other;
    }
    return NULL;
}

unsigned listeners_want(const struct listeners_address *la, const struct listener_generation *gen)
{
    return address_is_unix(&la->address) ? 1 : gen->sockets;
}

int listeners_open_sockets(struct listeners *ls, struct listeners_address *la,
                           struct listener_generation *gen, unsigned accept_batch)
{
    unsigned n = listeners_want(la, gen);
    unsigned inherited = socket_store_count(ls->env.store, &la->address);
    int rc = 0;

    if (inherited > 0 && socket_store_is_shared(ls->env.store))
        n = inherited; /* listeners_configure_inherited() opens the others */
    if (la->n_sockets > 0 && la->n_sockets < n)
        rc = listeners_share(ls, la, true);
    if (rc == 0 && la->n_sockets == 0)
        rc = listeners_share_conflicting(ls, la);
    while (rc == 0 && la->n_sockets + la->n_opened < (inherited > n ? inherited : n))
        rc = listeners_open(ls, la, gen, accept_batch, la->n_sockets > 0 || inherited > 0);
    if ((rc == -EADDRINUSE || rc == -EACCES) &&
        la->n_sockets + la->n_opened >= (inherited > 0 ? inherited : gen->conf.reuseport)) {
        listeners_warn_of_fewer(la, gen, rc);
        rc = 0;
    }
    return rc;
}

static void listeners_configure_socket(struct listener_socket *sock)
{
    char text[ADDRESS_TEXT_BYTES];
    int rc = listener_socket_configure(sock);

    if (rc < 0)
        log_warning("listen %s: %s: the inherited socket keeps its old options: %s",
                    atomic_load(&sock->generation)->listener->name,
                    address_format(text, sizeof(text), sock->address), strerror(-rc));
}

void listeners_configure_inherited(struct listeners *ls)
{
    list_for_each (at, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(at, struct listeners_address, link);
        int rc;

        if (!la->current || ls->stopping)
            continue;
        list_for_each (node, &la->sockets)
            listeners_configure_socket(LIST_ENTRY(node, struct listener_socket, link));
        rc = listeners_open_sockets(ls, la, la->current, ls->accept_batch);
        if (rc < 0)
            listeners_warn_of_fewer(la, la->current, rc);
        lock_take(&ls->lock);
        listeners_commit_opened(ls, la);
        lock_release(&ls->lock);
    }
}

void listeners_refuse(const struct listeners_change *change, const char *format, ...)
{
    char text[LISTENERS_WHY_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_error("%s", text);
    if (change->why)
        memcpy(change->why, text, sizeof(text));
}
