/*
 * admin/admin_socket: listen sockets of the admin interface.
 *
 * The sockets outlive the process (listen/socket_store): the process that replaces this one uses
 * the same sockets, with the clients in their queues.
 */
#ifndef ADMIN_ADMIN_SOCKET_H
#define ADMIN_ADMIN_SOCKET_H

#include <stdbool.h>

#include "base/must.h"

struct admin;
struct admin_conf;

/*
 * admin_socket_open_all(a, conf):
 * Bind the addresses of ${conf}; failures to bind are logged.
 *
 * Thread: main, before any other thread
 * Errors: 0; -errno
 */
int admin_socket_open_all(struct admin *a, const struct admin_conf *conf) NODISCARD;

/*
 * admin_socket_keep_all(a):
 * Take over the inherited sockets and their files.
 *
 * Thread: main, before admin_socket_start_all()
 */
void admin_socket_keep_all(struct admin *a);

/* admin_socket_start_all(a): start to accept connections. Thread: admin loop */
void admin_socket_start_all(struct admin *a);

/* admin_socket_resume_all(a): accept again, because a connection has ended. Thread: admin loop */
void admin_socket_resume_all(struct admin *a);

/*
 * admin_socket_close_all(a, unlink):
 * Close the sockets; with ${unlink} remove their files too. Idempotent.
 *
 * Thread: admin loop, or main while the loop does not run
 */
void admin_socket_close_all(struct admin *a, bool unlink);

/* admin_socket_destroy_all(a): free the closed sockets. Thread: as admin_socket_close_all() */
void admin_socket_destroy_all(struct admin *a);

#endif
