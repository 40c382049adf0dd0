#include "daemon/run_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/event_fd.h"
#include "base/log.h"
#include "config/config.h"
#include "log/access_logs.h"
#include "daemon/admin_desk.h"
#include "system/notify.h"
#include "daemon/poll_timeout.h"
#include "reload/reload.h"
#include "reload/reload_edits.h"
#include "upgrade/upgrade.h"
#include "handover/server_upgrade.h"
#include "server/server_figures.h"

enum { RUN_SIGNALS, RUN_DRAIN, RUN_RELOAD, RUN_LOGS, RUN_UPGRADE, RUN_ADMIN, RUN_WATCH, RUN_LOOPS };

static void run_on_drained(void *cookie)
{
    struct run *run = cookie;

    (void)event_fd_signal(run->drained_fd);
}

int run_create(struct run **out)
{
    struct run *run = calloc(1, sizeof(*run));
    int rc;

    if (!run)
        return -ENOMEM;
    rc = signals_open(&run->signal_fd);
    if (rc < 0)
        goto err_free;
    run->drained_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (run->drained_fd < 0) {
        rc = -errno;
        goto err_close_signals;
    }
    *out = run;
    return 0;
err_close_signals:
    close(run->signal_fd);
err_free:
    free(run);
    return rc;
}

struct server_events run_events(struct run *run)
{
    return (struct server_events){.drained = run_on_drained, .cookie = run};
}

void run_destroy(struct run *run)
{
    if (!run)
        return;
    config_watch_close(&run->watch);
    close(run->drained_fd);
    close(run->signal_fd);
    free(run);
}

bool run_stop_server(struct run *run, const struct run_conf *conf, unsigned *cut)
{
    notify_extend(EXTEND_NS);
    upgrade_cancel(conf->upgrade, "this process stops");
    upgrade_tell_old(conf->upgrade, "stop");
    admin_desk_close(conf->desk);
    if (upgrade_is_pending(conf->upgrade))
        server_upgrade_leave(conf->server);
    run->stop_rc = server_stop(conf->server, cut);
    if (admin_stop(conf->admin) < 0) /* after the server: its loops answer requests */
        run->stop_rc = -ETIMEDOUT;
    run->state = STATE_STOPPED;
    upgrade_report(conf->upgrade, "end");
    return run->stop_rc != -ETIMEDOUT;
}

static void run_stop_now(struct run *run, const struct run_conf *conf)
{
    unsigned cut;

    notify_stopping("Stopping at once");
    if (run_stop_server(run, conf, &cut))
        log_notice("stopped at once; sessions reset: %u", cut);
}

static void run_log_stats(const struct run_conf *conf)
{
    server_figures_log(conf->server);
    upgrade_log_stats(conf->upgrade);
    access_logs_log_stats(conf->access_logs);
    log_notice("stats end");
}

static bool run_upgrades(const struct run_conf *conf)
{
    return upgrade_is_starting(conf->upgrade) || upgrade_is_pending(conf->upgrade);
}

static void run_reload(struct run *run, const struct run_conf *conf)
{
    if (run->state != STATE_RUNNING)
        log_event(LOG_RELOAD, LOG_LEVEL_ERROR, "reload: refused: draining; nothing was changed");
    else if (run_upgrades(conf))
        log_event(LOG_RELOAD, LOG_LEVEL_ERROR,
                  "reload: refused: an upgrade is under way; nothing was changed");
    else
        reload_begin(conf->reload);
}

static void run_upgrade(const struct run *run, const struct run_conf *conf)
{
    const struct process_conf *process = &reload_running(conf->reload)->process;

    if (run->state != STATE_RUNNING || reload_is_open(conf->reload))
        log_event(LOG_UPGRADE, LOG_LEVEL_ERROR, "upgrade: refused: %s",
                  run->state != STATE_RUNNING ? "draining"
                                              : "a reload is under way, or not confirmed yet");
    else
        upgrade_begin(conf->upgrade, process->upgrade_timeout_ns, process->max_old_processes);
}

static void run_act_on_signal(struct run *run, const struct run_conf *conf,
                              const struct signal_notice *notice)
{
    switch (notice->number) {
    case SIGTERM:
    case SIGQUIT:
        if (run->state == STATE_RUNNING)
            run_drain_begin(run, conf);
        else if (notice->number == SIGTERM && run->told_to_end)
            run_stop_now(run, conf);
        run->told_to_end |= notice->number == SIGTERM;
        break;
    case SIGINT: run_stop_now(run, conf); break;
    case SIGUSR1:
        log_target_reopen_and_log(conf->log);
        access_logs_reopen(conf->access_logs);
        break;
    case SIGUSR2: run_upgrade(run, conf); break;
    case SIGHUP: run_reload(run, conf); break;
    default: break;
    }
    if (notice->number == SIGRTMIN) /* not a constant: cannot be a case */
        run_log_stats(conf);
}

