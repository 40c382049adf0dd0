/*
 * syslog(3) and sd_journal_send(3) block if their daemon is slow, allocate memory, and do not
 * report a missing daemon. So this file sends the datagrams itself.
 */
#include "daemon/log_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log_line.h"
#include "daemon/privileges.h"
#include "daemon/safe_open.h"

/* Source: syslog(3); systemd.io/JOURNAL_NATIVE_PROTOCOL */
#define SYSLOG_PATH  "/dev/log"
#define JOURNAL_PATH "/run/systemd/journal/socket"

enum medium {
    MEDIUM_FILE,   /* file, pipe or terminal that was opened non-blocking */
    MEDIUM_SHARED, /* inherited descriptor with shared flags: poll first */
    MEDIUM_STREAM, /* stderr is a connected socket */
    MEDIUM_DATAGRAM,
    MEDIUM_SYSLOG_STREAM, /* connected to syslog, whose messages end with a NUL */
};

struct log_target {
    struct log_sink sink;
    enum medium medium;
    enum log_line_layout layout;
    int fd;
    char *path;                    /* NULL: not a file */
    const struct privileges *user; /* opens the file; NULL: the process's user */
    struct sockaddr_un peer;
    atomic_int next_fd; /* see log_target_offer(); -1: none */
    atomic_bool torn;   /* the last line was written only in part */
    atomic_uint lost;
};

static int log_target_connect(const struct sockaddr_un *peer, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0), rc;

    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)peer, sizeof(*peer)) == 0)
        return fd;
    rc = -errno;
    close(fd);
    return rc;
}

/* Connect to a restarted syslogd, under the same descriptor number. */
static bool log_target_reconnect(const struct log_target *lt)
{
    int fd = log_target_connect(&lt->peer, SOCK_STREAM | SOCK_NONBLOCK);
    bool connected = fd >= 0 && dup3(fd, lt->fd, O_CLOEXEC) >= 0;

    if (fd >= 0)
        close(fd);
    return connected;
}

/* Send ${message}: ${len} bytes and a NUL, all or -1. */
static ssize_t log_target_syslog_send(struct log_target *lt, const struct msghdr *message,
                                      size_t len)
{
    ssize_t n = sendmsg(lt->fd, message, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR && log_target_reconnect(lt))
        n = sendmsg(lt->fd, message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n == (ssize_t)len + 1)
        return (ssize_t)len;
    if (n > 0) {
        atomic_store_explicit(&lt->torn, true, memory_order_relaxed);
        errno = EAGAIN;
    }
    return -1;
}

static ssize_t log_target_line_send(struct log_target *lt, const char *data, size_t len)
{
    struct iovec with_nul[] = {{(char *)data, len}, {(char *)"", 1}};
    const struct msghdr message = {.msg_iov = with_nul, .msg_iovlen = ARRAY_LEN(with_nul)};
    struct pollfd writable = {.fd = lt->fd, .events = POLLOUT};

    switch (lt->medium) {
    case MEDIUM_SYSLOG_STREAM: return log_target_syslog_send(lt, &message, len);
    case MEDIUM_STREAM: return send(lt->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case MEDIUM_DATAGRAM:
        /* Send to the path, where a restarted syslogd has a new socket. */
        return sendto(lt->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *)&lt->peer, sizeof(lt->peer));
    case MEDIUM_SHARED:
        /* A pipe that poll(2) calls writable takes PIPE_BUF bytes. */
        if (poll(&writable, 1, 0) != 1 || !(writable.revents & POLLOUT)) {
            errno = EAGAIN;
            return -1;
        }
        return write(lt->fd, data, len);
    case MEDIUM_FILE: break;
    }
    return write(lt->fd, data, len);
}

/* If a line was written only in part, as on a full disk, end it. False: not possible yet. */
static bool log_target_mend(struct log_target *lt)
{
    if (!atomic_load_explicit(&lt->torn, memory_order_relaxed))
        return true;
    if (log_target_line_send(lt, "\n", 1) != 1)
        return false;
    atomic_store_explicit(&lt->torn, false, memory_order_relaxed);
    return true;
}

static bool log_target_line_put(struct log_target *lt, enum log_level level, const char *text)
{
    struct log_line line;
    ssize_t n;

    if (!log_target_mend(lt))
        return false;
    log_line_build(&line, lt->layout, level, text);
    n = log_target_line_send(lt, line.data, line.len);
    if (n == (ssize_t)line.len)
        return true;
    if (n > 0)
        atomic_store_explicit(&lt->torn, true, memory_order_relaxed);
    return false;
}

