#include "upgrade/predecessors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "upgrade/ban_files.h"
#include "upgrade/hand_over.h"
#include "upgrade/predecessors_internal.h"
#include "handover/server_settings.h"
#include "handover/server_state.h"

/* Pid of the process that created the socket ${fd}. */
static long predecessors_pid(int fd)
{
    struct ucred other = {.pid = 0};
    socklen_t len = sizeof(other);

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &len);
    return other.pid;
}

/* Are messages of ${q} read now? Before the take-over only the starter's; none while lent. */
static bool predecessors_is_read(const struct predecessors *p, const struct predecessor *q)
{
    return !p->lent && (!p->starter || q == p->starter);
}

void predecessors_watch(struct predecessors *p)
{
    struct epoll_event event = {.events = EPOLLIN};

    list_for_each (node, &p->list) {
        const struct predecessor *q = LIST_ENTRY(node, struct predecessor, link);
        int rc = epoll_ctl(p->epoll_fd, predecessors_is_read(p, q) ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                           q->fd, &event);

        MUST(rc == 0 || errno == EEXIST || errno == ENOENT || errno == ENOMEM || errno == ENOSPC);
    }
}

static void predecessors_send_line(const struct predecessors *p, const char *line, size_t len)
{
    char message[HAND_OVER_TEXT_BYTES];

    snprintf(message, sizeof(message), "log %.*s", (int)len, line);
    if (hand_over_send(p->log_fd, message, -1) < 0)
        return; /* the line is lost: the starter's queue is full, or the starter has ended */
}

static void predecessors_copy_line(void *cookie, enum log_level level, const char *text)
{
    (void)level;
    predecessors_send_line(cookie, text, LOG_LINE_BYTES);
}

int predecessors_open(struct predecessors **out)
{
    struct predecessors *p = calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return -ENOMEM;
    list_init(&p->list);
    list_init(&p->unused);
    past_init(&p->past);
    p->pid_file_fd = p->state_fd = p->bans_fd = p->log_fd = p->sessions_fd = -1;
    p->epoll_fd = -1;
    rc = predecessors_read(p);
    if (rc == 0) {
        p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        rc = p->epoll_fd < 0 ? -errno : 0;
    }
    if (rc < 0) {
        predecessors_close(p);
        return rc;
    }
    p->sink = (struct log_sink){.write = predecessors_copy_line, .cookie = p};
    if (p->starter) {
        p->starter->state_fd = p->state_fd;
        p->state_fd = -1;
        p->log_fd = fcntl(p->starter->fd, F_DUPFD_CLOEXEC, 0);
        log_set_copy(&p->sink);
    }
    predecessors_watch(p);
    *out = p;
    return 0;
}

void predecessors_tell_lines(struct predecessors *p, const char *lines)
{
    while (p->starter && *lines) {
        size_t len = strcspn(lines, "\n");

        predecessors_send_line(p, lines, len < LOG_LINE_BYTES ? len : LOG_LINE_BYTES);
        lines += len + (lines[len] == '\n');
    }
}

int predecessors_take_pid_file(struct predecessors *p)
{
    int fd = p->pid_file_fd;

    p->pid_file_fd = -1;
    return fd;
}

static void predecessors_use_settings(const struct predecessors *p, const struct predecessor *q,
                                      const char *text)
{
    int rc = server_settings_use(p->server, text);

    if (rc < 0)
        log_warning("upgrade: settings made by an administrator in process %ld are lost: %s",
                    predecessors_pid(q->fd), strerror(-rc));
}

static int predecessors_attach_starter(const struct predecessors *p, struct predecessor *q,
                                       const char *text)
{
    int rc = server_state_create(&q->state, p->server, "");

    server_state_use_names(p->server, text);
    predecessors_use_settings(p, q, text); /* before the health: settings may enable servers */
    if (rc == 0 && server_state_report(q->state, text) < 0)
        log_warning("upgrade: report of process %ld: not applied; the next one follows soon",
                    predecessors_pid(q->fd));
    return rc;
}

