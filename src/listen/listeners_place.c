/*
 * listen/listeners_place: which loop accepts from which socket.
 *
 * The sockets of an address go round the loops in use: bosses, or if there is none, workers. Each
 * address begins at another loop. When the loops in use change, sockets move.
 */
#include <errno.h>

#include "engine/loop_group.h"
#include "listen/listener_socket.h"
#include "listen/listeners_internal.h"

static struct loop_group *listeners_acceptors(const struct listeners *ls)
{
    return loop_group_in_use(ls->env.boss) > 0 || !ls->env.workers ? ls->env.boss : ls->env.workers;
}

static struct loop *listeners_place(const struct listeners *ls, const struct listeners_address *la,
                                    unsigned i)
{
    const struct loop_group *loops = listeners_acceptors(ls);

    return loop_group_at(loops, (la->first_loop + i) % loop_group_in_use(loops));
}

const char *listeners_acceptor_name(const struct listeners *ls)
{
    return listeners_acceptors(ls) == ls->env.boss ? "boss" : "worker";
}

/* A start fails if a boss cannot start, but goes on with fewer workers, as it does with bosses. */
int listeners_start_socket(struct listeners *ls, const struct listeners_address *la, unsigned i,
                           struct listener_socket *sock)
{
    const struct loop_group *loops = listeners_acceptors(ls);
    bool once = !atomic_load(&ls->started) && loops == ls->env.boss;
    unsigned tries = once ? 1 : loop_group_in_use(loops);
    int rc;

    do
        rc = listener_socket_start(sock, listeners_place(ls, la, i++));
    while (rc == -EAGAIN && --tries > 0);
    return rc;
}

void listeners_place_sockets(struct listeners *ls)
{
    if (!atomic_load(&ls->started) || ls->stopping)
        return;
    list_for_each (at, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(at, struct listeners_address, link);
        unsigned i = 0;

        list_for_each (node, &la->sockets) {
            struct listener_socket *sock = LIST_ENTRY(node, struct listener_socket, link);

            if (sock->loop)
                listener_socket_move(sock, listeners_place(ls, la, i));
            i++;
        }
    }
}
