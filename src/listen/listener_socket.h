/*
 * listen/listener_socket: a listen socket and its acceptor, on the loop of a boss or worker.
 *
 * A socket points at a generation of the listener that has its address. listener_socket_give()
 * points it at the next generation, perhaps of another listener; clients in the kernel's queue
 * stay.
 *
 *   open -> [give] -> start -> [give, move] -> stop -> closed by a task, freed by the next
 */
#ifndef LISTEN_LISTENER_SOCKET_H
#define LISTEN_LISTENER_SOCKET_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/must.h"
#include "engine/task.h"
#include "limits/connection_limit.h"
#include "net/sock.h"

struct acceptor;
struct address;
struct listener_generation;
struct listeners_env;
struct lock;
struct loop;

struct listener_socket {
    struct list link;
    struct lock *lock; /* protects the list that contains the socket */
    const struct listeners_env *env;
    const struct address *address;
    /*
     * See note: current in listen/listener_generation.h. The socket holds a reference from
     * listener_socket_stop() on.
     */
    _Atomic(struct listener_generation *) generation;
    struct listener_generation *admitted; /* generation that admitted the client being accepted */
    bool is_over; /* a dry run let that client in above a limit of the listener */
    struct acceptor *acceptor;
    int fd;         /* descriptor of `acceptor` */
    bool bind_only; /* listener_socket_listen() comes later */
    struct sock_own_file file;
    bool linked;             /* remove `file` at the close */
    bool leaving;            /* leave the kernel's queue to another process, which accepts too */
    bool stopping;           /* listener_socket_stop() was called */
    bool draining;           /* its loop: a pause holds no more clients */
    int64_t hidden_until_ns; /* see note: hidden in listen/listeners_internal.h */
    struct loop *loop;       /* NULL: not started; see note: moving */
    struct loop *next;       /* loop that it moves to; NULL: does not move */
    struct connection_limit_waiter waiter;
    struct task start;
    struct task move;
    struct task stop;
};

struct listener_socket_conf {
    const struct listeners_env *env;
    struct lock *lock;
    const struct address *address; /* must outlive all sessions */
    unsigned accept_batch;
    bool bind_only;  /* listener_socket_listen() comes later */
    bool share_port; /* SO_REUSEPORT, whatever the configuration says */
};

/*
 * listener_socket_open(out, conf, gen):
 * Bind, and listen unless conf->bind_only is set; do not accept yet.
 *
 * Thread: control loop, or main before start
 * Owns:   what ${conf} points at must outlive ${out}; ${gen} must live until a grace period after
 *         listener_socket_give()
 * Errors: 0; -ENOMEM; as sock_listen()
 */
int listener_socket_open(struct listener_socket **out, const struct listener_socket_conf *conf,
                         struct listener_generation *gen) NODISCARD;

/*
 * listener_socket_configure(sock):
 * Apply the options of the generation to the inherited ${sock}.
 *
 * Thread: main, while no change is under way
 * Errors: as sock_inherit()
 */
int listener_socket_configure(struct listener_socket *sock) NODISCARD;

/*
 * listener_socket_listen(sock):
 * Listen, with the backlog of its generation.
 *
 * Thread: as listener_socket_open()
 * Errors: 0; as listen(2)
 */
int listener_socket_listen(struct listener_socket *sock) NODISCARD;

/*
 * listener_socket_give(sock, gen, accept_batch):
 * Accept clients for ${gen} from now on, and apply the socket options that can be changed.
 *
 * Thread: as listener_socket_open()
 */
void listener_socket_give(struct listener_socket *sock, struct listener_generation *gen,
                          unsigned accept_batch);

/*
 * listener_socket_start(sock, loop):
 * Begin to accept, on ${loop}.
 *
 * Thread: as listener_socket_open()
 * Errors: 0; -EAGAIN (its thread could not be started); -ESHUTDOWN (it has ended)
 */
int listener_socket_start(struct listener_socket *sock, struct loop *loop) NODISCARD;

/*
 * listener_socket_move(sock, loop):
 * Let the started ${sock} accept on ${loop} instead, with the clients in its queue. If that loop
 * cannot start, ${sock} stays where it is, which is logged.
 *
 * Thread: control loop, while sock->lock is held
 */
void listener_socket_move(struct listener_socket *sock, struct loop *loop);

/*
 * listener_socket_stop(sock):
 * Let its loop accept the clients in the kernel's queue, close ${sock}, call env->stopped() and
 * free ${sock}. True if no loop will do so: the caller calls env->stopped(), and frees ${sock} when
 * no loop runs.
 *
 * Thread: any, while sock->lock is held
 */
bool listener_socket_stop(struct listener_socket *sock) NODISCARD;

/*
 * listener_socket_unlink(file, a):
 * Remove the file of a socket at ${a}, unless another program has replaced it, which is logged.
 */
void listener_socket_unlink(const struct sock_own_file *file, const struct address *a);

/*
 * listener_socket_destroy(sock):
 * Close and free ${sock}.
 *
 * Thread: its loop, or any if not started or while no loop that accepts runs
 */
void listener_socket_destroy(struct listener_socket *sock);

#endif