static void predecessors_attach_one(const struct predecessors *p, struct predecessor *q)
{
    char *text = NULL;
    int rc = hand_over_read_state(&text, q->state_fd);

    if (rc == 0)
        rc = q == p->starter ? predecessors_attach_starter(p, q, text)
                             : server_state_create(&q->state, p->server, text);
    if (rc < 0)
        log_warning("upgrade: %s of process %ld are lost: %s",
                    q != p->starter ? "counters"
                    : text          ? "counters and server health"
                                    : "counters, server health and settings",
                    predecessors_pid(q->fd), strerror(-rc));
    free(text);
    if (q->state_fd >= 0)
        close(q->state_fd);
    q->state_fd = -1;
}

void predecessors_attach(struct predecessors *p, struct server *sv)
{
    p->server = sv;
    predecessors_drop_unused(p);
    ban_files_use(sv, p->bans_fd);
    if (p->bans_fd >= 0)
        close(p->bans_fd);
    p->bans_fd = -1;
    list_for_each (node, &p->list)
        predecessors_attach_one(p, LIST_ENTRY(node, struct predecessor, link));
}

/* Send ${text} to ${q}. If ${q} has ended, predecessors_step() will notice. */
static void predecessors_say(const struct predecessor *q, const char *text)
{
    struct pollfd writable = {.fd = q->fd, .events = POLLOUT};

    while (hand_over_send(q->fd, text, -1) == -EAGAIN)
        (void)poll(&writable, 1, -1); /* wait: the starter has yet to read our log lines */
}

bool predecessors_ready(struct predecessors *p, bool has_pid_file)
{
    if (!p->starter)
        return false;
    predecessors_say(p->starter, has_pid_file ? "ready pid_file" : "ready");
    return true;
}

int predecessors_fd(const struct predecessors *p)
{
    return p->epoll_fd;
}

bool predecessors_is_pending(const struct predecessors *p)
{
    return p->starter != NULL;
}

int predecessors_take_sessions(struct predecessors *p)
{
    int fd = p->sessions_fd;

    p->sessions_fd = -1;
    return fd;
}

struct past *predecessors_past(struct predecessors *p)
{
    return &p->past;
}

unsigned predecessors_draining(const struct predecessors *p)
{
    unsigned n = 0;

    list_for_each (node, &p->list)
        n += LIST_ENTRY(node, struct predecessor, link) != p->starter;
    return n;
}

/* False: the report is lost. */
static bool predecessors_report(const struct predecessors *p, struct predecessor *q, bool settings,
                                int state_fd)
{
    bool is_used;
    char *text;

    if (!q->state || state_fd < 0 || hand_over_read_state(&text, state_fd) < 0)
        return false;
    is_used = server_state_report(q->state, text) == 0;
    if (!is_used)
        log_debug("upgrade: a report of process %ld is lost", predecessors_pid(q->fd));
    if (settings)
        predecessors_use_settings(p, q, text);
    free(text);
    return is_used;
}

static void predecessors_take_over(struct predecessors *p)
{
    log_set_copy(NULL);
    p->starter = NULL;
    predecessors_watch(p);
}

static bool predecessors_act(struct predecessors *p, struct predecessor *q, const char *text,
                             int state_fd)
{
    bool is_starter = q == p->starter, go = is_starter && hand_over_is(text, "go");
    bool is_over = is_starter && hand_over_is(text, "main"), has_ended = hand_over_is(text, "end");

    if (go || is_over || has_ended || hand_over_is(text, "state"))
        q->is_lost = !predecessors_report(p, q, go || is_over, state_fd) && has_ended;
    if (is_starter && p->server && hand_over_is(text, "bans"))
        ban_files_use(p->server, state_fd);
    q->has_ended |= has_ended;
    if (!is_starter && state_fd >= 0 && hand_over_is(text, "sessions") && p->sessions_fd < 0) {
        p->sessions_fd = state_fd;
        q->has_given = true;
        return false;
    }
    if (state_fd >= 0 && !(is_starter && past_keep(&p->past, text, state_fd)))
        close(state_fd);
    if (go)
        predecessors_say(q, "taken");
    if (!is_over)
        return false;
    log_event(LOG_UPGRADE, LOG_LEVEL_NOTICE, "upgrade: took over from process %ld, which drains",
              predecessors_pid(q->fd));
    predecessors_take_over(p);
    return true;
}

