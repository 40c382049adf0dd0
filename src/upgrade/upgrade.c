#include "upgrade/upgrade.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "upgrade/ban_files.h"
#include "upgrade/epoll_set.h"
#include "upgrade/fd_store.h"
#include "upgrade/hand_over.h"
#include "system/notify.h"
#include "upgrade/past.h"
#include "system/pid_file.h"
#include "upgrade/predecessors.h"
#include "system/program.h"
#include "reload/reload.h"
#include "upgrade/session_handoff.h"
#include "upgrade/successor.h"
#include "upgrade/upgrade_gift.h"
#include "handover/handoff_figures.h"
#include "handover/server_upgrade.h"
#include "server/server.h"
#include "stats/figure_log.h"

enum upgrade_state { UPGRADE_SERVING, UPGRADE_STARTING, UPGRADE_IS_REPLACED };

struct upgrade {
    struct upgrade_conf conf;
    enum upgrade_state state;
    struct successor *successor; /* NULL: SERVING */
    int64_t bans_at_ns;          /* when bans were handed over to it */
    struct session_handoff *sessions;
    int epoll_fd;
    char failure[UPGRADE_FAILURE_BYTES];
};

int upgrade_create(struct upgrade **out, const struct upgrade_conf *conf)
{
    struct upgrade *u = calloc(1, sizeof(*u));
    int rc;

    if (!u)
        return -ENOMEM;
    u->conf = *conf;
    u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (u->epoll_fd < 0) {
        rc = -errno;
        free(u);
        return rc;
    }
    rc = session_handoff_create(&u->sessions, conf->server);
    if (rc == 0)
        rc = epoll_set_add(u->epoll_fd, session_handoff_fd(u->sessions));
    if (rc == 0)
        rc = epoll_set_add(u->epoll_fd, predecessors_fd(conf->predecessors));
    if (rc < 0) {
        upgrade_destroy(u);
        return rc;
    }
    *out = u;
    return 0;
}

int upgrade_fd(const struct upgrade *u)
{
    return u->epoll_fd;
}

bool upgrade_is_starting(const struct upgrade *u)
{
    return u->state == UPGRADE_STARTING;
}

bool upgrade_is_pending(const struct upgrade *u)
{
    return predecessors_is_pending(u->conf.predecessors);
}

bool upgrade_is_replaced(const struct upgrade *u)
{
    return u->state == UPGRADE_IS_REPLACED;
}

unsigned upgrade_old(const struct upgrade *u)
{
    if (u->state == UPGRADE_IS_REPLACED || upgrade_is_pending(u))
        return 0; /* another process talks to them */
    return predecessors_draining(u->conf.predecessors);
}

void upgrade_tell_old(struct upgrade *u, const char *word)
{
    if (u->state != UPGRADE_IS_REPLACED && !upgrade_is_pending(u))
        predecessors_tell(u->conf.predecessors, word);
}

static void upgrade_end(struct upgrade *u, const char *why)
{
    snprintf(u->failure, sizeof(u->failure), "%s", why);
    notify_status("Accepting; the upgrade failed: %s", why);
    successor_destroy(u->successor);
    u->successor = NULL;
    u->state = UPGRADE_SERVING;
    predecessors_return(u->conf.predecessors);
    pid_file_claim(u->conf.pid_file);
}

static void upgrade_fail(struct upgrade *u, const char *why)
{
    log_event(LOG_UPGRADE, LOG_LEVEL_ERROR, "upgrade: failed: %s; this process goes on", why);
    upgrade_end(u, why);
}

static int upgrade_start(struct upgrade *u, int64_t timeout_ns)
{
    struct successor_conf conf = {.program = u->conf.program, .timeout_ns = timeout_ns};
    struct upgrade_gift gift;
    int rc;

    u->bans_at_ns = clock_now_ns();
    rc = upgrade_gift_open(&gift, &u->conf);
    if (rc == 0) {
        conf.descriptors = gift.list;
        conf.n = gift.n;
        rc = successor_start(&u->successor, &conf);
    }
    upgrade_gift_close(&gift);
    if (rc == 0)
        rc = epoll_set_add(u->epoll_fd, successor_fd(u->successor));
    return rc;
}

