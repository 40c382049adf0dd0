/*
 * daemon/main: start and end of the process.
 *
 * The start looks up user and group, blocks signals, does what needs root, drops root, and starts
 * threads. A failed start removes its pid file.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/log.h"
#include "config/config.h"
#include "daemon/access_logs.h"
#include "daemon/admin_desk.h"
#include "daemon/cli.h"
#include "daemon/exit_code.h"
#include "daemon/fd_store.h"
#include "daemon/log_target.h"
#include "daemon/notify.h"
#include "daemon/pid_file.h"
#include "daemon/predecessors.h"
#include "daemon/privileges.h"
#include "daemon/program.h"
#include "daemon/reload.h"
#include "daemon/run.h"
#include "daemon/start_config.h"
#include "daemon/syscall_filter.h"
#include "daemon/ticket_keys.h"
#include "daemon/upgrade.h"
#include "daemon/user_check.h"
#include "engine/loop.h"
#include "handover/server_upgrade.h"
#include "server/server.h"
#include "tls/tls_memory.h"

struct process {
    struct program program;
    struct predecessors *predecessors;
    struct privileges privileges;
    struct run *run;
    struct log_target *log;
    struct fd_store *sockets;
    struct access_logs *access_logs;
    struct pid_file *pid_file;
    struct socket_store socket_store;
    struct server *server;
    struct admin_desk *desk;
    struct reload *reload;
    struct upgrade *upgrade;
};

/*
 * Open descriptors 0 to 2 if closed: no later descriptor must be mistaken for stdout or stderr.
 * Without /dev/null use one that can be neither read nor written.
 */
static int open_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", O_RDWR | O_NOCTTY) < 0 && open("/", O_PATH) < 0) {
            fprintf(stderr, "reactord: cannot start: /dev/null: %s\n", strerror(errno));
            return -errno;
        }
    }
    return 0;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    rlim_t before;

    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warning("limit of open files: cannot be raised, stays at %llu: %s",
                    (unsigned long long)before, strerror(errno));
    else
        log_info("limit of open files: %llu (was %llu)", (unsigned long long)limit.rlim_max,
                 (unsigned long long)before);
}

static void log_versions(const char *config_path)
{
    char backend[64];

    loop_backend_text(backend, sizeof(backend));
    log_notice("reactord " REACTORD_VERSION " starts with %s: %s, glibc %s", config_path, backend,
               gnu_get_libc_version());
}

static int start_failed(const char *what, const char *name, int rc)
{
    log_error("%s%s%s: %s", what, name ? " " : "", name ? name : "", strerror(-rc));
    return rc;
}

static int open_log(struct process *p, const struct process_conf *conf)
{
    int rc = log_target_open(&p->log, conf->log, &p->privileges);

    if (rc < 0)
        return start_failed("log", log_target_describe(conf->log), rc);
    log_set_sink(log_target_sink(p->log));
    log_set_level(conf->log_level);
    return 0;
}

static int open_access_logs(struct process *p, const struct config *config)
{
    struct access_logs_change *first;
    int rc = access_logs_create(&p->access_logs, &p->privileges);

    if (rc < 0)
        return start_failed("access logs: cannot be set up", NULL, rc);
    rc = access_logs_prepare(p->access_logs, &config->server,
                             config->process.access_log_buffer_bytes, &first);
    if (rc < 0) {
        access_logs_close(p->access_logs);
        return rc;
    }
    access_logs_commit(first);
    return 0;
}

static void close_log_of_failed_start(struct process *p, const struct process_conf *conf, int rc)
{
    if (rc == -ENOMEM)
        log_error("cannot start: out of memory");
    log_target_close(p->log);
    if (strcmp(conf->log, "stderr") != 0)
        log_error("could not start; the log (%s) says why", conf->log);
}

static int process_create_reload(struct process *p, struct config *config, const char *path)
{
    const struct reload_conf conf = {.path = path,
                                     .server = p->server,
                                     .access_logs = p->access_logs,
                                     .changed = admin_desk_changed,
                                     .cookie = p->desk};

    return reload_create(&p->reload, &conf, config);
}

static int open_pid_file(struct process *p, const char *path)
{
    int fd = predecessors_take_pid_file(p->predecessors), rc = -ESTALE;

    if (fd >= 0 && path)
        rc = pid_file_adopt(&p->pid_file, path, fd);
    if (rc < 0 && fd >= 0)
        close(fd);
    if (rc == -ESTALE)
        rc = path ? pid_file_create(&p->pid_file, path, &p->privileges) : 0;
    return rc;
}

/* Why an upgrade can never execute the program; NULL: it can. */
static const char *upgrade_obstacle(const struct process_conf *conf)
{
    if (conf->chroot)
        return "the program is outside the root directory (chroot); restart instead";
    return conf->seccomp ? "seccomp forbids executing a program; restart instead" : NULL;
}

