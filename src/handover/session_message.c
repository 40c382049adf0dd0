#include "handover/session_message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "handover/session_record.h"

/* Space for the answers to all sessions under way, whatever net.core.wmem_default is. */
#define SESSION_MESSAGE_QUEUE_BYTES (512 * 1024)

union session_message_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * (SESSION_MESSAGE_FDS + 1))]; /* one more is seen */
};

int session_message_open(int ends[2])
{
    int bytes = SESSION_MESSAGE_QUEUE_BYTES;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    for (unsigned i = 0; i < 2; i++)
        (void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    return 0;
}

static int session_message_write_file(int *out_fd, const uint8_t *data, size_t n)
{
    int fd = memfd_create("reactord session", MFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    while (n > 0) {
        ssize_t done = write(fd, data, n);

        if (done < 0 && errno != EINTR) {
            int rc = -errno;

            close(fd);
            return rc;
        }
        data += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    *out_fd = fd;
    return 0;
}

static int session_message_send_all(int fd, const struct session_message *m,
                                    const struct session_message_body *body)
{
    struct iovec data[] = {{.iov_base = (void *)m, .iov_len = sizeof(*m)},
                           {.iov_base = (void *)body->data, .iov_len = body->n}};
    union session_message_control control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = data, .msg_iovlen = 2};
    size_t fds_bytes = body->n_fds * sizeof(int);
    ssize_t n;

    if (body->n_fds > 0) {
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(fds_bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), body->fds, fds_bytes);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fds_bytes);
    }
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int session_message_send(int fd, const struct session_message *m,
                         const struct session_message_body *body)
{
    struct session_message_body all = body ? *body : (struct session_message_body){.n = 0};
    int file = -1, rc;

    if (all.n > SESSION_MESSAGE_INLINE_BYTES) {
        MUST(all.n_fds < SESSION_MESSAGE_FDS);
        rc = session_message_write_file(&file, all.data, all.n);
        if (rc < 0)
            return rc;
        all.fds[all.n_fds++] = file;
        all.n = 0;
    }
    rc = session_message_send_all(fd, m, &all);
    if (file >= 0)
        close(file);
    return rc;
}

static void session_message_close(struct session_message_body *body)
{
    while (body->n_fds > 0)
        close(body->fds[--body->n_fds]);
}

/* Take the descriptors; -EMSGSIZE: too many. */
static int session_message_take_fds(struct session_message_body *body, struct msghdr *message)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    size_t n = header && header->cmsg_type == SCM_RIGHTS
                   ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int)
                   : 0;

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        if (i < SESSION_MESSAGE_FDS)
            body->fds[body->n_fds++] = fd;
        else
            close(fd);
    }
    if (message->msg_flags & MSG_CTRUNC)
        return -EMFILE;
    return n > SESSION_MESSAGE_FDS || message->msg_flags & MSG_TRUNC ? -EMSGSIZE : 0;
}

/* A message without inline bytes has them in its last descriptor. */
static int session_message_read_file(struct session_message_body *body)
{
    int fd = body->fds[--body->n_fds];
    struct stat st;
    uint8_t *data;
    ssize_t n;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
        st.st_size > SESSION_RECORD_MAX_BYTES) {
        close(fd);
        return -EINVAL;
    }
    data = malloc((size_t)st.st_size);
    n = data ? pread(fd, data, (size_t)st.st_size, 0) : 0;
    close(fd);
    if (n == st.st_size) {
        body->data = data;
        body->n = (size_t)n;
        return 0;
    }
    free(data);
    return data ? -EINVAL : -ENOMEM;
}

void session_message_drop(struct session_message_body *body, const uint8_t *buffer)
{
    session_message_close(body);
    if (body->data != buffer)
        free((void *)body->data);
}

/*
 * If the other process ends with messages unread, the kernel tells ECONNRESET once, before the
 * messages that it had sent.
 */
static ssize_t session_message_receive_one(int fd, struct msghdr *message)
{
    unsigned resets = 0;
    ssize_t n;

    do
        n = recvmsg(fd, message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    return n < 0 ? -errno : n;
}

int session_message_receive(int fd, struct session_message *m, struct session_message_body *body,
                            uint8_t *buffer)
{
    struct iovec data[] = {{.iov_base = m, .iov_len = sizeof(*m)},
                           {.iov_base = buffer, .iov_len = SESSION_MESSAGE_INLINE_BYTES}};
    union session_message_control control;
    struct msghdr message = {.msg_iov = data,
                             .msg_iovlen = 2,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n;
    int rc;

    *m = (struct session_message){.type = 0};
    *body = (struct session_message_body){.data = buffer};
    n = session_message_receive_one(fd, &message);
    if (n < 0)
        return n == -EAGAIN ? -EAGAIN : -EPIPE;
    rc = session_message_take_fds(body, &message);
    if (n == 0)
        rc = -EPIPE; /* an empty message has descriptors, perhaps */
    else if (rc == 0 && (size_t)n < sizeof(*m))
        rc = -EMSGSIZE;
    body->n = (size_t)n > sizeof(*m) ? (size_t)n - sizeof(*m) : 0;
    if (rc == 0 && body->n == 0 && body->n_fds > 0)
        rc = session_message_read_file(body);
    if (rc < 0)
        session_message_close(body);
    return rc;
}