/* Length of the next write: all to a file; else whole lines up to PIPE_BUF bytes, to be atomic. */
static size_t log_target_piece_of(const struct log_target *lt, const char *lines, size_t len)
{
    const char *end;
    struct stat st;

    if (len <= PIPE_BUF || (fstat(lt->fd, &st) == 0 && S_ISREG(st.st_mode)))
        return len;
    end = memrchr(lines, '\n', PIPE_BUF);
    return end ? (size_t)(end + 1 - lines) : PIPE_BUF;
}

static int log_target_message_send(struct log_target *lt, const char *text, size_t len)
{
    struct log_line head;
    struct iovec parts[] = {{.iov_base = head.data},
                            {.iov_base = (char *)text, .iov_len = len},
                            {.iov_base = (char *)"", .iov_len = 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n;

    log_line_head(&head, lt->layout, LOG_LEVEL_INFO, NULL);
    parts[0].iov_len = head.len;
    if (lt->medium == MEDIUM_DATAGRAM) {
        message.msg_name = &lt->peer;
        message.msg_namelen = sizeof(lt->peer);
    }
    if (!log_target_mend(lt))
        return -EAGAIN;
    if (lt->medium == MEDIUM_SYSLOG_STREAM) {
        message.msg_iovlen = ARRAY_LEN(parts);
        n = log_target_syslog_send(lt, &message, head.len + len);
    } else {
        n = sendmsg(lt->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (n < 0)
        return -errno;
    if ((size_t)n == head.len + len)
        return 0;
    atomic_store_explicit(&lt->torn, true, memory_order_relaxed);
    return -EAGAIN;
}

static ssize_t log_target_messages_send(struct log_target *lt, const char *lines, size_t len)
{
    size_t done = 0;

    while (done < len) {
        const char *text = lines + done;
        const char *end = memchr(text, '\n', len - done);
        size_t line_len = end ? (size_t)(end + 1 - text) : len - done;
        bool cut = end && lt->layout == LOG_LINE_SYSLOG; /* syslog messages have no newline */
        int rc = log_target_message_send(lt, text, cut ? line_len - 1 : line_len);

        if (rc < 0)
            return done > 0 ? (ssize_t)done : rc;
        done += line_len;
    }
    return (ssize_t)done;
}

ssize_t log_target_put_lines(struct log_target *lt, const char *lines, size_t len)
{
    ssize_t n;

    if (lt->layout != LOG_LINE_PLAIN)
        return log_target_messages_send(lt, lines, len);
    n = log_target_line_send(lt, lines, log_target_piece_of(lt, lines, len));
    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    return n > 0 ? n : -EAGAIN;
}

static void log_target_write(void *cookie, enum log_level level, const char *text)
{
    struct log_target *lt = cookie;
    char diagnostics[64];
    unsigned lost;

    if (!log_target_line_put(lt, level, text)) {
        atomic_fetch_add_explicit(&lt->lost, 1, memory_order_relaxed);
        return;
    }
    if (atomic_load_explicit(&lt->lost, memory_order_relaxed) == 0)
        return;
    lost = atomic_exchange_explicit(&lt->lost, 0, memory_order_relaxed);
    snprintf(diagnostics, sizeof(diagnostics), "log: lines dropped: %u", lost);
    if (lost > 0 && !log_target_line_put(lt, LOG_LEVEL_WARNING, diagnostics))
        atomic_fetch_add_explicit(&lt->lost, lost, memory_order_relaxed);
}

/* See systemd.exec(5), JOURNAL_STREAM. */
static bool log_target_is_journal_stream(const struct stat *st)
{
    const char *value = getenv("JOURNAL_STREAM");
    unsigned long long dev, ino;

    return value && sscanf(value, "%llu:%llu", &dev, &ino) == 2 && dev == st->st_dev &&
           ino == st->st_ino;
}

/*
 * O_NONBLOCK belongs to the open file, which other processes share: so open a pipe or terminal
 * anew, if permitted. A regular file never blocks: share the open file with its position.
 */
static int log_target_open_stderr(struct log_target *lt)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0)
        return -errno;
    if (log_target_is_journal_stream(&st))
        lt->layout = LOG_LINE_PRIORITY;
    lt->medium = S_ISSOCK(st.st_mode) ? MEDIUM_STREAM : MEDIUM_FILE;
    if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        lt->fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (lt->fd >= 0)
            return 0;
        lt->medium = MEDIUM_SHARED;
    }
    lt->fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    return lt->fd < 0 ? -errno : 0;
}

/* Open or create a file. Give a file that root created to ${user}, so that it can be reopened. */
static int log_target_open_file(int *out_fd, const char *path, const struct privileges *user)
{
    const int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_CREAT;
    struct safe_open how = {.path = path, .flags = flags | O_EXCL, .mode = 0640, .user = user};
    bool as_root;
    int rc = safe_open(out_fd, &as_root, &how);

    if (rc == 0 && as_root && fchown(*out_fd, user->uid, user->gid) < 0) {
        rc = -errno;
        close(*out_fd);
    }
    if (rc != -EEXIST)
        return rc;
    how.flags = flags; /* with O_CREAT: ${path} may be a link to a missing file */
    return safe_open(out_fd, &as_root, &how);
}

/* A syslogd listens for datagrams, or, as syslog-ng does, for connections. */
static int log_target_open_socket(struct log_target *lt, enum log_line_layout layout,
                                  const char *path)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int fd;

    lt->layout = layout;
    lt->medium = MEDIUM_DATAGRAM;
    lt->peer.sun_family = AF_UNIX;
    memcpy(lt->peer.sun_path, path, strlen(path) + 1);
    fd = log_target_connect(&lt->peer, SOCK_DGRAM);
    if (fd == -EPROTOTYPE && layout == LOG_LINE_SYSLOG) {
        lt->medium = MEDIUM_SYSLOG_STREAM;
        fd = log_target_connect(&lt->peer, SOCK_STREAM | SOCK_NONBLOCK);
    }
    if (fd < 0)
        return fd;
    lt->fd = fd;
    if (lt->medium == MEDIUM_SYSLOG_STREAM)
        return 0;
    /* It was connected only to see whether a daemon listens: disconnect. */
    return connect(lt->fd, &nobody, sizeof(nobody)) < 0 ? -errno : 0;
}