static void run_delay(struct run *run, const struct run_conf *conf,
                      const struct signal_notice *notice)
{
    bool stops = notice->number == SIGTERM || notice->number == SIGINT || notice->number == SIGQUIT;

    if (run->n_delayed < (stops ? ARRAY_LEN(run->delayed) : RUN_DELAYED))
        run->delayed[run->n_delayed++] = *notice;
    else if (stops && run->delayed[run->n_delayed - 1].number != SIGINT)
        run->delayed[run->n_delayed - 1] = *notice;
    if (stops)
        reload_give_up(conf->reload);
}

/* Must it wait for a reload's end? Not if queued (SIGHUP), or refused (SIGUSR2, but by edits). */
static bool run_waits(const struct signal_notice *notice, const struct reload *r)
{
    if (notice->number == SIGUSR1 || notice->number == SIGRTMIN)
        return !reload_edits_are_applied(r); /* edits change neither logs nor figures */
    return notice->number != SIGHUP && (notice->number != SIGUSR2 || reload_edits_are_open(r));
}

static void run_take_signals(struct run *run, const struct run_conf *conf)
{
    struct signal_notice notice;

    while (run->state != STATE_STOPPED && signals_read(run->signal_fd, &notice) == 0) {
        log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "%s from pid %ld uid %ld",
                  signals_name(notice.number), (long)notice.pid, (long)notice.uid);
        if (run_waits(&notice, conf->reload) && reload_is_applying(conf->reload))
            run_delay(run, conf, &notice);
        else
            run_act_on_signal(run, conf, &notice);
    }
}

static void run_reload_step(struct run *run, const struct run_conf *conf)
{
    reload_step(conf->reload);
    if (reload_is_applying(conf->reload))
        return;
    for (unsigned i = 0; i < run->n_delayed && run->state != STATE_STOPPED; i++)
        run_act_on_signal(run, conf, &run->delayed[i]);
    run->n_delayed = 0;
}

/* The last session has ended: stop, if the replaced processes have ended too. */
static void run_drain_finish(struct run *run, const struct run_conf *conf)
{
    unsigned old = upgrade_old(conf->upgrade), cut; /* ${cut} is not used: no session is left */

    if (old > 0 && !run->drained)
        log_event(
            LOG_PROCESS, LOG_LEVEL_NOTICE,
            "all sessions of this process have finished; replaced processes that still drain: %u",
            old);
    run->drained = true;
    if (old == 0 && run_stop_server(run, conf, &cut))
        log_notice("stopped; all sessions have finished");
}

static int64_t run_due_at_ns(const struct run *run, const struct run_conf *conf)
{
    int64_t due_at_ns =
        clock_sooner(run->logs_at_ns, watchdog_feeder_due_at_ns(&run->watchdog_feeder));

    due_at_ns = clock_sooner(due_at_ns, notify_retry_at_ns());
    if (run->state == STATE_RUNNING)
        due_at_ns = clock_sooner(due_at_ns, clock_sooner(reload_due_at_ns(conf->reload),
                                                         config_watch_due_at_ns(&run->watch)));
    if (run->state == STATE_DRAINING)
        due_at_ns = clock_sooner(clock_sooner(due_at_ns, run->close_at_ns),
                                 clock_sooner(run->tick_at_ns, run->deadline_at_ns));
    return due_at_ns;
}

static void run_close_logs(struct run *run, const struct run_conf *conf, bool unused)
{
    if (unused || clock_now_ns() >= run->logs_at_ns)
        run->logs_at_ns = access_logs_close_unused(conf->access_logs);
}

static void run_start_admin(const struct run_conf *conf)
{
    int rc = admin_start(conf->admin);

    if (rc < 0)
        log_error("admin: cannot start: %s; requests are not answered", strerror(-rc));
}

/* Take over from the starter, perhaps while this process drains already. */
static void run_take_over(const struct run *run, const struct run_conf *conf)
{
    server_upgrade_keep(conf->server);
    run_start_admin(conf);
    if (run->state == STATE_RUNNING)
        reload_notify_ready(conf->reload);
    else
        notify_stopping("Draining, sessions left: %u", server_sessions(conf->server));
}

