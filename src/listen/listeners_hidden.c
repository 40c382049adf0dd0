/* listen/listeners_hidden: sockets of replaced addresses (note: hidden in listeners_internal.h). */
#include "base/clock.h"
#include "engine/loop.h"
#include "listen/listener_generation.h"
#include "listen/listener_socket.h"
#include "listen/listeners_internal.h"
#include "net/sock.h"

bool listeners_stop_socket(struct listeners *ls, struct listener_socket *sock)
{
    list_append(&ls->closing, &sock->link);
    return listener_socket_stop(sock);
}

/* Call under the lock. */
static bool listeners_end_hidden(struct listeners *ls, struct listener_socket *sock)
{
    list_remove(&sock->link);
    ls->n_hidden--;
    return listeners_stop_socket(ls, sock);
}

static struct listener_socket *listeners_first_hidden(const struct listeners *ls)
{
    return list_empty(&ls->hidden) ? NULL : LIST_FIRST(&ls->hidden, struct listener_socket, link);
}

/* Call under the lock. */
static void listeners_arm_hidden(struct listeners *ls)
{
    const struct listener_socket *first = listeners_first_hidden(ls);

    if (ls->stopping || !atomic_load(&ls->started))
        return;
    loop_cancel(ls->env.control, &ls->hidden_end);
    if (first)
        loop_schedule(ls->env.control, &ls->hidden_end, first->hidden_until_ns - clock_now_ns());
}

static void listeners_run_hidden_end(struct task *t)
{
    struct listeners *ls = TIMER_OWNER(t, struct listeners, hidden_end);
    int64_t now_ns = clock_now_ns();
    struct listener_socket *first;
    unsigned n_closed = 0;

    lock_take(&ls->lock);
    while (!ls->stopping && (first = listeners_first_hidden(ls)) &&
           first->hidden_until_ns <= now_ns)
        n_closed += listeners_end_hidden(ls, first);
    listeners_arm_hidden(ls);
    lock_release(&ls->lock);
    while (n_closed-- > 0)
        ls->env.stopped(ls->env.cookie);
}

/* No drop(): listeners_stop() closes the sockets. */
static const struct task_type listeners_hidden_end_type = {.name = "close hidden sockets",
                                                           .run = listeners_run_hidden_end};

void listeners_hide_init(struct listeners *ls)
{
    list_init(&ls->hidden);
    timer_init(&ls->hidden_end, &listeners_hidden_end_type);
}

struct listener_generation *listeners_heir(const struct listeners *ls,
                                           const struct listeners_address *la,
                                           const struct listener *of)
{
    list_for_each (node, &ls->addresses) {
        const struct listeners_address *other = LIST_ENTRY(node, struct listeners_address, link);

        if (other->current && other->current->listener == of &&
            address_conflicts(&other->address, &la->address, false))
            return other->current;
    }
    return NULL;
}

void listeners_hide(struct listeners *ls, struct listener_socket *sock,
                    struct listener_generation *heir, unsigned accept_batch)
{
    listener_socket_give(sock, heir, accept_batch);
    sock->hidden_until_ns = clock_add_ns(clock_now_ns(), LISTENERS_HIDDEN_NS);
    list_append(&ls->hidden, &sock->link);
    ls->n_hidden++;
}

unsigned listeners_commit_hidden(struct listeners_change *change)
{
    struct listeners *ls = change->listeners;
    unsigned n_closed = 0;

    if (ls->stopping)
        return 0;
    while (ls->n_hidden > LISTENERS_HIDDEN_MAX)
        n_closed += listeners_end_hidden(ls, listeners_first_hidden(ls));
    list_for_each_safe (node, &ls->hidden) {
        struct listener_socket *sock = LIST_ENTRY(node, struct listener_socket, link);
        struct listener_generation *heir =
            listeners_change_find(change, atomic_load(&sock->generation)->listener);

        if (heir)
            listener_socket_give(sock, heir, change->accept_batch);
        else
            n_closed += listeners_end_hidden(ls, sock);
    }
    listeners_arm_hidden(ls);
    return n_closed;
}

bool listeners_has_hidden(struct listeners *ls, const struct address *a)
{
    bool found = false;

    lock_take(&ls->lock);
    list_for_each (node, &ls->hidden) {
        const struct listener_socket *sock = LIST_ENTRY(node, struct listener_socket, link);

        found |= address_equal(sock->address, a) || address_conflicts(sock->address, a, false);
    }
    lock_release(&ls->lock);
    return found;
}