static int log_target_open_where(struct log_target *lt, const char *where)
{
    if (strcmp(where, "stderr") == 0)
        return log_target_open_stderr(lt);
    if (strcmp(where, "syslog") == 0)
        return log_target_open_socket(lt, LOG_LINE_SYSLOG, SYSLOG_PATH);
    if (strcmp(where, "journal") == 0)
        return log_target_open_socket(lt, LOG_LINE_JOURNAL, JOURNAL_PATH);
    lt->path = strdup(where);
    return lt->path ? log_target_open_file(&lt->fd, where, lt->user) : -ENOMEM;
}

const char *log_target_describe(const char *where)
{
    if (strcmp(where, "syslog") == 0)
        return "syslog (" SYSLOG_PATH ")";
    return strcmp(where, "journal") == 0 ? "journal (" JOURNAL_PATH ")" : where;
}

int log_target_open(struct log_target **out, const char *where, const struct privileges *user)
{
    struct log_target *lt = calloc(1, sizeof(*lt));
    int rc;

    if (!lt)
        return -ENOMEM;
    lt->sink = (struct log_sink){.write = log_target_write, .cookie = lt};
    lt->fd = -1;
    atomic_init(&lt->next_fd, -1);
    lt->user = user;
    rc = log_target_open_where(lt, where);
    if (rc < 0) {
        log_target_close(lt);
        return rc;
    }
    *out = lt;
    return 0;
}

const struct log_sink *log_target_sink(const struct log_target *lt)
{
    return &lt->sink;
}

int log_target_reopen(struct log_target *lt)
{
    int fd = -1, rc;

    if (!lt->path)
        return 0;
    rc = log_target_open_file(&fd, lt->path, lt->user);
    if (rc < 0)
        return rc;
    if (atomic_exchange(&lt->torn, false))
        (void)!write(lt->fd, "\n", 1); /* end the line that was cut */
    rc = dup3(fd, lt->fd, O_CLOEXEC) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

int log_target_offer(struct log_target *lt)
{
    int fd = -1, rc;

    if (!lt->path)
        return 0;
    rc = log_target_open_file(&fd, lt->path, lt->user);
    if (rc < 0)
        return rc;
    fd = atomic_exchange(&lt->next_fd, fd);
    if (fd >= 0)
        close(fd); /* of a rotation that the writer did not see */
    return 0;
}

bool log_target_take(struct log_target *lt, bool cut)
{
    int fd = atomic_exchange(&lt->next_fd, -1);
    bool taken;

    if (fd < 0)
        return false;
    if (cut)
        (void)!write(lt->fd, "\n", 1);
    taken = dup3(fd, lt->fd, O_CLOEXEC) >= 0;
    close(fd);
    return taken;
}

int log_target_may_reopen(const struct log_target *lt)
{
    if (!lt->path || faccessat(AT_FDCWD, lt->path, W_OK, AT_EACCESS) == 0)
        return 0;
    return -errno;
}

void log_target_close(struct log_target *lt)
{
    if (!lt)
        return;
    log_unset_sink(&lt->sink);
    if (lt->fd >= 0)
        close(lt->fd);
    if (atomic_load(&lt->next_fd) >= 0)
        close(atomic_load(&lt->next_fd));
    free(lt->path);
    free(lt);
}
