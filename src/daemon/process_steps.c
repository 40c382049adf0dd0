/* daemon/process_steps: the parts of the process, see reload/process_change.h. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "log/access_logs.h"
#include "daemon/admin_desk.h"
#include "upgrade/fd_store.h"
#include "log/log_target.h"
#include "system/pid_file.h"
#include "upgrade/predecessors.h"
#include "reload/process_change.h"
#include "reload/reload.h"
#include "daemon/run.h"
#include "upgrade/ticket_keys.h"
#include "upgrade/upgrade.h"
#include "engine/loop.h"
#include "server/server.h"

static int process_start_failed(const char *what, int rc)
{
    log_error("%s: %s", what, strerror(-rc));
    return rc;
}

/* Closes a descriptor of LISTEN_FDS. sd_listen_fds(3) needs all of them: signals use its number. */
static int process_prepare_ticket_keys(struct process_change *change)
{
    (void)change;
    ticket_keys_take();
    return 0;
}

static int process_prepare_signals(struct process_change *change)
{
    int rc = run_create(&change->process->run);

    return rc < 0 ? process_start_failed("signals: cannot be set up", rc) : 0;
}

static void process_cancel_signals(struct process_change *change)
{
    run_destroy(change->process->run);
}

static void process_commit_log(struct process_change *change)
{
    log_set_level(change->next->process.log_level);
}

/* From here on lines go to the log, at its level. */
static int process_prepare_log(struct process_change *change)
{
    struct process *p = change->process;
    const char *where = change->next->process.log;
    int rc = log_target_open(&p->log, where, &p->privileges);

    if (rc == 0)
        rc = log_target_error(p->log);
    if (rc < 0) {
        log_error("log %s: %s", log_target_describe(where), strerror(-rc));
        log_target_close(p->log);
        p->log = NULL;
        return rc;
    }
    log_set_sink(log_target_sink(p->log));
    process_commit_log(change);
    return 0;
}

static void process_cancel_log(struct process_change *change)
{
    const char *where = change->next->process.log;

    if (change->rc == -ENOMEM)
        log_error("cannot start: out of memory");
    log_target_close(change->process->log);
    if (change->rc < 0 && strcmp(where, "stderr") != 0)
        log_error("could not start; the log (%s) says why", where);
}

static void process_log_versions(const char *config_path)
{
    char backend[64];

    loop_backend_text(backend, sizeof(backend));
    log_notice("reactord " REACTORD_VERSION " starts with %s: %s, glibc %s", config_path, backend,
               gnu_get_libc_version());
}

static int process_prepare_limits(struct process_change *change)
{
    struct rlimit limit;
    rlim_t before;

    process_log_versions(change->process->config_path);
    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warning("limit of open files: cannot be raised, stays at %llu: %s",
                    (unsigned long long)before, strerror(errno));
    else
        log_info("limit of open files: %llu (was %llu)", (unsigned long long)limit.rlim_max,
                 (unsigned long long)before);
    return 0;
}

/* Give up inherited sockets without a listener, unless they still belong to the starter. */
static void process_give_up_sockets(const struct process *p)
{
    if (!predecessors_is_pending(p->predecessors))
        fd_store_give_up(p->sockets);
}

static int process_prepare_sockets(struct process_change *change)
{
    struct process *p = change->process;
    int rc = fd_store_open(&p->sockets);

    if (rc < 0)
        return rc;
    p->socket_store = fd_store_ops(p->sockets);
    p->socket_store.shared = predecessors_is_pending(p->predecessors);
    process_give_up_sockets(p);
    return 0;
}

/* After the start no socket is left to close. */
static void process_commit_sockets(struct process_change *change)
{
    fd_store_close_unwanted(change->process->sockets);
    process_give_up_sockets(change->process);
}

static void process_cancel_sockets(struct process_change *change)
{
    fd_store_close(change->process->sockets);
}

static void process_cancel_access_logs(struct process_change *change)
{
    access_logs_cancel(change->access_logs);
    if (change->phase == PROCESS_STARTS)
        access_logs_close(change->process->access_logs);
}

static int process_prepare_access_logs(struct process_change *change)
{
    struct process *p = change->process;
    int rc = p->access_logs ? 0 : access_logs_create(&p->access_logs, &p->privileges);

    if (rc < 0)
        return process_start_failed("access logs: cannot be set up", rc);
    rc = access_logs_prepare(p->access_logs, &change->next->server,
                             change->next->process.access_log_buffer_bytes, &change->access_logs);
    if (rc == 0)
        return 0;
    snprintf(change->why, sizeof(change->why), "an access log cannot be opened");
    process_cancel_access_logs(change);
    return rc;
}

static void process_commit_access_logs(struct process_change *change)
{
    access_logs_commit(change->access_logs);
    change->access_logs = NULL;
}

