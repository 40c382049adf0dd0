/*
 * syslog(3) and sd_journal_send(3) block if their daemon is slow, allocate memory, and do not
 * report a missing daemon. So this file sends the messages itself.
 */
#include "log/log_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log_line.h"
#include "stats/syslog_conf.h"

#define LOG_SOCKET_BATCH 64

/* Wait for a daemon that does not read; see ACCESS_LOG_BATCHES for how often. */
#define LOG_SOCKET_WAIT_MS 4

/* See note: refused. */
#define LOG_SOCKET_REFUSED_NS (1 * NS_PER_S)
#define LOG_SOCKET_ANSWER_NS  (100 * NS_PER_MS)

/* See note: refused. */
enum log_socket_state {
    LOG_SOCKET_TAKES,
    LOG_SOCKET_REFUSES, /* until `until_ns`; then one message is sent to try */
    LOG_SOCKET_TRIED    /* the answer can come until `until_ns` */
};

struct log_socket {
    struct syslog_conf conf;
    struct log_line_form form;
    int fd;
    int error;          /* of the first connection */
    atomic_bool stream; /* the socket is a stream */
    atomic_bool torn;   /* the last message of the stream was sent only in part */
    bool missing;       /* as far as log_socket_put_lines() has seen */
    enum log_socket_state state;
    int64_t until_ns;
};

enum { PART_HEAD, PART_TEXT, PART_CUT, PART_NUL, PARTS };

/* Messages for one system call. */
struct log_batch {
    struct log_line head; /* of all messages */
    size_t max_bytes;     /* of a message; 0: any length */
    unsigned n;
    struct mmsghdr messages[LOG_SOCKET_BATCH];
    struct iovec parts[LOG_SOCKET_BATCH][PARTS];
    size_t ends[LOG_SOCKET_BATCH]; /* end of each line in the lines */
};

static bool log_socket_is_udp(const struct log_socket *ls)
{
    return !address_is_unix(&ls->conf.address);
}

/* Put another socket, connected, in the place of the descriptor. */
static int log_socket_replace(struct log_socket *ls, int type)
{
    const struct address *to = &ls->conf.address;
    int fd = socket(to->u.sa.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;

    if (fd < 0)
        return -errno;
    if (connect(fd, &to->u.sa, to->len) < 0 || dup3(fd, ls->fd, O_CLOEXEC) < 0)
        rc = -errno;
    close(fd);
    if (rc == 0) {
        atomic_store(&ls->torn, false);
        atomic_store(&ls->stream, type == SOCK_STREAM);
    }
    return rc;
}

/* Connect, also again. EPROTOTYPE: the daemon at this path takes the other kind of socket. */
static int log_socket_connect(struct log_socket *ls)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    const struct address *to = &ls->conf.address;
    int rc;

    if (atomic_load(&ls->stream)) {
        rc = log_socket_replace(ls, SOCK_STREAM);
        return rc == -EPROTOTYPE ? log_socket_replace(ls, SOCK_DGRAM) : rc;
    }
    if (log_socket_is_udp(ls))
        (void)connect(ls->fd, &nobody, sizeof(nobody)); /* forget the old source address */
    rc = connect(ls->fd, &to->u.sa, to->len) < 0 ? -errno : 0;
    return rc == -EPROTOTYPE && ls->conf.protocol != SYSLOG_JOURNAL
               ? log_socket_replace(ls, SOCK_STREAM)
               : rc;
}

/* Send the first message of ${b}, with its NUL. Returns 1, or -errno. */
static int log_socket_stream(struct log_socket *ls, struct log_batch *b)
{
    struct msghdr *message = &b->messages[0].msg_hdr;
    size_t len = 0;
    ssize_t n;

    message->msg_iovlen = PARTS;
    for (unsigned i = 0; i < PARTS; i++)
        len += b->parts[0][i].iov_len;
    n = sendmsg(ls->fd, message, MSG_DONTWAIT | MSG_NOSIGNAL);
    message->msg_iovlen = PART_NUL; /* the daemon may come back as one that takes datagrams */
    if (n == (ssize_t)len)
        return 1;
    if (n < 0)
        return -errno;
    atomic_store_explicit(&ls->torn, true, memory_order_relaxed);
    return -EAGAIN;
}

