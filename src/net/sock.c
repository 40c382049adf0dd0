#include "net/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int sock_set(int fd, int level, int option)
{
    int on = 1;

    return setsockopt(fd, level, option, &on, sizeof(on)) < 0 ? -errno : 0;
}

static bool sock_is_path(const struct address *a)
{
    return address_is_unix(a) && a->u.un.sun_path[0] != '\0';
}

static int sock_clear_path(const struct address *a)
{
    static const struct sock_connect_conf plain;
    struct stat st;
    int fd, rc;

    if (lstat(a->u.un.sun_path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -ENOTSOCK;
    rc = sock_connect(&fd, a, &plain);
    if (rc == 0 || rc == -EINPROGRESS)
        close(fd);
    if (rc != -ECONNREFUSED)
        return -EADDRINUSE;
    return unlink(a->u.un.sun_path) < 0 ? -errno : 0;
}

static int sock_set_listen_options(int fd, const struct address *a,
                                   const struct sock_listen_conf *conf)
{
    int rc = sock_options_set(fd, a->u.sa.sa_family, &conf->options);

    if (rc < 0 || address_is_unix(a))
        return rc;
    rc = sock_set(fd, SOL_SOCKET, SO_REUSEADDR);
    if (rc == 0 && conf->reuseport)
        rc = sock_set(fd, SOL_SOCKET, SO_REUSEPORT);
    if (rc == 0 && a->u.sa.sa_family == AF_INET6)
        rc = sock_set(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    return rc;
}

static bool sock_owner_differs(const struct stat *st, const struct sock_file *file)
{
    return (file->set_uid && st->st_uid != file->uid) || (file->set_gid && st->st_gid != file->gid);
}

/* Can only root or this user replace the file at ${path}? */
static bool sock_is_ours_alone(const char *path)
{
    char directory[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 2];
    char *slash;
    struct stat st;

    snprintf(directory, sizeof(directory), "%s", path);
    slash = strrchr(directory, '/');
    slash[slash == directory ? 1 : 0] = '\0';
    return stat(directory, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/*
 * Set the mode of the file at ${path}, open as ${fd}: fchmod(2) rejects O_PATH. Without /proc the
 * path must do, if it leads to nowhere else.
 */
static int sock_set_mode(int fd, const char *path, mode_t mode)
{
    char self[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (chmod(self, mode) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    if (!sock_is_ours_alone(path))
        return -EACCES;
    return chmod(path, mode) < 0 ? -errno : 0;
}

/*
 * Call this before clients can connect. A descriptor is used, because the path may be replaced
 * meanwhile. Only values that differ are set, because an inherited file may be another user's.
 */
static int sock_set_file(const struct address *a, const struct sock_file *file)
{
    int fd;
    uid_t uid = file->set_uid ? file->uid : (uid_t)-1;
    gid_t gid = file->set_gid ? file->gid : (gid_t)-1;
    struct stat st;
    int rc = 0;

    if (!file->set_mode && !file->set_uid && !file->set_gid)
        return 0;
    fd = open(a->u.un.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        rc = -errno;
    else if (!S_ISSOCK(st.st_mode))
        rc = -ENOTSOCK;
    else if (sock_owner_differs(&st, file) && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
        rc = -errno;
    else if (file->set_mode && (st.st_mode & ALLPERMS) != file->mode)
        rc = sock_set_mode(fd, a->u.un.sun_path, file->mode);
    close(fd);
    return rc;
}

static int sock_bind(int fd, const struct address *a, const struct sock_file *file)
{
    int rc = 0;

    /*
     * Linux creates the file with the socket's mode less umask, so never with more permissions than
     * configured.
     */
    if (sock_is_path(a) && file->set_mode && fchmod(fd, file->mode) < 0)
        return -errno;
    if (bind(fd, &a->u.sa, a->len) < 0)
        return -errno;
    if (sock_is_path(a))
        rc = sock_set_file(a, file);
    if (rc < 0)
        sock_unlink(a);
    return rc;
}

int sock_listen(int *out_fd, const struct address *a, const struct sock_listen_conf *conf)
{
    int fd = sock_options_open(&conf->options, a->u.sa.sa_family), rc;

    if (fd < 0)
        return fd;
    rc = sock_set_listen_options(fd, a, conf);
    if (rc < 0)
        goto err_close;
    if (sock_is_path(a)) {
        rc = sock_clear_path(a);
        if (rc < 0)
            goto err_close;
    }
    rc = sock_bind(fd, a, &conf->file);
    if (rc < 0)
        goto err_close;
    if (!conf->bind_only && listen(fd, conf->backlog) < 0) {
        rc = -errno;
        goto err_unlink;
    }
    *out_fd = fd;
    return 0;

err_unlink:
    sock_unlink(a);
err_close:
    close(fd);
    return rc;
}

int sock_change_file(const struct address *a, const struct sock_file *file)
{
    return sock_is_path(a) ? sock_set_file(a, file) : 0;
}

int sock_share_port(int fd, bool shared)
{
    int value = shared;

    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* A socket cannot become one of MPTCP; one that is takes clients of TCP, too. */
static bool sock_lacks_protocol(int fd, const struct address *a, const struct sock_options *o)
{
    int wanted = sock_options_protocol(o, a->u.sa.sa_family), protocol;
    socklen_t len = sizeof(protocol);

    return wanted != 0 &&
           (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0 || protocol != wanted);
}

int sock_inherit(int fd, const struct address *a, const struct sock_listen_conf *conf)
{
    int flags = fcntl(fd, F_GETFL), rc;

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    sock_options_change(fd, a->u.sa.sa_family, NULL, &conf->options);
    rc = sock_options_set(fd, a->u.sa.sa_family, &conf->options);
    if (rc == 0 && conf->reuseport && !address_is_unix(a))
        rc = sock_share_port(fd, true);
    if (rc == 0)
        rc = sock_change_file(a, &conf->file);
    if (rc == 0 && listen(fd, conf->backlog) < 0)
        rc = -errno;
    return rc == 0 && sock_lacks_protocol(fd, a, &conf->options) ? -EPROTOTYPE : rc;
}

bool sock_hide(int fd)
{
    int nowhere = INT_MAX;

    return setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &nowhere, sizeof(nowhere)) == 0;
}

void sock_unlink(const struct address *a)
{
    if (sock_is_path(a))
        (void)unlink(a->u.un.sun_path);
}

void sock_remember(struct sock_own_file *out, const struct address *a)
{
    struct stat st;

    *out = (struct sock_own_file){.ino = 0};
    if (sock_is_path(a) && lstat(a->u.un.sun_path, &st) == 0)
        *out = (struct sock_own_file){.dev = st.st_dev, .ino = st.st_ino};
}

bool sock_is_replaced(const struct sock_own_file *own, const struct address *a)
{
    struct sock_own_file now;

    sock_remember(&now, a);
    return now.ino != 0 && (now.ino != own->ino || now.dev != own->dev);
}

bool sock_unlink_own(const struct sock_own_file *own, const struct address *a)
{
    if (sock_is_replaced(own, a))
        return false;
    sock_unlink(a);
    return true;
}

ssize_t sock_recv(int fd, void *data, size_t len)
{
    ssize_t n;

    do
        n = recv(fd, data, len, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t sock_send(int fd, const void *data, size_t len)
{
    ssize_t n;

    do
        n = send(fd, data, len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

void sock_close_reset(int fd)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
}

void sock_skip_time_wait(int fd)
{
    int none = -1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_LINGER2, &none, sizeof(none));
}

void sock_nodelay(int fd)
{
    (void)sock_set(fd, IPPROTO_TCP, TCP_NODELAY);
}

bool sock_has_unread(int fd)
{
    int bytes = 0;

    return ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

int sock_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -errno;
    return -error;
}

enum sock_peek sock_peek(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    char byte;
    ssize_t n;

    do
        n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? SOCK_SILENT : SOCK_ENDED;
    if (n == 0 || (poll(&p, 1, 0) > 0 && p.revents))
        return SOCK_ENDED;
    return SOCK_READABLE;
}

bool sock_error_is_exhaustion(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

bool sock_error_is_ours(int error)
{
    return error == -ENETUNREACH || error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL ||
           error == -SOCK_NO_SOURCE || error == -ENODEV || error == -SOCK_OPTIONS_NO_NAMESPACE;
}

const char *sock_error_text(int error)
{
    switch (error) {
    case -SOCK_NO_SOURCE: return "source_address is not an address of this host";
    case -ENODEV: return "the network interface does not exist";
    case -SOCK_OPTIONS_NO_NAMESPACE: return "no permission to enter the network namespace";
    default: return strerror(-error);
    }
}

int sock_local(struct address *out, int fd)
{
    *out = (struct address){.len = sizeof(out->u)};
    return getsockname(fd, &out->u.sa, &out->len) < 0 ? -errno : 0;
}

int sock_peer(struct address *out, int fd)
{
    *out = (struct address){.len = sizeof(out->u)};
    return getpeername(fd, &out->u.sa, &out->len) < 0 ? -errno : 0;
}
