#include "log/log_target.h"

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
#include <unistd.h>

#include "option/option_syslog.h"
#include "log/log_line.h"
#include "log/log_socket.h"
#include "system/privileges.h"
#include "system/safe_open.h"
#include "stats/syslog_conf.h"

enum medium {
    MEDIUM_FILE,   /* file, pipe or terminal that was opened non-blocking */
    MEDIUM_SHARED, /* inherited descriptor with shared flags: poll first */
    MEDIUM_STREAM, /* stderr is a connected socket */
};

struct log_target {
    struct log_sink sink;
    struct log_socket *socket; /* syslog or journal, instead of `fd`; or NULL */
    enum medium medium;
    struct log_line_form form;
    int fd;
    char *path;                    /* NULL: not a file */
    const struct privileges *user; /* opens the file; NULL: the process's user */
    atomic_int next_fd;            /* see log_target_offer(); -1: none */
    atomic_bool torn;              /* the last line was written only in part */
    atomic_uint lost;
};

static ssize_t log_target_line_send(struct log_target *lt, const char *data, size_t len)
{
    struct pollfd writable = {.fd = lt->fd, .events = POLLOUT};

    switch (lt->medium) {
    case MEDIUM_STREAM: return send(lt->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
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

    if (lt->socket)
        return log_socket_put(lt->socket, level, text);
    if (!log_target_mend(lt))
        return false;
    log_line_build(&line, &lt->form, level, text);
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
    struct iovec parts[] = {{.iov_base = head.data}, {.iov_base = (char *)text, .iov_len = len}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_LEN(parts)};
    ssize_t n;

    log_line_head(&head, &lt->form, LOG_LEVEL_INFO, NULL);
    parts[0].iov_len = head.len;
    if (!log_target_mend(lt))
        return -EAGAIN;
    n = sendmsg(lt->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
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
        int rc = log_target_message_send(lt, text, line_len);

        if (rc < 0)
            return done > 0 ? (ssize_t)done : rc;
        done += line_len;
    }
    return (ssize_t)done;
}

ssize_t log_target_put_lines(struct log_target *lt, const char *lines, size_t len)
{
    ssize_t n;

    if (lt->socket)
        return log_socket_put_lines(lt->socket, lines, len);
    if (lt->form.layout != LOG_LINE_PLAIN)
        return log_target_messages_send(lt, lines, len);
    n = log_target_line_send(lt, lines, log_target_piece_of(lt, lines, len));
    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    return n > 0 ? n : -EAGAIN;
}

bool log_target_recovered(struct log_target *lt)
{
    return !lt->socket || log_socket_recovered(lt->socket);
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
        lt->form.layout = LOG_LINE_PRIORITY;
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

static int log_target_open_socket(struct log_target *lt, const char *where)
{
    struct option_value v = {.text = where};
    struct syslog_conf conf;
    int rc = option_syslog_parse(&conf, &v);

    return rc < 0 ? rc : log_socket_open(&lt->socket, &conf);
}

static int log_target_open_where(struct log_target *lt, const char *where)
{
    if (strcmp(where, "stderr") == 0)
        return log_target_open_stderr(lt);
    if (option_syslog_is(where))
        return log_target_open_socket(lt, where);
    lt->path = strdup(where);
    return lt->path ? log_target_open_file(&lt->fd, where, lt->user) : -ENOMEM;
}

const char *log_target_describe(const char *where)
{
    if (strcmp(where, "syslog") == 0)
        return "syslog (" OPTION_SYSLOG_PATH ")";
    return strcmp(where, "journal") == 0 ? "journal (" OPTION_SYSLOG_JOURNAL_PATH ")" : where;
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

int log_target_error(const struct log_target *lt)
{
    return lt->socket ? log_socket_error(lt->socket) : 0;
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

void log_target_reopen_and_log(struct log_target *lt)
{
    int rc = log_target_reopen(lt);

    if (rc < 0)
        log_error("log: cannot be reopened: %s; the old file stays in use", strerror(-rc));
    else
        log_notice("log: reopened");
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
    log_socket_close(lt->socket);
    if (lt->fd >= 0)
        close(lt->fd);
    if (atomic_load(&lt->next_fd) >= 0)
        close(atomic_load(&lt->next_fd));
    free(lt->path);
    free(lt);
}
