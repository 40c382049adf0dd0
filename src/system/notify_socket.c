#include "system/notify_socket.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* Set the address of ${path}: a path, or an abstract name after `@`. */
static int notify_socket_address(struct sockaddr_un *out, socklen_t *out_len, const char *path)
{
    size_t len = strlen(path);

    if (len < 2 || len >= sizeof(out->sun_path))
        return -EINVAL;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path, path, len);
    *out_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (*path == '@')
        out->sun_path[0] = '\0';
    else
        *out_len += 1;
    return 0;
}

static void notify_socket_attach(struct msghdr *message, int fd)
{
    struct cmsghdr *c;

    message->msg_controllen = CMSG_SPACE(sizeof(fd));
    c = CMSG_FIRSTHDR(message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

static int notify_socket_send_to(const char *path, const char *text, int fd)
{
    struct sockaddr_un address;
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = {0};
    struct iovec part = {.iov_base = (char *)text, .iov_len = strlen(text)};
    struct msghdr message = {
        .msg_name = &address, .msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    int sock, rc = notify_socket_address(&address, &message.msg_namelen, path);

    if (rc < 0)
        return rc;
    sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    if (fd >= 0)
        notify_socket_attach(&message, fd);
    rc = sendmsg(sock, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
    close(sock);
    return rc;
}

int notify_socket_send(const char *text, int fd)
{
    const char *path = getenv("NOTIFY_SOCKET");
    int rc;

    if (!path)
        return 0;
    if (*path == '/' || *path == '@')
        return notify_socket_send_to(path, text, fd);
    rc = sd_pid_notify_with_fds(0, 0, text, &fd, fd >= 0); /* such as vsock: */
    return rc < 0 ? rc : 0;
}

bool notify_socket_is_transient(int rc)
{
    return rc == -EAGAIN || rc == -EINTR || rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM ||
           rc == -ENOBUFS;
}
