/*
 * daemon/log_target: see log_target.h.
 *
 * syslog(3) and sd_journal_send(3) wait when the daemon behind them does, allocate, and say nothing when
 * there is none. Both protocols are one datagram, so it is sent from here and without waiting.
 */
#include "daemon/log_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* A pipe takes that much whole or not at all, so lines of several threads never mix. See pipe(7). */
#define LINE_BYTES  PIPE_BUF
#define STAMP_BYTES 32
#define NAME_BYTES  16 /* of a thread, see prctl(2) */

/* Source: syslog(3); systemd.io/JOURNAL_NATIVE_PROTOCOL */
#define SYSLOG_PATH  "/dev/log"
#define JOURNAL_PATH "/run/systemd/journal/socket"

enum medium {
    MEDIUM_FILE,     /* a file, or a pipe or terminal that we opened non-blocking for ourselves */
    MEDIUM_SHARED,   /* a descriptor whose flags are others' as well: ask before each line */
    MEDIUM_STREAM,   /* stderr is a connected socket */
    MEDIUM_DATAGRAM, /* each line is sent to ${peer} */
};

enum layout { LAYOUT_PLAIN, LAYOUT_PRIORITY, LAYOUT_SYSLOG, LAYOUT_JOURNAL };

struct log_target {
    struct log_sink sink;
    enum medium medium;
    enum layout layout;
    int fd;
    bool created; /* the file was not there before */
    pid_t pid;
    char *path; /* NULL: not a file */
    struct sockaddr_un peer;
    atomic_bool torn; /* the last line was taken in part: end it before the next */
    atomic_uint lost;
};

/* A line under construction. data[0] is a newline that is written only behind a torn line. */
struct line {
    size_t len;
    char data[LINE_BYTES];
};

static const char *thread_name(void)
{
    static _Thread_local char name[NAME_BYTES];

    if (name[0] != '\0')
        return name;
    if (gettid() == getpid())
        memcpy(name, "main", sizeof("main"));
    else if (prctl(PR_GET_NAME, name) < 0 || name[0] == '\0')
        memcpy(name, "?", sizeof("?"));
    return name;
}

