#include "upgrade/successor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "upgrade/epoll_set.h"
#include "upgrade/hand_over.h"
#include "system/program.h"

/* Time for the program to exit after it has closed the socket. */
#define SUCCESSOR_END_NS NS_PER_S

struct successor {
    struct launch launch;
    int fd;
    int epoll_fd;
    int timer_fd;
    int64_t timeout_ns;
    bool is_silent; /* the program has closed its end of the socket */
    bool has_pid_file;
    bool is_going; /* successor_go() was called */
    bool is_gone;  /* successor_set_main() has succeeded */
    char last_line[LOG_LINE_BYTES];
    char reason[LOG_LINE_BYTES + 256];
};

static int successor_set_timer(const struct successor *s, int64_t after_ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = after_ns / NS_PER_S, .tv_nsec = after_ns % NS_PER_S}};

    return timerfd_settime(s->timer_fd, 0, &when, NULL) < 0 ? -errno : 0;
}

static int successor_open(struct successor *s)
{
    int rc;

    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll_fd < 0)
        return -errno;
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (s->timer_fd < 0)
        return -errno;
    rc = successor_set_timer(s, s->timeout_ns);
    if (rc == 0)
        rc = epoll_set_add(s->epoll_fd, s->timer_fd);
    return rc;
}

static int successor_launch(struct successor *s, const struct successor_conf *conf)
{
    struct launch_descriptor *list = calloc(conf->n, sizeof(*list));
    struct launch_conf launch = {.path = conf->program->path,
                                 .argv = conf->program->argv,
                                 .mask = &conf->program->mask,
                                 .descriptors = list,
                                 .n = conf->n};
    int ends[2], rc;

    if (!list)
        return -ENOMEM;
    memcpy(list, conf->descriptors, conf->n * sizeof(*list));
    rc = hand_over_open(ends);
    if (rc < 0) {
        free(list);
        return rc;
    }
    s->fd = ends[0];
    list[conf->n - 1] = (struct launch_descriptor){.fd = ends[1], .name = HAND_OVER_NAME};
    rc = launch_start(&s->launch, &launch);
    close(ends[1]);
    free(list);
    return rc;
}

int successor_start(struct successor **out, const struct successor_conf *conf)
{
    struct successor *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return -ENOMEM;
    s->fd = s->epoll_fd = s->timer_fd = -1;
    s->timeout_ns = conf->timeout_ns;
    rc = successor_open(s);
    if (rc == 0)
        rc = successor_launch(s, conf);
    if (rc == 0)
        rc = epoll_set_add(s->epoll_fd, s->fd);
    if (rc == 0)
        rc = epoll_set_add(s->epoll_fd, s->launch.report_fd);
    if (rc < 0) {
        successor_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

int successor_fd(const struct successor *s)
{
    return s->epoll_fd;
}

pid_t successor_pid(const struct successor *s)
{
    return s->launch.pid;
}

bool successor_has_pid_file(const struct successor *s)
{
    return s->has_pid_file;
}

const char *successor_reason(const struct successor *s)
{
    return s->reason;
}

static enum successor_state successor_fail(struct successor *s, const char *why)
{
    const char *line = s->last_line;

    snprintf(s->reason, sizeof(s->reason), "%s%s%s%s", why,
             *line ? " (its last warning or error: " : "", line, *line ? ")" : "");
    return SUCCESSOR_FAILED;
}

static enum successor_state successor_act(struct successor *s, const char *text)
{
    const char *rest = hand_over_is(text, "log");

    if (rest)
        snprintf(s->last_line, sizeof(s->last_line), "%.*s", LOG_LINE_BYTES - 1, rest);
    if (s->is_going && hand_over_is(text, "taken"))
        return SUCCESSOR_TAKES_OVER;
    rest = hand_over_is(text, "ready");
    if (!rest)
        return SUCCESSOR_STARTING;
    s->has_pid_file = hand_over_is(rest, "pid_file") != NULL;
    return SUCCESSOR_READY;
}

static enum successor_state successor_read(struct successor *s)
{
    char text[HAND_OVER_TEXT_BYTES];
    int state_fd, rc;

    while ((rc = hand_over_receive(s->fd, text, &state_fd)) == 0) {
        enum successor_state state = successor_act(s, text);

        if (state_fd >= 0)
            close(state_fd);
        if (state != SUCCESSOR_STARTING)
            return state;
    }
    if (rc == -EPIPE && !s->is_silent) {
        s->is_silent = true;
        epoll_set_remove(s->epoll_fd, s->fd);
        (void)successor_set_timer(s, SUCCESSOR_END_NS);
    }
    return SUCCESSOR_STARTING;
}

static enum successor_state successor_settle(struct successor *s)
{
    epoll_set_remove(s->epoll_fd, s->timer_fd);
    epoll_set_remove(s->epoll_fd, s->launch.report_fd);
    launch_release(&s->launch);
    return SUCCESSOR_TAKES_OVER;
}

enum successor_state successor_step(struct successor *s)
{
    char result[LAUNCH_RESULT_BYTES];
    enum successor_state state = successor_read(s);
    uint64_t expirations;

    if (state == SUCCESSOR_TAKES_OVER)
        return successor_settle(s);
    if (strcmp(launch_result(&s->launch, result, sizeof(result)), "runs") != 0)
        return successor_fail(s, result);
    if (state == SUCCESSOR_READY)
        return SUCCESSOR_READY;
    if (read(s->timer_fd, &expirations, sizeof(expirations)) < 0)
        return SUCCESSOR_STARTING;
    if (s->is_silent)
        return successor_fail(s, "closed its socket to us; killed");
    snprintf(result, sizeof(result), "not ready after %g s (upgrade_timeout); killed",
             (double)s->timeout_ns / NS_PER_S);
    return successor_fail(s, result);
}

int successor_go(struct successor *s, int state_fd)
{
    int rc = hand_over_send(s->fd, "go", state_fd);

    if (rc < 0) {
        (void)successor_fail(s, "ended when it was ready");
        return rc;
    }
    s->is_going = true;
    return 0;
}

int successor_set_main(struct successor *s, int state_fd)
{
    int rc = hand_over_send(s->fd, "main", state_fd);

    if (rc < 0) {
        (void)successor_fail(s, "ended when it was to take over");
        return rc;
    }
    s->is_gone = true;
    launch_close(&s->launch);
    return 0;
}

int successor_socket(const struct successor *s)
{
    return s->fd;
}

void successor_report(struct successor *s, const char *word, int state_fd)
{
    int rc = hand_over_send(s->fd, word, state_fd);

    if (rc < 0)
        log_debug("upgrade: message \"%s\" was not sent to the new process: %s", word,
                  strerror(-rc));
}

bool successor_order(struct successor *s, char *word)
{
    int state_fd, rc = hand_over_receive(s->fd, word, &state_fd);

    if (rc == 0 && state_fd >= 0)
        close(state_fd);
    if (rc == -EPIPE)
        epoll_set_remove(s->epoll_fd, s->fd);
    return rc == 0;
}

static void successor_close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void successor_destroy(struct successor *s)
{
    if (!s)
        return;
    if (s->launch.pid > 0 && !s->is_gone) {
        launch_kill(&s->launch);
        launch_close(&s->launch);
    }
    successor_close_fd(s->fd);
    successor_close_fd(s->timer_fd);
    successor_close_fd(s->epoll_fd);
    free(s);
}
