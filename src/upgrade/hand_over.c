#include "upgrade/hand_over.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longest state in bytes: enough for 100,000 servers. */
#define HAND_OVER_STATE_MAX (128 << 20)

union hand_over_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int hand_over_open(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0 ? -errno
                                                                                           : 0;
}

int hand_over_send(int fd, const char *text, int state_fd)
{
    struct iovec data = {.iov_base = (char *)text,
                         .iov_len = strnlen(text, HAND_OVER_TEXT_BYTES - 1)};
    union hand_over_control control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    ssize_t n;

    if (state_fd >= 0) {
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &state_fd, sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

/* Take the one descriptor of a message; close several, or all if ${state_fd} is NULL. */
static void hand_over_take(int *state_fd, const struct cmsghdr *header)
{
    size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        if (n == 1 && state_fd)
            *state_fd = fd;
        else
            close(fd);
    }
}

int hand_over_receive(int fd, char *text, int *state_fd)
{
    struct iovec data = {.iov_base = text, .iov_len = HAND_OVER_TEXT_BYTES - 1};
    union hand_over_control control;
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    const struct cmsghdr *header;
    ssize_t n;

    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? -EAGAIN : -EPIPE;
    text[n] = '\0';
    header = CMSG_FIRSTHDR(&message);
    *state_fd = -1;
    if (header && header->cmsg_type == SCM_RIGHTS)
        hand_over_take(n > 0 ? state_fd : NULL, header);
    return n > 0 ? 0 : -EPIPE;
}

static int hand_over_write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int hand_over_write_state(int *out_fd, const char *text, size_t len)
{
    int fd = memfd_create("reactord state", MFD_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    rc = hand_over_write_all(fd, text, len);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    *out_fd = fd;
    return 0;
}

int hand_over_create_state(int *out_fd, FILE **out)
{
    int fd = memfd_create("reactord state", MFD_CLOEXEC), copy, rc;

    if (fd < 0)
        return -errno;
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    *out = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (*out) {
        *out_fd = fd;
        return 0;
    }
    rc = -errno;
    if (copy >= 0)
        close(copy);
    close(fd);
    return rc;
}

int hand_over_finish_state(int fd, FILE *f)
{
    int rc = ferror(f) ? -EIO : 0;

    if (fclose(f) < 0)
        rc = -errno;
    if (rc < 0)
        close(fd);
    return rc;
}

int hand_over_read_bytes(char **out, size_t *n, int fd)
{
    struct stat st;
    size_t size, len = 0;
    char *text;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > HAND_OVER_STATE_MAX)
        return -EINVAL;
    size = (size_t)st.st_size;
    text = malloc(size + 1);
    if (!text)
        return -ENOMEM;
    while (len < size) {
        ssize_t got = pread(fd, text + len, size - len, (off_t)len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int rc = got < 0 ? -errno : -EINVAL;

            free(text);
            return rc;
        }
        len += (size_t)got;
    }
    text[len] = '\0';
    *out = text;
    *n = len;
    return 0;
}

int hand_over_read_state(char **out, int fd)
{
    size_t n;

    return hand_over_read_bytes(out, &n, fd);
}

bool hand_over_is_own(const char *name)
{
    static const char *const own[] = {HAND_OVER_NAME,      HAND_OVER_STATE,    HAND_OVER_OLD,
                                      HAND_OVER_OLD_STATE, HAND_OVER_PID_FILE, HAND_OVER_TICKETS,
                                      HAND_OVER_BANS};

    for (unsigned i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

const char *hand_over_is(const char *text, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(text, word, len) != 0 || (text[len] != ' ' && text[len] != '\0'))
        return NULL;
    return text[len] == ' ' ? text + len + 1 : text + len;
}