static int create_upgrade(struct process *p, const struct process_conf *process)
{
    const struct upgrade_conf conf = {.program = &p->program,
                                      .server = p->server,
                                      .predecessors = p->predecessors,
                                      .sockets = p->sockets,
                                      .pid_file = p->pid_file,
                                      .admin = admin_desk_admin(p->desk),
                                      .obstacle = upgrade_obstacle(process)};
    int rc = upgrade_create(&p->upgrade, &conf);

    if (rc < 0)
        return start_failed("upgrade: cannot be set up", NULL, rc);
    predecessors_attach(p->predecessors, p->server);
    return 0;
}

/* Give up inherited sockets without a listener, unless they still belong to the starter. */
static void give_up_sockets(struct process *p)
{
    if (!predecessors_is_pending(p->predecessors))
        fd_store_give_up(p->sockets);
}

static int open_sockets(struct process *p)
{
    int rc = fd_store_open(&p->sockets);

    if (rc < 0)
        return rc;
    p->socket_store = fd_store_ops(p->sockets);
    p->socket_store.shared = predecessors_is_pending(p->predecessors);
    give_up_sockets(p);
    return 0;
}

static int process_open(struct process *p, struct config *config, const char *config_path)
{
    const struct process_conf *conf = &config->process;
    struct server_events events;
    int rc;

    rc = run_create(&p->run);
    if (rc < 0)
        return start_failed("signals: cannot be set up", NULL, rc);
    rc = open_log(p, conf);
    if (rc < 0)
        goto err_destroy_run;
    log_versions(config_path);
    raise_descriptor_limit();
    rc = open_sockets(p);
    if (rc < 0)
        goto err_close_log;
    rc = open_access_logs(p, config);
    if (rc < 0)
        goto err_close_sockets;
    rc = open_pid_file(p, conf->pid_file);
    if (rc < 0)
        goto err_close_access_logs;
    events = run_events(p->run);
    events.access_log = access_logs_find;
    events.access_cookie = p->access_logs;
    events.sockets = p->socket_store;
    rc = server_create(&p->server, &config->server, &events);
    if (rc < 0)
        goto err_remove_pid_file;
    rc = admin_desk_create(&p->desk, &config->admin, p->server, &p->socket_store);
    if (rc < 0)
        goto err_destroy_server;
    fd_store_close_unwanted(p->sockets);
    give_up_sockets(p);
    rc = process_create_reload(p, config, config_path);
    if (rc < 0) {
        start_failed("reload: cannot be set up", NULL, rc);
        goto err_destroy_desk;
    }
    rc = create_upgrade(p, conf);
    if (rc < 0)
        goto err_destroy_reload;
    admin_desk_open(p->desk, &(struct admin_desk_conf){.config_path = config_path,
                                                       .access_logs = p->access_logs,
                                                       .reload = p->reload,
                                                       .upgrade = p->upgrade});
    rc = privileges_drop(&p->privileges);
    if (rc < 0)
        goto err_destroy_upgrade;
    user_check(&(struct user_check){.user = &p->privileges,
                                    .config = config,
                                    .config_path = config_path,
                                    .log = p->log,
                                    .access_logs = p->access_logs});
    if (conf->seccomp)
        rc = syscall_filter_load();
    if (rc < 0)
        goto err_destroy_upgrade;
    return 0;
err_destroy_upgrade:
    upgrade_destroy(p->upgrade);
err_destroy_reload:
    (void)reload_destroy(p->reload); /* the caller owns ${config} */
err_destroy_desk:
    admin_desk_destroy(p->desk);
err_destroy_server:
    server_destroy(p->server);
err_remove_pid_file:
    pid_file_remove(p->pid_file);
err_close_access_logs:
    access_logs_close(p->access_logs);
err_close_sockets:
    fd_store_close(p->sockets);
err_close_log:
    close_log_of_failed_start(p, conf, rc);
err_destroy_run:
    run_destroy(p->run);
    return rc;
}

/* Free everything, after the server has stopped or failed to start. */
static void process_close(struct process *p)
{
    upgrade_destroy(p->upgrade);
    admin_desk_destroy(p->desk);
    server_destroy(p->server);
    pid_file_remove(p->pid_file);
    access_logs_close(p->access_logs);
    fd_store_close(p->sockets);
    log_target_close(p->log);
    run_destroy(p->run);
}

/* Exit while other threads run: remove the pid file, but free nothing. */
static _Noreturn void process_leave(struct process *p, enum exit_code code)
{
    log_write(code == EXIT_CODE_OK ? LOG_LEVEL_NOTICE : LOG_LEVEL_ERROR,
              "exits without cleanup: a thread did not stop");
    pid_file_remove(p->pid_file);
    _exit(code);
}