static void run_upgrade_step(struct run *run, const struct run_conf *conf)
{
    const struct process_conf *process = &reload_running(conf->reload)->process;

    switch (upgrade_step(conf->upgrade)) {
    case UPGRADE_NOTHING:
    case UPGRADE_FAILED: break;
    case UPGRADE_TOLD_DRAIN: /* by the process that replaced this one */
        run_set_deadline(run, process->drain_timeout_ns, "drain_timeout");
        break;
    case UPGRADE_TOOK_OVER: run_take_over(run, conf); break;
    case UPGRADE_REPLACED:
        run_log_draining(conf);
        run_set_draining(run, conf, REPORT_NS);
        run_set_deadline(run, process->upgrade_drain_timeout_ns, "upgrade_drain_timeout");
        admin_leave(conf->admin);
        upgrade_leave(conf->upgrade);
        break;
    case UPGRADE_TOLD_STOP: run_stop_now(run, conf); break;
    case UPGRADE_OLD_ENDED:
        if (run->drained)
            run_drain_finish(run, conf);
        break;
    }
}

/* Why changes are refused now; NULL: they are allowed. */
static const char *run_obstacle(const struct run *run, const struct run_conf *conf)
{
    if (run->state != STATE_RUNNING)
        return "draining";
    return upgrade_is_pending(conf->upgrade) ? "an upgrade is under way" : NULL;
}

/* Handle all events, first the events that may stop the server. */
static void run_act(struct run *run, const struct run_conf *conf, const struct pollfd *fds)
{
    eventfd_t once;

    if (fds[RUN_DRAIN].revents != 0 && eventfd_read(run->drained_fd, &once) == 0)
        run_drain_finish(run, conf);
    if (run->state != STATE_STOPPED && fds[RUN_RELOAD].revents != 0)
        run_reload_step(run, conf);
    if (run->state == STATE_RUNNING)
        reload_look(conf->reload);
    if (run->state == STATE_RUNNING &&
        config_watch_step(&run->watch, conf->reload, !run_upgrades(conf)))
        run_reload(run, conf);
    if (run->state != STATE_STOPPED && fds[RUN_SIGNALS].revents != 0)
        run_take_signals(run, conf);
    if (run->state != STATE_STOPPED && fds[RUN_UPGRADE].revents != 0)
        run_upgrade_step(run, conf);
    if (run->state != STATE_STOPPED)
        admin_desk_step(conf->desk, run_obstacle(run, conf));
    if (run->state == STATE_DRAINING)
        run_drain_tick(run, conf);
    if (run->state != STATE_STOPPED)
        watchdog_feeder_look(&run->watchdog_feeder, fds[RUN_LOOPS].revents != 0);
    if (run->state != STATE_STOPPED)
        run_close_logs(run, conf, fds[RUN_LOGS].revents != 0);
    notify_retry();
}

enum exit_code run_until_stopped(struct run *run, const struct run_conf *conf, bool *alone)
{
    struct pollfd fds[] = {
        [RUN_SIGNALS] = {.fd = run->signal_fd, .events = POLLIN},
        [RUN_DRAIN] = {.fd = run->drained_fd, .events = POLLIN},
        [RUN_RELOAD] = {.fd = reload_fd(conf->reload), .events = POLLIN},
        [RUN_LOGS] = {.fd = access_logs_fd(conf->access_logs), .events = POLLIN},
        [RUN_UPGRADE] = {.fd = upgrade_fd(conf->upgrade), .events = POLLIN},
        [RUN_WATCH] = {.events = POLLIN},
        [RUN_LOOPS] = {.events = POLLIN},
        [RUN_ADMIN] = {.fd = admin_desk_fd(conf->desk), .events = POLLIN},
    };
    enum exit_code code = EXIT_CODE_OK;

    run->logs_at_ns = run->close_at_ns = run->deadline_at_ns = CLOCK_NEVER;
    if (!upgrade_is_pending(conf->upgrade))
        run_start_admin(conf);
    watchdog_feeder_start(&run->watchdog_feeder, conf->server);
    run->watch.path = conf->config_path;
    while (run->state != STATE_STOPPED) {
        fds[RUN_LOOPS].fd = watchdog_feeder_fd(&run->watchdog_feeder);
        fds[RUN_WATCH].fd = run->state == STATE_RUNNING ? config_watch_fd(&run->watch) : -1;
        if (poll(fds, ARRAY_LEN(fds), poll_timeout_ms(run_due_at_ns(run, conf))) >= 0) {
            run_act(run, conf, fds);
        } else if (errno != EINTR && errno != EAGAIN) {
            log_error("cannot wait for signals: %s; stopping", strerror(errno));
            run_stop_now(run, conf);
            code = EXIT_CODE_FAILED;
        }
    }
    *alone = run->stop_rc == 0;
    return run->stop_rc == -ETIMEDOUT ? EXIT_CODE_FAILED : code;
}
