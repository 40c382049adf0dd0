#include "listen/listeners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "listen/listener_generation.h"
#include "listen/listener_internal.h"
#include "listen/listener_socket.h"
#include "listen/listeners_internal.h"
#include "listen/socket_store.h"
#include "net/sock.h"
#include "stats/counters_set.h"

int listeners_create(struct listeners **out, const struct listeners_env *env)
{
    struct listeners *ls = calloc(1, sizeof(*ls));

    if (!ls)
        return -ENOMEM;
    ls->env = *env;
    lock_init(&ls->lock);
    list_init(&ls->addresses);
    list_init(&ls->closing);
    listeners_hide_init(ls);
    *out = ls;
    return 0;
}

static int listeners_start_address(struct listeners *ls, struct listeners_address *la)
{
    unsigned i = 0;
    int rc = 0;

    list_for_each (node, &la->sockets)
        if (rc == 0)
            rc =
                listeners_start_socket(ls, la, i++, LIST_ENTRY(node, struct listener_socket, link));
    return rc;
}

int listeners_start(struct listeners *ls)
{
    int rc = 0;

    lock_take(&ls->lock);
    list_for_each (at, &ls->addresses)
        if (rc == 0)
            rc = listeners_start_address(ls, LIST_ENTRY(at, struct listeners_address, link));
    atomic_store(&ls->started, true);
    list_for_each (at, &ls->addresses)
        if (rc == 0)
            listeners_commit_opened(ls, LIST_ENTRY(at, struct listeners_address, link));
    lock_release(&ls->lock);
    if (rc < 0)
        log_error("cannot start a %s thread: %s", listeners_acceptor_name(ls), strerror(-rc));
    return rc;
}

/* Under the lock. Returns for how many sockets the caller must call env.stopped(). */
static unsigned listeners_close_list(struct list *sockets, bool leave)
{
    unsigned n_closed = 0;

    list_for_each (node, sockets) {
        struct listener_socket *sock = LIST_ENTRY(node, struct listener_socket, link);

        if (sock->stopping)
            continue;
        sock->leaving = leave;
        n_closed += listener_socket_stop(sock);
    }
    return n_closed;
}

static void listeners_close_all(struct listeners *ls, bool leave)
{
    unsigned n_closed;

    lock_take(&ls->lock);
    ls->stopping = true;
    n_closed = listeners_close_list(&ls->hidden, false);
    list_for_each (at, &ls->addresses)
        n_closed +=
            listeners_close_list(&LIST_ENTRY(at, struct listeners_address, link)->sockets, leave);
    lock_release(&ls->lock);
    while (n_closed-- > 0)
        ls->env.stopped(ls->env.cookie);
}

/* End pauses, so that their loops also accept the paused clients in the kernel's queues. */
static void listeners_open_holds(struct listeners *ls)
{
    lock_take(&ls->lock);
    for (unsigned i = 0; i < ls->n; i++)
        hold_open(&ls->list[i]->hold);
    lock_release(&ls->lock);
}

void listeners_stop(struct listeners *ls)
{
    listeners_open_holds(ls);
    listeners_close_all(ls, false);
}

void listeners_leave(struct listeners *ls)
{
    listeners_close_all(ls, true);
}

static void listeners_keep_address(struct listeners *ls, struct listeners_address *la)
{
    list_for_each (node, &la->sockets) {
        struct listener_socket *sock = LIST_ENTRY(node, struct listener_socket, link);

        sock->linked = !socket_store_keep(ls->env.store, sock->address, sock->fd);
    }
}

void listeners_keep(struct listeners *ls)
{
    lock_take(&ls->lock);
    list_for_each (at, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(at, struct listeners_address, link);

        if (!ls->stopping)
            listeners_keep_address(ls, la);
        else if (socket_store_forget(ls->env.store, &la->address))
            listener_socket_unlink(&la->file, &la->address);
    }
    lock_release(&ls->lock);
    if (socket_store_is_shared(ls->env.store))
        listeners_configure_inherited(ls);
}

static void listeners_copy_descriptors(struct listeners *ls, struct listeners_descriptor *list)
{
    list_for_each (at, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(at, struct listeners_address, link);

        list_for_each (node, &la->sockets)
            *list++ = (struct listeners_descriptor){
                .fd = LIST_ENTRY(node, struct listener_socket, link)->fd, .address = la->address};
    }
}

int listeners_descriptors(struct listeners *ls, struct listeners_descriptor **out, unsigned *n)
{
    unsigned sockets = listeners_sockets(ls);
    struct listeners_descriptor *list = calloc(sockets + 1, sizeof(*list));

    if (!list)
        return -ENOMEM;
    lock_take(&ls->lock);
    listeners_copy_descriptors(ls, list);
    lock_release(&ls->lock);
    *out = list;
    *n = sockets;
    return 0;
}

unsigned listeners_sockets(struct listeners *ls)
{
    unsigned n = 0;

    lock_take(&ls->lock);
    list_for_each (at, &ls->addresses)
        n += LIST_ENTRY(at, struct listeners_address, link)->n_sockets;
    lock_release(&ls->lock);
    return n;
}

unsigned listeners_sockets_wanted(struct listeners *ls)
{
    unsigned n = 0;

    lock_take(&ls->lock);
    list_for_each (at, &ls->addresses) {
        const struct listeners_address *la = LIST_ENTRY(at, struct listeners_address, link);
        unsigned wanted = la->current ? listeners_want(la, la->current) : 0;

        n += la->n_sockets > wanted ? la->n_sockets : wanted;
    }
    lock_release(&ls->lock);
    return n;
}

