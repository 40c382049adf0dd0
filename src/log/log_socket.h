/*
 * log/log_socket: messages to syslog or the journal.
 *
 *   datagrams   to a unix socket or over UDP, many with one system call
 *   a stream    of messages that end with a NUL, if the unix socket takes connections (syslog-ng)
 *
 * Calls never block. The socket is connected again, under the same descriptor number, whenever its
 * daemon has gone: also if it was missing at the start.
 *
 * note: refused. A lost datagram of UDP is known only if the host answers that the port is closed,
 * with the next send. Then lines are refused for a second, and one message is sent to try; the
 * others wait until its answer can have come.
 */
#ifndef LOG_LOG_SOCKET_H
#define LOG_LOG_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/must.h"

struct log_socket;
struct syslog_conf;

/*
 * log_socket_open(out, conf):
 * Open a socket for ${conf} and try to connect it.
 *
 * Owns:   ${conf} is copied
 * Errors: 0; -ENOMEM; -errno of socket(2)
 */
int log_socket_open(struct log_socket **out, const struct syslog_conf *conf) NODISCARD;

/* log_socket_error(ls): return the -errno of the connection at log_socket_open(), or 0. */
int log_socket_error(const struct log_socket *ls);

/* log_socket_put(ls, level, text): send a line; false: it is lost. */
bool log_socket_put(struct log_socket *ls, enum log_level level, const char *text) NODISCARD;

/*
 * log_socket_put_lines(ls, lines, len):
 * Send each of the whole lines as a message, unchanged. A line that is too long is truncated and
 * ends in "...". While the daemon does not read, wait some milliseconds at most.
 *
 * Thread: any; one call at a time
 * Errors: bytes sent, > 0; -EAGAIN; -errno of connect(2) or sendmsg(2)
 */
ssize_t log_socket_put_lines(struct log_socket *ls, const char *lines, size_t len) NODISCARD;

/*
 * log_socket_recovered(ls):
 * After an error of log_socket_put_lines(): is the daemon there? Connect again if it was not.
 *
 * Thread: as log_socket_put_lines()
 */
bool log_socket_recovered(struct log_socket *ls);

/* log_socket_close(ls): close and free ${ls} or NULL. */
void log_socket_close(struct log_socket *ls);

#endif
