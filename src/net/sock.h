/* net/sock: system calls of sockets. */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"
#include "net/address.h"
#include "net/sock_options.h"

/*
 * Mode and owner of a unix socket file; if zeroed, bind(2) decides. Clients need write permission.
 */
struct sock_file {
    bool set_mode, set_uid, set_gid;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

/* Which file a socket is bound to; zeroed: none. */
struct sock_own_file {
    dev_t dev;
    ino_t ino;
};

struct sock_listen_conf {
    int backlog;
    bool reuseport;
    bool bind_only;        /* do not call listen(2) */
    struct sock_file file; /* for unix paths */
    struct sock_options options;
};

/*
 * note: source. bind(2) before connect(2) reserves a source port for all destinations.
 * IP_BIND_ADDRESS_NO_PORT defers the choice to connect(2): only the 4-tuple must be unique.
 *
 * note: ports. The kernel does not choose a port again while the 4-tuple is in TIME_WAIT, but lets
 * us: connect(2) from a port that was bound takes over a connection in TIME_WAIT if both sides have
 * TCP timestamps. SO_REUSEADDR lets a port be bound for several servers. (Linux,
 * tcp_twsk_unique(), without `twp`; RFC 6191.)
 *
 * note: unseen. Health checks by connect delay the handshake's last ACK (until data, or some 40
 * ms). If sock_close_reset() comes before that ACK, the server's accept(2) never returns the
 * connection. No effect on unix sockets. (HAProxy: CONNECT_DELACK_ALWAYS; tcp(7): TCP_QUICKACK.)
 */
struct sock_connect_conf {
    struct sock_options options;
    struct sock_sources *sources; /* NULL: chosen by the kernel */
    struct sock_ports *ports;     /* NULL: as above; see note: ports */
    bool unseen;                  /* see note: unseen */
    bool freebind;                /* this host may lack the sources */
    bool any_source;              /* if it does, the kernel chooses */
};

/*
 * Addresses to connect from, those of a server's family in turn. The next one is tried at once if
 * one has no free port, or has left this host.
 *
 * note: turn. A relaxed counter of all threads: who reads which turn does not matter.
 */
struct sock_sources {
    _Atomic unsigned turn; /* see note: turn */
    unsigned n;
    struct address list[]; /* with port 0 */
};

/*
 * Ports to connect from, in turn: that which was free for longest comes next.
 *
 * note: all ports in use. A connect tries every port once before it fails. A try costs some 5 us:
 * where all of thousands are in use, connects would stop the loop. So for a second after one has
 * failed, each tries only the next 256, and others go on behind them. The time is relaxed: a
 * connect that reads an old one tries more ports.
 */
struct sock_ports {
    _Atomic unsigned turn;          /* see note: turn */
    _Atomic int64_t all_used_at_ns; /* 0: never */
    uint16_t first;
    unsigned n;
};

/* sock_sources_same(a, b): do both, or NULL, have the same addresses? */
bool sock_sources_same(const struct sock_sources *a, const struct sock_sources *b);

/*
 * Error of sock_connect(): the source address is not an address of this host. No system call of a
 * socket returns this number; connect(2) without a free port returns EADDRNOTAVAIL.
 */
#define SOCK_NO_SOURCE EUNATCH

/*
 * sock_listen(out_fd, a, conf):
 * Create a non-blocking listening socket. Replaces a stale unix socket file, and sets mode and
 * owner before clients can connect.
 *
 * Owns:   the caller owns ${out_fd}; sock_unlink() removes the file
 * Errors: 0; -EADDRINUSE (also: live unix socket); -ENOTSOCK (path is another file); -EPERM (may
 *         not set mode or owner); other -errno
 */
int sock_listen(int *out_fd, const struct address *a,
                const struct sock_listen_conf *conf) NODISCARD;

/*
 * sock_change_file(a, file):
 * Set mode and owner of the file of the socket at ${a}; without a file do nothing.
 *
 * Errors: 0; -ENOTSOCK (another file has the path); -errno
 */
int sock_change_file(const struct address *a, const struct sock_file *file) NODISCARD;

/*
 * sock_share_port(fd, shared):
 * Allow or forbid other sockets of this user to bind to the address of ${fd} (SO_REUSEPORT).
 *
 * Thread: owner of ${fd}
 * Errors: 0; -errno of setsockopt(2)
 */
int sock_share_port(int fd, bool shared);

/*
 * sock_inherit(fd, a, conf):
 * Configure ${fd}, on which another process listens at ${a}, as sock_listen() would; clients in its
 * backlog stay.
 *
 * Owns:   the caller still owns ${fd}
 * Errors: 0; -EPERM (may not set mode or owner of the file); -EPROTOTYPE (not a socket of MPTCP);
 *         other -errno
 */
int sock_inherit(int fd, const struct address *a, const struct sock_listen_conf *conf) NODISCARD;

/*
 * sock_recv(fd, data, len) / sock_send(fd, data, len):
 * Call recv(2) / send(2) without SIGPIPE; repeat after EINTR.
 *
 * Errors: bytes moved (recv: 0 at end of file); -EAGAIN; other -errno
 */
ssize_t sock_recv(int fd, void *data, size_t len);
ssize_t sock_send(int fd, const void *data, size_t len);

/*
 * sock_hide(fd):
 * Hide the listening TCP socket ${fd} from new clients, for all processes that share it; handshakes
 * under way go on. Call this before accepting the backlog and closing ${fd}, or clients that
 * connect in between are reset. False: the kernel refuses.
 *
 * Thread: owner of ${fd}
 * Source: Linux, inet_listener compute_score(): a socket bound to an interface that does not exist
 *         is not found; socket(7), SO_BINDTODEVICE
 */
bool sock_hide(int fd);

/* sock_unlink(a): remove the file of a unix socket. */
void sock_unlink(const struct address *a);

/*
 * sock_remember(out, a) / sock_unlink_own(own, a):
 * Remember which file is at ${a} / remove it, unless another program has replaced it; false: it
 * has. Call the second before the socket is closed: until then the file system does not use its
 * inode again. Without a file do nothing.
 */
void sock_remember(struct sock_own_file *out, const struct address *a);
bool sock_unlink_own(const struct sock_own_file *own, const struct address *a);

/* sock_is_replaced(own, a): is another file at ${a} than ${own}? False if there is none. */
bool sock_is_replaced(const struct sock_own_file *own, const struct address *a);

/*
 * sock_connect(out_fd, a, conf):
 * Start connecting, from a configured source address and port (note: source, note: ports). When
 * ${out_fd} is writable, sock_error() tells the outcome.
 *
 * Owns:   the caller owns ${out_fd} on 0 or -EINPROGRESS
 * Errors: 0 (connected); -EINPROGRESS; -EAGAIN (unix backlog full; no event follows);
 *         -SOCK_NO_SOURCE; other -errno
 */
int sock_connect(int *out_fd, const struct address *a,
                 const struct sock_connect_conf *conf) NODISCARD;

/*
 * sock_connect_as(out_fd, a, conf, client):
 * As sock_connect(), but from the address of ${client}, of another host; from conf->sources if
 * ${client} is NULL or of another family. Needs conf->options.transparent.
 *
 * Source: ip(7), IP_TRANSPARENT
 */
int sock_connect_as(int *out_fd, const struct address *a, const struct sock_connect_conf *conf,
                    const struct address *client) NODISCARD;

/* sock_error_text(error): text of an ${error} of sock_connect() or of its connection. */
const char *sock_error_text(int error);

/* sock_close_reset(fd): close ${fd}; a TCP peer gets a reset. Thread: owner */
void sock_close_reset(int fd);

/*
 * sock_skip_time_wait(fd):
 * Make close(2) send end of file and drop the socket, without FIN_WAIT or TIME_WAIT.
 *
 * Source: tcp(7), TCP_LINGER2; Linux, tcp_rcv_state_process(), negative linger2
 */
void sock_skip_time_wait(int fd);

/* sock_nodelay(fd): send small segments at once; no effect on a unix socket. Thread: owner */
void sock_nodelay(int fd);

/* sock_has_unread(fd): does ${fd} have unread input? */
bool sock_has_unread(int fd);

/*
 * sock_error(fd):
 * Read and clear SO_ERROR.
 *
 * Thread: owner
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
 * Check ${fd} without reading; clears a pending error. One system call if there is neither input
 * nor an end.
 *
 * Thread: owner
 */
enum sock_peek sock_peek(int fd);

/*
 * sock_error_is_exhaustion(error) / sock_error_is_ours(error):
 * Are resources exhausted? / is a local route, interface, address family or port missing?
 */
bool sock_error_is_exhaustion(int error);
bool sock_error_is_ours(int error);

/*
 * sock_local(out, fd) / sock_peer(out, fd):
 * Get the local / the peer's address.
 *
 * Errors: 0; as getsockname(2), getpeername(2)
 */
int sock_local(struct address *out, int fd) NODISCARD;
int sock_peer(struct address *out, int fd) NODISCARD;

/*
 * sock_is_self_connected(fd, target, conf):
 * Is ${fd}, of sock_connect(), connected to itself? See note: self.
 *
 * Thread: owner
 */
bool sock_is_self_connected(int fd, const struct address *target,
                            const struct sock_connect_conf *conf);

#endif