static int process_prepare_pid_file(struct process_change *change)
{
    struct process *p = change->process;
    const char *path = change->next->process.pid_file;
    int fd = predecessors_take_pid_file(p->predecessors), rc = -ESTALE;

    if (fd >= 0 && path)
        rc = pid_file_adopt(&p->pid_file, path, fd);
    if (rc < 0 && fd >= 0)
        close(fd);
    if (rc == -ESTALE)
        rc = path ? pid_file_create(&p->pid_file, path, &p->privileges) : 0;
    return rc;
}

static void process_cancel_pid_file(struct process_change *change)
{
    pid_file_remove(change->process->pid_file);
}

static int process_create_server(struct process_change *change)
{
    struct process *p = change->process;
    struct server_events events = run_events(p->run);

    events.access_log = access_logs_change_find;
    events.access_cookie = change->access_logs;
    events.sockets = p->socket_store;
    return server_create(&p->server, &change->next->server, &events);
}

/* A reload of the server prepares and commits all its parts: no later step may fail in a reload. */
static int process_prepare_server(struct process_change *change)
{
    struct server *sv = change->process->server;
    const struct server_reload reload = {.conf = &change->next->server,
                                         .access_log = access_logs_change_find,
                                         .access_cookie = change->access_logs,
                                         .drain_timeout_ns = change->next->process.drain_timeout_ns,
                                         .why = change->why,
                                         .done = change->done,
                                         .cookie = change->cookie};
    int rc;

    if (!sv)
        return process_create_server(change);
    rc = server_reload(sv, &reload);
    return rc < 0 ? rc : -EINPROGRESS;
}

/* A server that did not reload has cancelled its own change. */
static void process_cancel_server(struct process_change *change)
{
    if (change->phase == PROCESS_STARTS)
        server_destroy(change->process->server);
}

static int process_prepare_admin(struct process_change *change)
{
    struct process *p = change->process;

    return admin_desk_create(&p->desk, &change->next->admin, p->server, &p->socket_store);
}

static void process_commit_admin(struct process_change *change)
{
    admin_desk_configure(change->process->desk, &change->next->admin);
}

static void process_cancel_admin(struct process_change *change)
{
    admin_desk_destroy(change->process->desk);
}

static int process_prepare_reload(struct process_change *change)
{
    int rc = reload_create(&change->process->reload, change->process, change->next);

    return rc < 0 ? process_start_failed("reload: cannot be set up", rc) : 0;
}

/* The caller of the start owns its configuration. */
static void process_cancel_reload(struct process_change *change)
{
    (void)reload_destroy(change->process->reload);
}

/* Why an upgrade can never execute the program; NULL: it can. */
static const char *process_upgrade_obstacle(const struct process_conf *conf)
{
    if (conf->chroot)
        return "the program is outside the root directory (chroot); restart instead";
    return conf->seccomp ? "seccomp forbids executing a program; restart instead" : NULL;
}

static int process_prepare_upgrade(struct process_change *change)
{
    struct process *p = change->process;
    const struct upgrade_conf conf = {.program = &p->program,
                                      .server = p->server,
                                      .predecessors = p->predecessors,
                                      .sockets = p->sockets,
                                      .pid_file = p->pid_file,
                                      .admin = admin_desk_admin(p->desk),
                                      .reload = p->reload,
                                      .obstacle = process_upgrade_obstacle(&change->next->process)};
    int rc = upgrade_create(&p->upgrade, &conf);

    return rc < 0 ? process_start_failed("upgrade: cannot be set up", rc) : 0;
}

static void process_cancel_upgrade(struct process_change *change)
{
    upgrade_destroy(change->process->upgrade);
}

/*
 * Parts before the log report to stderr. Inherited sockets are read before what listens. The server
 * is the last part that may fail in a reload; what refers to it comes later.
 */
const struct process_step process_steps[PROCESS_STEPS] = {
    {PROCESS_STARTS, process_prepare_ticket_keys, NULL, NULL},
    {PROCESS_STARTS, process_prepare_signals, NULL, process_cancel_signals},
    {PROCESS_STARTS, process_prepare_log, process_commit_log, process_cancel_log},
    {PROCESS_STARTS, process_prepare_limits, NULL, NULL},
    {PROCESS_STARTS, process_prepare_sockets, process_commit_sockets, process_cancel_sockets},
    {PROCESS_STARTS | PROCESS_RELOADS, process_prepare_access_logs, process_commit_access_logs,
     process_cancel_access_logs},
    {PROCESS_STARTS, process_prepare_pid_file, NULL, process_cancel_pid_file},
    {PROCESS_STARTS | PROCESS_RELOADS, process_prepare_server, NULL, process_cancel_server},
    {PROCESS_STARTS, process_prepare_admin, process_commit_admin, process_cancel_admin},
    {PROCESS_STARTS, process_prepare_reload, NULL, process_cancel_reload},
    {PROCESS_STARTS, process_prepare_upgrade, NULL, process_cancel_upgrade},
};