/* Why an upgrade cannot begin; NULL: it can. */
static const char *upgrade_obstacle(const struct upgrade *u, unsigned max_old)
{
    if (upgrade_is_pending(u))
        return "this process has not taken over from the one that started it";
    if (upgrade_is_starting(u))
        return "another is under way";
    if (upgrade_is_replaced(u))
        return "this process was replaced";
    if (session_handoff_is_under_way(u->sessions))
        return "sessions of the process before are still being taken over";
    if (u->conf.obstacle)
        return u->conf.obstacle;
    if (getpid() == 1)
        return "this is process 1, and its end would end all others: start another container";
    return upgrade_old(u) >= max_old
               ? "max_old_processes is reached: that many replaced processes still drain"
               : NULL;
}

const char *upgrade_failure(const struct upgrade *u)
{
    return u->failure;
}

int upgrade_begin(struct upgrade *u, int64_t timeout_ns, unsigned max_old)
{
    const char *obstacle = upgrade_obstacle(u, max_old);
    char why[UPGRADE_FAILURE_BYTES];
    int rc;

    if (obstacle) {
        log_event(LOG_UPGRADE, LOG_LEVEL_ERROR, "upgrade: refused: %s", obstacle);
        snprintf(u->failure, sizeof(u->failure), "%s", obstacle);
        return -EBUSY;
    }
    rc = upgrade_start(u, timeout_ns);
    if (rc < 0) {
        snprintf(why, sizeof(why), "cannot start %s: %s", u->conf.program->path, strerror(-rc));
        upgrade_fail(u, why);
        return rc;
    }
    u->state = UPGRADE_STARTING;
    log_event(LOG_UPGRADE, LOG_LEVEL_NOTICE, "upgrade: started %s as process %ld",
              u->conf.program->path, (long)successor_pid(u->successor));
    notify_status("Accepting; an upgrade is under way");
    return 0;
}

void upgrade_cancel(struct upgrade *u, const char *why)
{
    session_handoff_stop(u->sessions);
    if (!upgrade_is_starting(u))
        return;
    log_event(LOG_UPGRADE, LOG_LEVEL_WARNING, "upgrade: cancelled: %s; process %ld is killed", why,
              (long)successor_pid(u->successor));
    upgrade_end(u, why);
}

void upgrade_leave(struct upgrade *u)
{
    server_upgrade_close(u->conf.server);
    session_handoff_offer(u->sessions, successor_socket(u->successor));
}

void upgrade_handoff(const struct upgrade *u, struct handoff_figures *out)
{
    session_handoff_figures(u->sessions, out);
}

void upgrade_log_stats(const struct upgrade *u)
{
    struct handoff_figures figures;

    upgrade_handoff(u, &figures);
    handoff_figures_show(&figures, figure_log());
}

void upgrade_report(struct upgrade *u, const char *word)
{
    int fd, rc;

    if (!upgrade_is_replaced(u))
        return;
    rc = upgrade_gift_write_state(&u->conf, false, &fd);
    if (rc < 0) {
        log_warning("upgrade: counters of this process were not sent to the new one: %s",
                    strerror(-rc));
        return;
    }
    successor_report(u->successor, word, fd);
    close(fd);
}

/* Ask the new process to take over. If it fails before its answer, systemd does not notice. */
static enum upgrade_event upgrade_go(struct upgrade *u)
{
    struct successor *s = u->successor;
    pid_t pid = successor_pid(s);
    int state_fd = -1, rc = upgrade_gift_write_state(&u->conf, true, &state_fd);

    if (rc < 0)
        log_warning("upgrade: counters cannot be sent to process %ld yet: %s; they follow later",
                    (long)pid, strerror(-rc));
    rc = successor_go(s, state_fd);
    if (state_fd >= 0)
        close(state_fd);
    if (rc == 0)
        return UPGRADE_NOTHING;
    upgrade_fail(u, rc == -EPIPE ? successor_reason(s) : strerror(-rc));
    return UPGRADE_FAILED;
}

