/*
 * net/sock: making sockets: the system calls and options, in one place.
 */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"
#include "net/address.h"
#include "net/sock_options.h"

/*
 * Mode and owner of a unix socket file; clients need write permission. Zeroed: left as bind(2)
 * makes it.
 */
struct sock_file {
    bool set_mode, set_uid, set_gid; /* which of these are set */
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

struct sock_listen_conf {
    int backlog;
    bool reuseport;
    struct sock_file file; /* for unix sockets with a path */
    struct sock_options options;
};

/*
 * note: source. A socket that is bound before it connects takes a port of its own for good, since
 * the kernel cannot know where it will connect to: with the 28,232 ports there are by default, no
 * more connections than that could be made from one address, to all servers together. With
 * IP_BIND_ADDRESS_NO_PORT the port is chosen when it connects, and only the four of both addresses
 * and ports must differ from those of any other connection.
 *
 * note: unseen. To find out whether somebody listens, and no more: the acknowledgement that
 * completes the handshake is held back until something is sent, or for some 40 ms. With
 * sock_close_reset() before that, the server's accept(2) never tells of the connection; that of a
 * unix socket does. (HAProxy, tcp_connect_server() with CONNECT_DELACK_ALWAYS; tcp(7),
 * TCP_QUICKACK.)
 */
struct sock_connect_conf {
    struct sock_options options;
    struct address source_ipv4; /* len 0: the kernel chooses; so the next. The port is 0 */
    struct address source_ipv6;
    bool unseen; /* see note: unseen */
};

/*
 * sock_listen(out_fd, a, conf):
 * A non-blocking socket that listens on ${a}. Options that accepted sockets inherit are set here,
 * once. A unix socket file that no process listens on any more is replaced. The file has the mode
 * and owner of ${conf}->file before the first client can connect.
 *
 * Thread: any
 * Owns:   the caller owns ${out_fd}; a unix socket file is removed with sock_unlink()
 * Errors: 0; -EADDRINUSE (also: a process listens on the unix socket); -EADDRNOTAVAIL; -EACCES;
 *         -EAFNOSUPPORT; -ENOTSOCK (the unix path is something else); -EPERM (must not change the
 *         mode or owner of the file); -errno of socket(2), bind(2), listen(2), chmod(2), chown(2)
 */
int sock_listen(int *out_fd, const struct address *a,
                const struct sock_listen_conf *conf) NODISCARD;

/*
 * sock_unlink(a):
 * Remove the file of a unix socket we listened on; nothing happens for other addresses.
 *
 * Thread: any
 */
void sock_unlink(const struct address *a);

/*
 * sock_connect(out_fd, a, conf):
 * Begin to connect to ${a}, from the source of its family: the socket is writable when the outcome,
 * sock_error(), is known. See note: source.
 *
 * Thread: any
 * Owns:   the caller owns ${out_fd} when the result is 0 or -EINPROGRESS
 * Errors: 0 (connected); -EINPROGRESS; -EAGAIN (unix: backlog full, no event will tell); -EMFILE,
 *         -ENFILE; -EADDRNOTAVAIL (also: the source is no address of this host); -errno of
 *         socket(2), setsockopt(2), bind(2), connect(2)
 */
int sock_connect(int *out_fd, const struct address *a,
                 const struct sock_connect_conf *conf) NODISCARD;

/*
 * sock_close_reset(fd):
 * Close ${fd} so that its peer gets a reset: the connection is broken visibly.
 *
 * Thread: owner of ${fd}
 * Owns:   ${fd} is gone
 */
void sock_close_reset(int fd);

/*
 * sock_forget_at_close(fd):
 * When ${fd} is closed the kernel sends end of file and keeps nothing of it: it waits neither for
 * the peer's end of file nor in TIME_WAIT. A unix socket is always like that.
 *
 * Thread: any
 * Source: tcp(7), TCP_LINGER2; Linux, tcp_rcv_state_process(): a negative one ends FIN_WAIT1 and
 *         FIN_WAIT2 at once
 */
void sock_forget_at_close(int fd);

/*
 * sock_has_unread(fd):
 * Are there bytes to be read?
 *
 * Thread: any
 */
bool sock_has_unread(int fd);

/*
 * sock_error(fd):
 * The pending error of ${fd}, which is cleared.
 *
 * Thread: owner of ${fd}
 * Errors: 0; -errno
 */
int sock_error(int fd);

/* What a connected socket has to say, before anybody reads it. */
enum sock_peek {
    SOCK_SILENT,
    SOCK_SPOKE, /* there is something to read, and no end behind it so far */
    SOCK_ENDED  /* end of file or an error, also behind something to read */
};

/*
 * sock_peek(fd):
 * What has come in on ${fd}, which is left as it is but for a pending error. One system call when
 * it is silent.
 *
 * Thread: owner of ${fd}
 */
enum sock_peek sock_peek(int fd);

/*
 * sock_error_is_exhaustion(error) / sock_error_is_ours(error):
 * Did this process run out of something, whatever the peer is? Has this host no way to the peer, or
 * no port left? Neither says anything about the peer.
 *
 * Thread: any
 */
bool sock_error_is_exhaustion(int error);
bool sock_error_is_ours(int error);

/*
 * sock_local(out, fd) / sock_peer(out, fd):
 * The address of this end of ${fd}, of the other end.
 *
 * Thread: any
 * Errors: 0; as getsockname(2), getpeername(2)
 */
int sock_local(struct address *out, int fd) NODISCARD;
int sock_peer(struct address *out, int fd) NODISCARD;

/*
 * sock_is_self_connected(fd, target):
 * Is ${fd}, connected to ${target}, connected to itself? It happens when nobody listens on a local
 * port of the ephemeral range and the kernel picks that very port as the source.
 *
 * Thread: owner of ${fd}
 */
bool sock_is_self_connected(int fd, const struct address *target);

#endif
