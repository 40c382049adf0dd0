/*
 * listen/listener_socket_move: the loop of a listen socket, and how it changes.
 *
 * note: moving. The old loop stops watching in one task and lets the new loop start in the next:
 * between them the last wake-up of its waiter runs (connection_limit_remove()). The second task
 * changes sock->loop under the lock. A stop that was sent to the old loop meanwhile follows the
 * socket to the new one, behind the start there.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "engine/lock.h"
#include "engine/loop.h"
#include "limits/connection_limit.h"
#include "listen/listener.h"
#include "listen/listener_generation.h"
#include "listen/listener_socket.h"
#include "listen/listener_socket_internal.h"
#include "listen/listeners.h"
#include "net/acceptor.h"

static void listener_socket_again(struct connection_limit_waiter *w)
{
    acceptor_resume(CONTAINER_OF(w, struct listener_socket, waiter)->acceptor);
}

static void listener_socket_run_start(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, start);

    acceptor_start(sock->acceptor, loop_current());
}

/* No drop(): listeners_destroy() closes the socket. */
static const struct task_type listener_socket_start_type = {.name = "listener start",
                                                            .run = listener_socket_run_start};

int listener_socket_start(struct listener_socket *sock, struct loop *loop)
{
    struct loop *before = sock->loop;
    int rc;

    sock->loop = loop;
    connection_limit_add(sock->env->connection_limit, &sock->waiter, loop, listener_socket_again);
    rc = loop_submit(loop, LOOP_CONTROL, &sock->start);
    if (rc < 0) {
        connection_limit_remove(sock->env->connection_limit, &sock->waiter);
        sock->loop = before;
    }
    return rc;
}

/* Call under the lock. */
static void listener_socket_start_next(struct listener_socket *sock)
{
    struct loop *next = sock->next;
    int rc = listener_socket_start(sock, next);

    sock->next = NULL;
    if (rc == 0)
        return;
    log_warning("listen %s: a socket cannot move to loop %s: %s; it stays on %s",
                listener_name(atomic_load(&sock->generation)->listener), loop_name(next),
                strerror(-rc), loop_name(sock->loop));
    if (listener_socket_start(sock, sock->loop) < 0)
        sock->loop = NULL; /* this loop ends */
}

static void listener_socket_run_join(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, move);

    lock_take(sock->lock);
    if (sock->fd >= 0)
        listener_socket_start_next(sock);
    lock_release(sock->lock);
}

/* No drop(): listeners_destroy() closes the socket. */
static const struct task_type listener_socket_join_type = {.name = "listener start",
                                                           .run = listener_socket_run_join};

static void listener_socket_run_leave(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, move);

    if (sock->fd < 0)
        return;
    acceptor_leave(sock->acceptor);
    connection_limit_remove(sock->env->connection_limit, &sock->waiter);
    sock->move.type = &listener_socket_join_type;
    if (loop_submit(loop_current(), LOOP_CONTROL, &sock->move) < 0)
        task_drop(&sock->move);
}

/* No drop(): listeners_destroy() closes the socket. */
static const struct task_type listener_socket_leave_type = {.name = "listener move",
                                                            .run = listener_socket_run_leave};

void listener_socket_init_tasks(struct listener_socket *sock)
{
    sock->start.type = &listener_socket_start_type;
}

void listener_socket_move(struct listener_socket *sock, struct loop *loop)
{
    bool moves = sock->next != NULL;

    if (loop == (moves ? sock->next : sock->loop) || sock->stopping)
        return;
    sock->next = loop;
    if (moves)
        return;
    sock->move.type = &listener_socket_leave_type;
    if (loop_submit(sock->loop, LOOP_CONTROL, &sock->move) < 0)
        sock->next = NULL; /* its loop has ended */
}
