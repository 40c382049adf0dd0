/* net/sock: socket system calls and options. */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"
#include "net/address.h"
#include "net/sock_options.h"

/* Of a unix socket file; zeroed: as bind(2) creates it. Clients need write permission. */
struct sock_file {
    bool set_mode, set_uid, set_gid;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

struct sock_listen_conf {
    int backlog;
    bool reuseport;
    struct sock_file file; /* for unix paths */
    struct sock_options options;
};

/*
 * note: source. bind(2) before connect(2) reserves a source port for all destinations: 28,232
 * connections per address by default. IP_BIND_ADDRESS_NO_PORT defers the choice to connect(2): only
 * the 4-tuple must be unique.
 *
 * note: unseen. A port probe. With the handshake's last ACK delayed (until data, or some 40 ms),
 * sock_close_reset() hides the connection from the server's accept(2). Not on unix sockets.
 * (HAProxy, tcp_connect_server() with CONNECT_DELACK_ALWAYS; tcp(7), TCP_QUICKACK.)
 */
struct sock_connect_conf {
    struct sock_options options;
    struct address source_ipv4; /* len 0: kernel's choice; as the next. Port 0 */
    struct address source_ipv6;
    bool unseen; /* see note: unseen */
};

/*
 * sock_listen(out_fd, a, conf):
 * Create a non-blocking listening socket, with the options that accepted sockets inherit. Replaces
 * a stale unix socket file; sets mode and owner before clients can connect.
 *
 * Thread: any
 * Owns:   the caller owns ${out_fd}; sock_unlink() removes the file
 * Errors: 0; -EADDRINUSE (also: live unix socket); -EADDRNOTAVAIL; -EACCES; -EAFNOSUPPORT;
 *         -ENOTSOCK (path is another file); -EPERM (may not set mode or owner); -errno of the
 *         system calls
 */
int sock_listen(int *out_fd, const struct address *a,
                const struct sock_listen_conf *conf) NODISCARD;

/*
 * sock_unlink(a):
 * Remove the file of a unix socket.
 *
 * Thread: any
 */
void sock_unlink(const struct address *a);

/*
 * sock_connect(out_fd, a, conf):
 * Start connecting, from the source of the family (note: source). When writable, sock_error() has
 * the outcome.
 *
 * Thread: any
 * Owns:   the caller owns ${out_fd} on 0 or -EINPROGRESS
 * Errors: 0 (connected); -EINPROGRESS; -EAGAIN (unix backlog full; no event follows); -EMFILE,
 *         -ENFILE; -EADDRNOTAVAIL (also: source not local); -errno of the system calls
 */
int sock_connect(int *out_fd, const struct address *a,
                 const struct sock_connect_conf *conf) NODISCARD;

/*
 * sock_close_reset(fd):
 * Close ${fd} with a reset.
 *
 * Thread: owner of ${fd}
 */
void sock_close_reset(int fd);

/*
 * sock_skip_time_wait(fd):
 * Make close(2) send end of file and drop the socket, without FIN_WAIT or TIME_WAIT. Unix sockets
 * always do.
 *
 * Thread: any
 * Source: tcp(7), TCP_LINGER2; Linux, tcp_rcv_state_process(), negative linger2
 */
void sock_skip_time_wait(int fd);

/*
 * sock_has_unread(fd):
 * Is there input?
 *
 * Thread: any
 */
bool sock_has_unread(int fd);

/*
 * sock_error(fd):
 * Read and clear SO_ERROR.
 *
 * Thread: owner of ${fd}
 * Errors: 0; -errno
 */
int sock_error(int fd);

enum sock_peek {
    SOCK_SILENT,
    SOCK_READABLE, /* input, no end of file yet */
    SOCK_ENDED     /* end of file or error, maybe after input */
};

/*
 * sock_peek(fd):
 * Check ${fd} without reading; clears a pending error. One system call if silent.
 *
 * Thread: owner of ${fd}
 */
enum sock_peek sock_peek(int fd);

/*
 * sock_error_is_exhaustion(error) / sock_error_is_ours(error):
 * Are resources exhausted? Is there no local route or port? Neither is the peer's fault.
 *
 * Thread: any
 */
bool sock_error_is_exhaustion(int error);
bool sock_error_is_ours(int error);

/*
 * sock_local(out, fd) / sock_peer(out, fd):
 * Local and remote address.
 *
 * Thread: any
 * Errors: 0; as getsockname(2), getpeername(2)
 */
int sock_local(struct address *out, int fd) NODISCARD;
int sock_peer(struct address *out, int fd) NODISCARD;

/*
 * sock_is_self_connected(fd, target):
 * Is ${fd} connected to itself? Happens if the kernel picks a local ${target} port without listener
 * as source.
 *
 * Thread: owner of ${fd}
 */
bool sock_is_self_connected(int fd, const struct address *target);

#endif
