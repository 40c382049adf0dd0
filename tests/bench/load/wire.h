/*
 * wire: how the bytes of a connection travel: as they are, or in TLS 1.3 (AES-128-GCM, X25519).
 *
 * Both look like a non-blocking socket. The handshake is part of the first wire_send, and gives
 * EAGAIN until it is over.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct conn;
struct options;

/*
 * wire_init(opts):
 * Choose the way of all connections: opts->tls, opts->resume.
 */
void wire_init(const struct options *opts);

/*
 * wire_open(conn):
 * conn->fd is new. With --resume the last session that the server gave ${conn} is offered.
 */
void wire_open(struct conn *conn);

/*
 * wire_send(conn, data, len), wire_recv(conn, data, len):
 * As send and recv. In TLS wire_recv gives all there is, up to ${len}: the library keeps nothing.
 */
ssize_t wire_send(struct conn *conn, const void *data, size_t len);
ssize_t wire_recv(struct conn *conn, void *data, size_t len);

/*
 * wire_blocked(conn):
 * The event of epoll after which wire_send is to be repeated: EPOLLIN during a handshake.
 */
uint32_t wire_blocked(const struct conn *conn);

/*
 * wire_shutdown(conn):
 * Half-close: close_notify before the FIN.
 */
void wire_shutdown(struct conn *conn);

/*
 * wire_reset(conn):
 * Close by RST, without close_notify. Dies if a session was offered and not resumed.
 */
void wire_reset(struct conn *conn);

#endif