/* Send some messages of ${b}, at least one. Returns their number, or -errno. */
static int log_socket_try(struct log_socket *ls, struct log_batch *b)
{
    int n;

    if (atomic_load(&ls->stream)) {
        n = log_socket_stream(ls, b);
    } else {
        n = sendmmsg(ls->fd, b->messages, b->n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            n = -errno;
    }
    return n == -EINTR || n == -ENOBUFS ? -EAGAIN : n;
}

/* Is -${error} a reason to connect again? */
static bool log_socket_is_gone(const struct log_socket *ls, int error)
{
    if (error == -ECONNREFUSED)
        return !log_socket_is_udp(ls); /* see note: refused */
    return error < 0 && error != -EAGAIN && error != -EMSGSIZE && error != -ENOMEM;
}

/* As log_socket_try(), also to a daemon that has been restarted. */
static int log_socket_send(struct log_socket *ls, struct log_batch *b)
{
    int n = log_socket_try(ls, b), rc;

    if (!log_socket_is_gone(ls, n))
        return n;
    rc = log_socket_connect(ls);
    return rc < 0 ? rc : log_socket_try(ls, b);
}

/* If a message of the stream was sent only in part, end it. */
static int log_socket_mend(struct log_socket *ls)
{
    ssize_t n;
    int rc;

    if (!atomic_load_explicit(&ls->torn, memory_order_relaxed))
        return 0;
    n = send(ls->fd, "\n", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
    rc = n < 0 ? -errno : n == 2 ? 0 : -EAGAIN;
    if (log_socket_is_gone(ls, rc))
        return log_socket_connect(ls);
    if (rc == 0)
        atomic_store_explicit(&ls->torn, false, memory_order_relaxed);
    return rc;
}

static void log_batch_add(struct log_batch *b, const char *text, size_t len, const char *cut)
{
    struct iovec *parts = b->parts[b->n];

    parts[PART_HEAD] = (struct iovec){b->head.data, b->head.len};
    parts[PART_TEXT] = (struct iovec){(char *)text, len};
    parts[PART_CUT] = (struct iovec){(char *)cut, strlen(cut)};
    parts[PART_NUL] = (struct iovec){(char *)"", 1};
    b->messages[b->n] = (struct mmsghdr){.msg_hdr = {.msg_iov = parts, .msg_iovlen = PART_NUL}};
    b->n++;
}

/* Length of the first ${max} of ${len} bytes, without a part of a character of UTF-8. */
static size_t log_socket_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}

/* Make messages of ${len} bytes of ${lines}, of ${n} lines at most. */
static void log_socket_fill(const struct log_socket *ls, struct log_batch *b, const char *lines,
                            size_t len, unsigned n)
{
    bool newline = log_line_has_newline(&ls->form);
    size_t done = 0;

    for (b->n = 0; b->n < n && done < len;) {
        const char *text = lines + done;
        const char *end = memchr(text, '\n', len - done);
        size_t text_len = (end ? (size_t)(end - text) : len - done), taken = text_len;
        size_t most = b->max_bytes > 0 ? b->max_bytes - b->head.len - newline : SIZE_MAX;
        const char *cut = newline ? "\n" : "";

        if (taken > most) {
            cut = newline ? "...\n" : "...";
            taken = log_socket_cut(text, text_len, most - 3);
        }
        log_batch_add(b, text, taken, cut);
        done += text_len + (end != NULL);
        b->ends[b->n - 1] = done;
    }
}

static size_t log_batch_first_bytes(const struct log_batch *b)
{
    return b->parts[0][PART_HEAD].iov_len + b->parts[0][PART_TEXT].iov_len +
           b->parts[0][PART_CUT].iov_len;
}

/* Send the first lines, as many as one system call takes. Returns their bytes, or -errno. */
static ssize_t log_socket_put_some(struct log_socket *ls, const char *lines, size_t len)
{
    unsigned most = ls->state == LOG_SOCKET_REFUSES ? 1 : LOG_SOCKET_BATCH;
    struct log_batch b;
    int n;

    log_line_head(&b.head, &ls->form, LOG_LEVEL_INFO, NULL);
    b.max_bytes = ls->conf.max_bytes;
    log_socket_fill(ls, &b, lines, len, most);
    while ((n = log_socket_send(ls, &b)) == -EMSGSIZE) {
        b.max_bytes = log_batch_first_bytes(&b) / 2; /* a small net.core.wmem_default */
        if (b.max_bytes < SYSLOG_CONF_MIN_BYTES)
            break;
        log_socket_fill(ls, &b, lines, len, 1);
    }
    return n < 0 ? n : (ssize_t)b.ends[n - 1];
}

static void log_socket_enter_state(struct log_socket *ls, enum log_socket_state state,
                                   int64_t after_ns)
{
    ls->state = state;
    ls->until_ns = clock_add_ns(clock_now_ns(), after_ns);
}

static bool log_socket_wait(const struct log_socket *ls, short events)
{
    struct pollfd p = {.fd = ls->fd, .events = events};

    return poll(&p, 1, LOG_SOCKET_WAIT_MS) == 1;
}

/* Has the message that was sent to try been refused? A host that is near answers while we wait. */
static bool log_socket_is_refused(const struct log_socket *ls)
{
    socklen_t len = sizeof(int);
    int error = 0;

    return log_socket_wait(ls, 0) && getsockopt(ls->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 &&
           error != 0;
}

/* See note: refused. Returns 0: send; or -errno. */
static int log_socket_check_state(struct log_socket *ls)
{
    if (ls->state == LOG_SOCKET_TAKES)
        return 0;
    if (clock_now_ns() < ls->until_ns)
        return ls->state == LOG_SOCKET_REFUSES ? -ECONNREFUSED : -EAGAIN;
    if (ls->state == LOG_SOCKET_REFUSES)
        return 0;
    if (log_socket_is_refused(ls)) {
        log_socket_enter_state(ls, LOG_SOCKET_REFUSES, LOG_SOCKET_REFUSED_NS);
        return -ECONNREFUSED;
    }
    ls->state = LOG_SOCKET_TAKES;
    return 0;
}

ssize_t log_socket_put_lines(struct log_socket *ls, const char *lines, size_t len)
{
    int rc = log_socket_check_state(ls);
    size_t done = 0;
    ssize_t n;

    if (rc == 0)
        rc = log_socket_mend(ls);
    if (rc < 0)
        return rc;
    do {
        n = log_socket_put_some(ls, lines + done, len - done);
        if (n == -EAGAIN && done == 0 && log_socket_wait(ls, POLLOUT))
            n = log_socket_put_some(ls, lines, len);
        if (n > 0)
            done += (size_t)n;
    } while (n > 0 && done < len && ls->state == LOG_SOCKET_TAKES);
    if (n > 0 && ls->state == LOG_SOCKET_REFUSES && log_socket_is_refused(ls))
        n = -ECONNREFUSED, done = 0;
    if (n == -ECONNREFUSED && log_socket_is_udp(ls))
        log_socket_enter_state(ls, LOG_SOCKET_REFUSES, LOG_SOCKET_REFUSED_NS);
    else if (n > 0 && ls->state == LOG_SOCKET_REFUSES)
        log_socket_enter_state(ls, LOG_SOCKET_TRIED, LOG_SOCKET_ANSWER_NS);
    ls->missing = n < 0 && n != -EAGAIN && n != -EMSGSIZE;
    return done > 0 ? (ssize_t)done : n;
}

bool log_socket_recovered(struct log_socket *ls)
{
    if (ls->missing)
        ls->missing = log_socket_connect(ls) < 0;
    return !ls->missing && log_socket_check_state(ls) == 0 && ls->state == LOG_SOCKET_TAKES;
}

bool log_socket_put(struct log_socket *ls, enum log_level level, const char *text)
{
    struct log_line line;
    struct log_batch b;
    int n;

    if (log_socket_mend(ls) < 0)
        return false;
    log_line_build(&line, &ls->form, level, text);
    b.head.len = b.n = 0;
    log_batch_add(&b, line.data, line.len, "");
    n = log_socket_send(ls, &b);
    if (n == -ECONNREFUSED && log_socket_is_udp(ls))
        n = log_socket_send(ls, &b); /* an earlier line was refused */
    return n == 1;
}

int log_socket_open(struct log_socket **out, const struct syslog_conf *conf)
{
    struct log_socket *ls = calloc(1, sizeof(*ls));
    int rc;

    if (!ls)
        return -ENOMEM;
    ls->conf = *conf;
    ls->form = (struct log_line_form){.layout = LOG_LINE_SYSLOG, .syslog = &ls->conf};
    ls->fd = socket(conf->address.u.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ls->fd < 0) {
        rc = -errno;
        free(ls);
        return rc;
    }
    ls->error = log_socket_connect(ls);
    *out = ls;
    return 0;
}

int log_socket_error(const struct log_socket *ls)
{
    return ls->error;
}

void log_socket_close(struct log_socket *ls)
{
    if (!ls)
        return;
    close(ls->fd);
    free(ls);
}
