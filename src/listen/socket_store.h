/*
 * listen/socket_store: listen sockets that outlive the process. The daemon implements it.
 */
#ifndef LISTEN_SOCKET_STORE_H
#define LISTEN_SOCKET_STORE_H

#include <stdbool.h>

#include "base/must.h"

struct address;
struct sock_listen_conf;

/*
 * Store of listen sockets. Its functions are called on the control loop, or on main while no reload
 * is under way; NULL functions: no socket outlives the process.
 */
struct socket_store {
    /* Returns how many sockets bound to ${a} are stored. */
    unsigned (*count)(void *cookie, const struct address *a);
    /*
     * Returns a listening socket bound to ${a}, which may have clients in its queue; -1: none. The
     * caller owns the socket, but not the file of a unix socket.
     */
    int (*take)(void *cookie, const struct address *a);
    /*
     * Store ${fd}, bound to ${a}. True: stored; the caller must not remove the file of a unix
     * socket.
     */
    bool (*keep)(void *cookie, const struct address *a, int fd);
    /*
     * ${a} has no listener now: remove its sockets from the store. True: the caller must remove the
     * file of a unix socket.
     */
    bool (*forget)(void *cookie, const struct address *a);
    void *cookie;
    /*
     * Another process uses the sockets that can be taken: change nothing of them, not even
     * options, until listeners_keep().
     */
    bool shared;
};

/*
 * socket_store_open(store, out_fd, a, conf):
 * Take a socket from ${store}, or create one by sock_listen(). True: taken, and configured if the
 * store is not shared.
 *
 * Thread: as socket_store.take()
 * Owns:   the caller owns ${out_fd}
 * Errors: in ${out_fd}: as sock_inherit(), sock_listen()
 */
bool socket_store_open(const struct socket_store *store, int *out_fd, const struct address *a,
                       const struct sock_listen_conf *conf) NODISCARD;

/*
 * socket_store_count(store, a) / socket_store_keep(store, a, fd) / socket_store_forget(store, a):
 * Call the function of ${store}; if there is none, return 0 / false / true.
 *
 * Thread: as socket_store.keep()
 */
unsigned socket_store_count(const struct socket_store *store, const struct address *a);
bool socket_store_keep(const struct socket_store *store, const struct address *a, int fd);
bool socket_store_forget(const struct socket_store *store, const struct address *a);

/*
 * socket_store_is_shared(store):
 * Is ${store} shared? See socket_store.shared.
 *
 * Thread: as socket_store.take()
 */
bool socket_store_is_shared(const struct socket_store *store);

#endif