static enum upgrade_event upgrade_replace(struct upgrade *u)
{
    char why[UPGRADE_FAILURE_BYTES];
    pid_t pid = successor_pid(u->successor);
    int rc = notify_hand_over(pid); /* first: systemd accepts messages of the main process only */
    int state_fd = -1;

    if (rc < 0) {
        snprintf(why, sizeof(why), "systemd cannot be notified: %s", strerror(-rc));
        upgrade_fail(u, why);
        return UPGRADE_FAILED;
    }
    rc = upgrade_gift_write_state(&u->conf, true, &state_fd);
    if (rc < 0)
        log_warning("upgrade: process %ld does not get what was set since it was ready: %s",
                    (long)pid, strerror(-rc));
    ban_files_send(u->conf.server, u->successor, u->bans_at_ns);
    past_send(u->conf.admin, u->successor);
    rc = successor_set_main(u->successor, state_fd);
    if (state_fd >= 0)
        close(state_fd);
    if (rc < 0) {
        notify_set_main(true);
        upgrade_fail(u, successor_reason(u->successor));
        return UPGRADE_FAILED;
    }
    pid_file_give(u->conf.pid_file, successor_has_pid_file(u->successor) ? pid : 0);
    u->state = UPGRADE_IS_REPLACED;
    log_event(LOG_UPGRADE, LOG_LEVEL_NOTICE, "upgrade: process %ld has replaced this one",
              (long)pid);
    return UPGRADE_REPLACED;
}

static enum upgrade_event upgrade_take_orders(struct upgrade *u)
{
    enum upgrade_event event = UPGRADE_NOTHING;
    char text[HAND_OVER_TEXT_BYTES];

    while (successor_order(u->successor, text)) {
        if (hand_over_is(text, "drain") && event == UPGRADE_NOTHING)
            event = UPGRADE_TOLD_DRAIN;
        if (hand_over_is(text, "stop"))
            event = UPGRADE_TOLD_STOP;
    }
    return event;
}

static enum upgrade_event upgrade_step_successor(struct upgrade *u)
{
    if (upgrade_is_replaced(u))
        return upgrade_take_orders(u);
    switch (successor_step(u->successor)) {
    case SUCCESSOR_STARTING: break;
    case SUCCESSOR_READY: return upgrade_go(u);
    case SUCCESSOR_TAKES_OVER: return upgrade_replace(u);
    case SUCCESSOR_FAILED: upgrade_fail(u, successor_reason(u->successor)); return UPGRADE_FAILED;
    }
    return UPGRADE_NOTHING;
}

static void upgrade_take_sessions(struct upgrade *u)
{
    const struct process_conf *conf = &reload_running(u->conf.reload)->process;
    int fd = predecessors_take_sessions(u->conf.predecessors);

    if (fd >= 0)
        session_handoff_take(u->sessions, fd, conf->upgrade_sessions ? conf->handoff_rate : 0);
}

enum upgrade_event upgrade_step(struct upgrade *u)
{
    struct predecessors *old = u->conf.predecessors;
    unsigned before = predecessors_draining(old);

    session_handoff_step(u->sessions);
    if (u->successor)
        return upgrade_step_successor(u);
    if (predecessors_step(old)) {
        past_use(predecessors_past(old), u->conf.admin);
        notify_set_main(true);
        pid_file_claim(u->conf.pid_file);
        fd_store_give_up(u->conf.sockets);
        upgrade_take_sessions(u); /* the offer may have come together with "main" */
        return UPGRADE_TOOK_OVER;
    }
    upgrade_take_sessions(u);
    return predecessors_draining(old) < before ? UPGRADE_OLD_ENDED : UPGRADE_NOTHING;
}

void upgrade_destroy(struct upgrade *u)
{
    if (!u)
        return;
    session_handoff_destroy(u->sessions);
    successor_destroy(u->successor);
    close(u->epoll_fd);
    free(u);
}