/* ${now_s} as ${layout} writes it. libc takes its time zone lock for that: ask it once a second. */
static const char *stamp(time_t now_s, enum layout layout)
{
    static _Thread_local char text[STAMP_BYTES];
    static _Thread_local time_t text_s = -1;
    static _Thread_local enum layout text_layout;
    bool local = layout == LAYOUT_SYSLOG;
    struct tm tm;

    if (text_s == now_s && text_layout == layout)
        return text;
    if ((local ? localtime_r(&now_s, &tm) : gmtime_r(&now_s, &tm)) == NULL ||
        strftime(text, sizeof(text), local ? "%b %e %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return "-";
    text_s = now_s;
    text_layout = layout;
    return text;
}

static void PRINTF_LIKE(2, 3) line_print(struct line *line, const char *format, ...)
{
    size_t room = sizeof(line->data) - line->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line->data + line->len, room, format, args);
    va_end(args);
    MUST(len >= 0 && (size_t)len < room); /* all of it is short and of known length */
    line->len += (size_t)len;
}

/* How ${c} is written: 1 to 4 bytes of ${out}. */
static size_t escape(char out[4], unsigned char c)
{
    static const char digits[] = "0123456789abcdef";

    if (c >= 0x20 && c < 0x7f && c != '\\') {
        out[0] = (char)c;
        return 1;
    }
    out[0] = '\\';
    out[1] = c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c == '\\' ? '\\' : 'x';
    if (out[1] != 'x')
        return 2;
    out[2] = digits[c >> 4];
    out[3] = digits[c & 0xf];
    return 4;
}

/* Append ${text}, cut where the line is full, and the newline. */
static void line_end(struct line *line, const char *text)
{
    static const char cut[] = "...\n";

    for (; *text != '\0'; text++) {
        char out[4];
        size_t n = escape(out, (unsigned char)*text);

        if (line->len + n + sizeof(cut) > sizeof(line->data)) {
            memcpy(line->data + line->len, cut, sizeof(cut) - 1);
            line->len += sizeof(cut) - 1;
            return;
        }
        memcpy(line->data + line->len, out, n);
        line->len += n;
    }
    line->data[line->len++] = '\n';
}

static void line_build(struct line *line, const struct log_target *lt, enum log_level level,
                       const char *text)
{
    int priority = LOG_ERR + (int)level; /* both in the same order, see enum log_level */
    struct timespec now;

    line->data[0] = '\n';
    line->len = 1;
    clock_gettime(CLOCK_REALTIME, &now);
    switch (lt->layout) {
    case LAYOUT_PLAIN:
        line_print(line, "%s.%03ldZ reactord[%ld] %s %s: ", stamp(now.tv_sec, lt->layout),
                   now.tv_nsec / (long)NS_PER_MS, (long)lt->pid, log_level_name(level),
                   thread_name());
        break;
    case LAYOUT_PRIORITY: line_print(line, "<%d>%s: ", priority, thread_name()); break;
    case LAYOUT_SYSLOG:
        line_print(line, "<%d>%s reactord[%ld]: %s: ", LOG_DAEMON | priority,
                   stamp(now.tv_sec, lt->layout), (long)lt->pid, thread_name());
        break;
    case LAYOUT_JOURNAL:
        line_print(line,
                   "PRIORITY=%d\nSYSLOG_FACILITY=%d\nSYSLOG_IDENTIFIER=reactord\n"
                   "REACTORD_THREAD=%s\nMESSAGE=",
                   priority, LOG_FAC(LOG_DAEMON), thread_name());
        break;
    }
    line_end(line, text);
    if (lt->layout == LAYOUT_SYSLOG)
        line->len--; /* the datagram is the line: no newline in that protocol */
}

/* One system call that does not wait. Returns how much was taken, or -1. */
static ssize_t line_send(const struct log_target *lt, const char *data, size_t len)
{
    struct pollfd writable = {.fd = lt->fd, .events = POLLOUT};

    switch (lt->medium) {
    case MEDIUM_STREAM: return send(lt->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case MEDIUM_DATAGRAM:
        /* By its path each time, so that a syslogd that was restarted is found again. */
        return sendto(lt->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *)&lt->peer, sizeof(lt->peer));
    case MEDIUM_SHARED:
        /* A pipe that polls writable has room for PIPE_BUF. */
        if (poll(&writable, 1, 0) != 1 || !(writable.revents & POLLOUT))
            return -1;
        return write(lt->fd, data, len);
    case MEDIUM_FILE: break;
    }
    return write(lt->fd, data, len);
}

static bool line_put(struct log_target *lt, enum log_level level, const char *text)
{
    struct line line;
    size_t from;
    ssize_t n;

    line_build(&line, lt, level, text);
    from = lt->medium != MEDIUM_DATAGRAM && atomic_exchange(&lt->torn, false) ? 0 : 1;
    n = line_send(lt, line.data + from, line.len - from);
    if (n == (ssize_t)(line.len - from))
        return true;
    if (n > 0 || from == 0) /* the unfinished line is still the last */
        atomic_store(&lt->torn, true);
    return false;
}

static void log_target_write(void *cookie, enum log_level level, const char *text)
{
    struct log_target *lt = cookie;
    char report[64];
    unsigned lost;

    if (!line_put(lt, level, text)) {
        atomic_fetch_add_explicit(&lt->lost, 1, memory_order_relaxed);
        return;
    }
    if (atomic_load_explicit(&lt->lost, memory_order_relaxed) == 0)
        return;
    lost = atomic_exchange_explicit(&lt->lost, 0, memory_order_relaxed);
    snprintf(report, sizeof(report), "the log did not take %u lines", lost);
    if (lost > 0 && !line_put(lt, LOG_LEVEL_WARNING, report))
        atomic_fetch_add_explicit(&lt->lost, lost, memory_order_relaxed);
}

/* Does systemd say that the stderr it gave us leads to the journal? See systemd.exec(5), JOURNAL_STREAM. */
static bool is_journal_stream(const struct stat *st)
{
    const char *value = getenv("JOURNAL_STREAM");
    unsigned long long dev, ino;

    return value && sscanf(value, "%llu:%llu", &dev, &ino) == 2 && dev == st->st_dev &&
           ino == st->st_ino;
}

/*
 * Non-blocking is a property of the open file, which stderr shares with a shell or whoever started us; so
 * open it once more. That is refused when a terminal belongs to another user.
 */
static int open_stderr(struct log_target *lt)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0)
        return -errno;
    if (is_journal_stream(&st))
        lt->layout = LAYOUT_PRIORITY;
    lt->medium = S_ISSOCK(st.st_mode) ? MEDIUM_STREAM : MEDIUM_FILE;
    if (lt->medium == MEDIUM_FILE)
        lt->fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (lt->fd >= 0)
        return 0;
    if (lt->medium == MEDIUM_FILE)
        lt->medium = MEDIUM_SHARED;
    lt->fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    return lt->fd < 0 ? -errno : 0;
}