static enum exit_code process_run(struct process *p)
{
    const struct run_conf conf = {
        .server = p->server,
        .log = p->log,
        .access_logs = p->access_logs,
        .reload = p->reload,
        .upgrade = p->upgrade,
        .admin = admin_desk_admin(p->desk),
        .desk = p->desk,
    };
    enum exit_code code;
    unsigned cut;
    bool alone;

    if (server_start_worker(p->server) == 0 && server_start(p->server) == 0) {
        log_notice("ready");
        if (!predecessors_ready(p->predecessors, pid_file_is_adopted(p->pid_file)))
            reload_notify_ready(p->reload);
        code = run_until_stopped(p->run, &conf, &alone);
    } else {
        if (upgrade_is_pending(p->upgrade))
            server_upgrade_leave(p->server);
        alone = server_stop(p->server, &cut) == 0; /* loops may run although the start has failed */
        alone = admin_stop(admin_desk_admin(p->desk)) == 0 && alone;
        code = EXIT_CODE_START;
    }
    if (access_logs_finish(p->access_logs) < 0 || !alone)
        process_leave(p, code);
    return code;
}

/* Look up the user before the root directory changes: the user database is outside. */
static enum exit_code confine(struct process *p, struct config **config, const char *path)
{
    const struct process_conf *conf = &(*config)->process;

    privileges_set_no_new_privs();
    if (privileges_lookup(&p->privileges, conf->user, conf->group) < 0)
        return EXIT_CODE_START;
    if (!conf->chroot)
        return EXIT_CODE_OK;
    if (start_config_enter(*config, path, &p->privileges) < 0)
        return EXIT_CODE_START;
    return start_config_replace(config, path, p->predecessors) < 0 ? EXIT_CODE_CONFIG
                                                                   : EXIT_CODE_OK;
}

/* Run the daemon. Frees ${config} or its replacement. */
static enum exit_code serve(struct process *process, struct config *config, const char *config_path)
{
    enum exit_code code = confine(process, &config, config_path);

    if (code == EXIT_CODE_OK && process_open(process, config, config_path) < 0)
        code = EXIT_CODE_START;
    if (code != EXIT_CODE_OK) {
        config_free(config);
        return code;
    }
    code = process_run(process);
    config = reload_destroy(process->reload);
    process_close(process);
    config_free(config);
    return code;
}

static enum exit_code finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_CODE_OK;
    fprintf(stderr, "reactord: stdout: %s\n", strerror(errno));
    return EXIT_CODE_FAILED;
}

static enum exit_code use_config(const struct cli *cli)
{
    struct config *config = NULL;
    enum exit_code code;

    if (start_config_load(&config, cli->config_path, NULL) < 0)
        return EXIT_CODE_CONFIG;
    if (cli->action == CLI_TEST) {
        printf("reactord: %s: configuration is valid\n", cli->config_path);
        code = finish_output();
    } else {
        code = config_dump(config, stdout) < 0 ? EXIT_CODE_FAILED : finish_output();
    }
    config_free(config);
    return code;
}

static enum exit_code run_daemon(const struct cli *cli, char **argv)
{
    struct process process = {.run = NULL};
    struct config *config = NULL;
    enum exit_code code = EXIT_CODE_CONFIG;
    int rc = program_open(&process.program, argv);

    if (rc == 0)
        rc = predecessors_open(&process.predecessors);
    if (rc == 0)
        ticket_keys_take();
    if (rc < 0) {
        fprintf(stderr, "reactord: cannot start: %s\n", strerror(-rc));
        program_close(&process.program);
        return EXIT_CODE_START;
    }
    if (predecessors_is_pending(process.predecessors))
        notify_set_main(false);
    if (start_config_load(&config, cli->config_path, process.predecessors) == 0)
        code = serve(&process, config, cli->config_path);
    predecessors_close(process.predecessors);
    program_close(&process.program);
    return code;
}

int main(int argc, char **argv)
{
    struct cli cli;

    if (open_standard_descriptors() < 0)
        return EXIT_CODE_START;
    if (tls_memory_count() < 0)
        log_warning("memory of the TLS library: not counted for max_memory and statistics: other "
                    "code, perhaps of LD_PRELOAD, used the library before the start");
    if (cli_parse(&cli, argc, argv, stderr) < 0)
        return EXIT_CODE_USAGE;
    switch (cli.action) {
    case CLI_HELP: cli_print_help(stdout); return finish_output();
    case CLI_VERSION: cli_print_version(stdout); return finish_output();
    case CLI_TEST:
    case CLI_DUMP_CONFIG: return use_config(&cli);
    case CLI_RUN: break;
    }
    return run_daemon(&cli, argv);
}