static struct listener_generation *listeners_hold(struct listeners *ls, unsigned i)
{
    struct listener_generation *gen = NULL;

    lock_take(&ls->lock);
    if (i < ls->n)
        gen = listener_generation_hold(atomic_load(&ls->list[i]->current));
    lock_release(&ls->lock);
    return gen;
}

struct listener_generation **listeners_hold_all(struct listeners *ls, unsigned *n)
{
    struct listener_generation **list;

    *n = 0;
    lock_take(&ls->lock);
    list = calloc((size_t)ls->n + 1, sizeof(struct listener_generation *));
    for (unsigned i = 0; list && i < ls->n; i++) {
        list[*n] = listener_generation_hold(atomic_load(&ls->list[i]->current));
        *n += list[*n] != NULL;
    }
    lock_release(&ls->lock);
    return list;
}

struct listeners_address *listeners_look_up(struct listeners *ls, const struct address *a)
{
    list_for_each (node, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(node, struct listeners_address, link);

        if (address_equal(&la->address, a))
            return la;
    }
    return NULL;
}

const struct address *listeners_find_address(struct listeners *ls, const struct address *a)
{
    const struct listeners_address *la;

    lock_take(&ls->lock);
    la = listeners_look_up(ls, a);
    lock_release(&ls->lock);
    return la ? &la->address : NULL;
}

struct listener *listeners_lookup(struct listeners *ls, const char *name)
{
    struct listener *found = NULL;

    lock_take(&ls->lock);
    for (unsigned i = 0; i < ls->n && !found; i++)
        if (strcmp(ls->list[i]->name, name) == 0)
            found = listener_hold(ls->list[i]);
    lock_release(&ls->lock);
    return found;
}

/* Let ${ls} use ${max}. The main thread may read ls->admin_max meanwhile, under ${lock}. */
static void listeners_use_max(struct listener *ls, const struct listener_admin_max *max,
                              struct lock *lock)
{
    struct quota_conf quota = atomic_load(&ls->current)->conf.quota;

    lock_take(lock);
    ls->admin_max = *max;
    ls->admin_max.configured = quota.max_connections;
    lock_release(lock);
    if (max->is_set)
        quota.max_connections = max->max;
    connection_limit_set(ls->connection_limit, &ls->quota, &quota);
}

static bool listeners_is_owner(const struct listeners *ls)
{
    return loop_is_current(ls->env.control) || loop_state(ls->env.control) == LOOP_NOT_STARTED;
}

int listeners_set_max(struct listeners *ls, const char *name, unsigned max)
{
    struct listener_admin_max set = {.is_set = true, .max = max};

    MUST(listeners_is_owner(ls));
    for (unsigned i = 0; i < ls->n; i++)
        if (strcmp(ls->list[i]->name, name) == 0) {
            listeners_use_max(ls->list[i], &set, &ls->lock);
            return 0;
        }
    return -ENOENT;
}

void listeners_reset_max(struct listeners *ls)
{
    const struct listener_admin_max none = {.is_set = false};

    MUST(listeners_is_owner(ls));
    for (unsigned i = 0; i < ls->n; i++)
        if (ls->list[i]->admin_max.is_set)
            listeners_use_max(ls->list[i], &none, &ls->lock);
}

void listeners_each_max(struct listeners *ls,
                        void (*visit)(void *cookie, const struct listeners_max *max), void *cookie)
{
    lock_take(&ls->lock);
    for (unsigned i = 0; i < ls->n; i++) {
        const struct listener_admin_max *max = &ls->list[i]->admin_max;

        if (max->is_set)
            visit(cookie, &(struct listeners_max){ls->list[i]->name, max->max, max->configured});
    }
    lock_release(&ls->lock);
}

void listeners_write_state(struct listeners *ls, FILE *f)
{
    struct listener_generation *gen;
    struct counters_set set;

    for (unsigned i = 0; (gen = listeners_hold(ls, i)); i++) {
        fprintf(f, "listen %s", gen->listener->name);
        listener_generation_counters(gen, &set);
        counters_set_write(&set, f);
        fputc('\n', f);
        listener_generation_release(gen);
    }
}

void listeners_continue(struct listeners *ls, const char *name, struct counters_report *report)
{
    struct listener_generation *gen;
    struct counters_set set;
    bool found = false;

    for (unsigned i = 0; (gen = listeners_hold(ls, i)); i++) {
        if (strcmp(gen->listener->name, name) == 0) {
            listener_generation_counters(gen, &set);
            counters_set_report(&set, &gen->listener->counters, report);
            found = true;
        }
        listener_generation_release(gen);
    }
    if (!found)
        report->of = 0;
}

static void listeners_destroy_sockets(struct list *sockets)
{
    while (!list_empty(sockets)) {
        struct listener_socket *sock = LIST_FIRST(sockets, struct listener_socket, link);

        list_remove(&sock->link);
        listener_socket_destroy(sock);
    }
}

void listeners_destroy(struct listeners *ls)
{
    if (!ls)
        return;
    listeners_destroy_sockets(&ls->closing);
    listeners_destroy_sockets(&ls->hidden);
    while (!list_empty(&ls->addresses)) {
        struct listeners_address *la = LIST_FIRST(&ls->addresses, struct listeners_address, link);

        listeners_destroy_sockets(&la->opened);
        listeners_destroy_sockets(&la->sockets);
        list_remove(&la->link);
        free(la);
    }
    for (unsigned i = 0; i < ls->n; i++) {
        listener_generation_release(listener_generation_end(ls->list[i], CLOCK_NEVER));
        listener_release(ls->list[i]);
    }
    lock_close(&ls->lock);
    free(ls->list);
    free(ls);
}
