/*
 * upgrade/fd_store: keeps listen sockets in the service manager while no process runs.
 *
 * systemd stores each socket under its address as name, if the environment has FDSTORE. A socket of
 * a .socket unit is not stored, because systemd has it anyway.
 */
#ifndef UPGRADE_FD_STORE_H
#define UPGRADE_FD_STORE_H

#include <stddef.h>

#include "base/must.h"
#include "listen/socket_store.h"
#include "net/address.h"

struct fd_store;

/* Size of a name, see FDNAME in sd_pid_notify_with_fds(3). */
#define FD_STORE_NAME_BYTES 256

/*
 * fd_store_open(out):
 * Create the store with the inherited sockets (inherited_read()).
 *
 * Thread: main, before any other thread
 * Errors: 0; -ENOMEM
 */
int fd_store_open(struct fd_store **out) NODISCARD;

/*
 * fd_store_ops(store):
 * Return the implementation of listen/socket_store.
 *
 * Owns:   ${store} must outlive the server
 */
struct socket_store fd_store_ops(struct fd_store *store);

/*
 * fd_store_close_unwanted(store):
 * Close and log the inherited sockets that no listener took.
 *
 * Thread: main, before any other thread
 */
void fd_store_close_unwanted(struct fd_store *store);

/*
 * fd_store_give_up(store):
 * For each inherited socket that this process closed: make systemd close its copies, and remove its
 * file, unless it comes from a .socket unit. Call it after the take-over: before, both belong to
 * the starter.
 *
 * Thread: main, before listeners_keep()
 */
void fd_store_give_up(struct fd_store *store);

/*
 * fd_store_hand_over_name(store, a, name):
 * Write the name under which the next process gets sockets bound to ${a}: from the .socket unit,
 * else from the store, else HAND_OVER_LISTEN. ${name} has FD_STORE_NAME_BYTES; ${store} may be
 * NULL.
 */
void fd_store_hand_over_name(const struct fd_store *store, const struct address *a, char *name);

/* fd_store_close(store): free ${store} or NULL. Stored sockets stay stored. */
void fd_store_close(struct fd_store *store);

/*
 * fd_store_name(name, size, a):
 * Write the store's name for sockets bound to ${a}: the address, and `#` and the id of its network
 * namespace if there is one, with `:`, `%` and all but graphic ASCII as %XX.
 *
 * Thread: any
 * Units:  ${size} bytes
 * Errors: 0; -ENAMETOOLONG
 */
int fd_store_name(char *name, size_t size, const struct address *a) NODISCARD;

#endif
