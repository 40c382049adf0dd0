/*
 * system/notify_socket: sends one message to NOTIFY_SOCKET, without blocking.
 *
 * sd_notify(3) blocks while the service manager does not read: the queue of its socket has a limit
 * (unix(7), /proc/sys/net/unix/max_dgram_qlen). Any thread may call these functions.
 */
#ifndef SYSTEM_NOTIFY_SOCKET_H
#define SYSTEM_NOTIFY_SOCKET_H

#include <stdbool.h>

#include "base/must.h"

/*
 * notify_socket_send(text, fd):
 * Send ${text}, and ${fd} unless it is -1. Without NOTIFY_SOCKET nothing is sent.
 *
 * Errors: 0; -EAGAIN (the queue is full); -EINVAL, -EPROTO (address); -errno of socket(2) and
 *         sendmsg(2)
 */
int notify_socket_send(const char *text, int fd) NODISCARD;

/* notify_socket_is_transient(rc): may the same message succeed later? */
bool notify_socket_is_transient(int rc);

#endif