static void predecessors_remove(struct predecessors *p, struct predecessor *q)
{
    /* close(2) is not enough: a copy of the descriptor may stay open */
    (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, q->fd, NULL);
    list_remove(&q->link);
    server_state_destroy(q->state);
    if (q->state_fd >= 0)
        close(q->state_fd);
    close(q->fd);
    free(q);
}

/* Forget ${q}, which has ended. True: ${q} was the starter. */
static bool predecessors_lose(struct predecessors *p, struct predecessor *q)
{
    bool was_starter = q == p->starter;
    long pid = predecessors_pid(q->fd);
    /* after its last report only sessions at servers that have left its upstreams are open */
    bool counts = q->state && server_state_close(q->state, q->has_given) == 0;

    if (was_starter) {
        predecessors_take_over(p);
        log_event(LOG_UPGRADE, LOG_LEVEL_WARNING,
                  "upgrade: took over: process %ld ended before its hand-over", pid);
    } else if (q->has_ended) {
        log_event(
            LOG_UPGRADE, LOG_LEVEL_NOTICE, "upgrade: process %ld has drained and ended%s", pid,
            q->is_lost && counts ? ": its last report is lost, its sessions count as errors" : "");
    } else {
        log_event(LOG_UPGRADE, LOG_LEVEL_WARNING,
                  "upgrade: process %ld ended before it had drained: its sessions %s as errors",
                  pid, counts ? "count" : "do not count");
    }
    predecessors_remove(p, q);
    return was_starter;
}

static bool predecessors_step_one(struct predecessors *p, struct predecessor *q)
{
    char text[HAND_OVER_TEXT_BYTES];
    bool now = false;
    int state_fd, rc;

    while ((rc = hand_over_receive(q->fd, text, &state_fd)) == 0)
        now |= predecessors_act(p, q, text, state_fd);
    if (rc == -EPIPE)
        now |= predecessors_lose(p, q);
    return now;
}

bool predecessors_step(struct predecessors *p)
{
    bool now = false;

    list_for_each_safe (node, &p->list) {
        struct predecessor *q = LIST_ENTRY(node, struct predecessor, link);

        if (predecessors_is_read(p, q))
            now |= predecessors_step_one(p, q);
    }
    return now;
}

void predecessors_tell(struct predecessors *p, const char *word)
{
    list_for_each (node, &p->list) {
        const struct predecessor *q = LIST_ENTRY(node, struct predecessor, link);

        if (q != p->starter && hand_over_send(q->fd, word, -1) < 0)
            log_debug("upgrade: process %ld cannot be told to %s", predecessors_pid(q->fd), word);
    }
}

void predecessors_close(struct predecessors *p)
{
    if (!p)
        return;
    if (p->starter)
        log_set_copy(NULL);
    list_for_each_safe (node, &p->list)
        predecessors_remove(p, LIST_ENTRY(node, struct predecessor, link));
    predecessors_drop_unused(p);
    past_close(&p->past);
    if (p->pid_file_fd >= 0)
        close(p->pid_file_fd);
    if (p->state_fd >= 0)
        close(p->state_fd);
    if (p->bans_fd >= 0)
        close(p->bans_fd);
    if (p->log_fd >= 0)
        close(p->log_fd);
    if (p->sessions_fd >= 0)
        close(p->sessions_fd);
    if (p->epoll_fd >= 0)
        close(p->epoll_fd);
    free(p);
}