static int open_file(int *out_fd, bool *created, const char *path)
{
    const int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = open(path, flags | O_CREAT | O_EXCL, 0640);

    *created = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, flags | O_CREAT,
                  0640); /* O_CREAT: for a symbolic link to a file not there */
    if (fd < 0)
        return -errno;
    *out_fd = fd;
    return 0;
}

static int open_datagram(struct log_target *lt, enum layout layout, const char *path)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    lt->layout = layout;
    lt->medium = MEDIUM_DATAGRAM;
    lt->peer.sun_family = AF_UNIX;
    memcpy(lt->peer.sun_path, path, strlen(path) + 1);
    lt->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (lt->fd < 0)
        return -errno;
    /* Is anybody there? Better not to start than to log to nowhere. Then forget who it was. */
    if (connect(lt->fd, (struct sockaddr *)&lt->peer, sizeof(lt->peer)) < 0)
        return -errno;
    return connect(lt->fd, &nobody, sizeof(nobody)) < 0 ? -errno : 0;
}

static int open_where(struct log_target *lt, const char *where)
{
    if (strcmp(where, "stderr") == 0)
        return open_stderr(lt);
    if (strcmp(where, "syslog") == 0)
        return open_datagram(lt, LAYOUT_SYSLOG, SYSLOG_PATH);
    if (strcmp(where, "journal") == 0)
        return open_datagram(lt, LAYOUT_JOURNAL, JOURNAL_PATH);
    lt->path = strdup(where);
    return lt->path ? open_file(&lt->fd, &lt->created, where) : -ENOMEM;
}

int log_target_open(struct log_target **out, const char *where)
{
    struct log_target *lt = calloc(1, sizeof(*lt));
    int rc;

    if (!lt)
        return -ENOMEM;
    lt->sink = (struct log_sink){.write = log_target_write, .cookie = lt};
    lt->fd = -1;
    lt->pid = getpid();
    rc = open_where(lt, where);
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

int log_target_give(struct log_target *lt, uid_t uid, gid_t gid)
{
    /* Never a file that others may have put there: a hard link would give away what it links to. */
    if (!lt->path || !lt->created)
        return 0;
    return fchown(lt->fd, uid, gid) < 0 ? -errno : 0;
}

int log_target_reopen(struct log_target *lt)
{
    int fd, rc;

    if (!lt->path)
        return 0;
    rc = open_file(&fd, &lt->created, lt->path);
    if (rc < 0)
        return rc;
    rc = dup3(fd, lt->fd, O_CLOEXEC) < 0 ? -errno : 0;
    if (rc == 0)
        atomic_store(&lt->torn, false);
    close(fd);
    return rc;
}

void log_target_close(struct log_target *lt)
{
    if (!lt)
        return;
    log_set_sink(NULL);
    if (lt->fd >= 0)
        close(lt->fd);
    free(lt->path);
    free(lt);
}
