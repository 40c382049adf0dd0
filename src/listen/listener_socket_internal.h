/* listen/listener_socket_internal: for listen/listener_socket_move. */
#ifndef LISTEN_LISTENER_SOCKET_INTERNAL_H
#define LISTEN_LISTENER_SOCKET_INTERNAL_H

struct listener_socket;

/*
 * listener_socket_init_tasks(sock):
 * Initialize the tasks that start and move ${sock}.
 *
 * Thread: as listener_socket_open()
 */
void listener_socket_init_tasks(struct listener_socket *sock);

#endif
