/*
 * daemon/main: start and end of the process.
 *
 * The start looks up user and group, blocks signals, does what needs root, drops root, and starts
 * threads. A failed start removes its pid file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/log.h"
#include "config/config.h"
#include "config/config_sockets.h"
#include "log/access_logs.h"
#include "daemon/admin_desk.h"
#include "daemon/cli.h"
#include "daemon/exit_code.h"
#include "system/notify.h"
#include "system/pid_file.h"
#include "upgrade/predecessors.h"
#include "reload/process_change.h"
#include "reload/reload.h"
#include "daemon/run.h"
#include "daemon/start_config.h"
#include "daemon/start_edits.h"
#include "system/syscall_filter.h"
#include "upgrade/upgrade.h"
#include "daemon/user_check.h"
#include "handover/server_upgrade.h"
#include "server/server.h"
#include "tls/tls_memory.h"

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

static int process_drop_root(struct process *p, const struct config *config)
{
    int rc;

    p->privileges.extra = config_sockets_capabilities(config);
    rc = privileges_drop(&p->privileges);
    if (rc < 0)
        return rc;
    user_check(&(struct user_check){.user = &p->privileges,
                                    .config = config,
                                    .config_path = p->config_path,
                                    .log = p->log,
                                    .access_logs = p->access_logs});
    return config->process.seccomp ? syscall_filter_load() : 0;
}

static int process_open(struct process *p, struct config *config)
{
    struct process_change start = {.process = p, .phase = PROCESS_STARTS, .next = config};
    int rc = process_change_begin(&start);

    if (rc < 0)
        return rc;
    start_edits_log(p->notes);
    predecessors_attach(p->predecessors, p->server);
    admin_desk_open(p->desk, &(struct admin_desk_conf){.config_path = p->config_path,
                                                       .access_logs = p->access_logs,
                                                       .reload = p->reload,
                                                       .upgrade = p->upgrade});
    rc = process_drop_root(p, config);
    if (rc < 0)
        process_change_close(p, config, rc);
    return rc;
}

/* Free everything, after the server has stopped or failed to start. */
static void process_close(struct process *p)
{
    struct config *config = reload_destroy(p->reload);

    p->reload = NULL;
    process_change_close(p, config, 0);
    config_free(config);
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
        .config_path = p->config_path,
        .reload = p->reload,
        .upgrade = p->upgrade,
        .admin = admin_desk_admin(p->desk),
        .desk = p->desk,
    };
    enum exit_code code;
    unsigned cut;
    bool alone;

    if (server_start_worker(p->server) == 0 && admin_start_thread(conf.admin) == 0 &&
        server_start(p->server) == 0) {
        log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "ready");
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
static enum exit_code confine(struct process *p, struct config **config)
{
    const struct process_conf *conf = &(*config)->process;
    const char *path = p->config_path;

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
static enum exit_code serve(struct process *process, struct config *config)
{
    enum exit_code code = confine(process, &config);

    if (code == EXIT_CODE_OK) {
        start_edits_use(&config, &process->notes); /* the file may be another one now */
        if (process_open(process, config) < 0)
            code = EXIT_CODE_START;
    }
    if (code != EXIT_CODE_OK) {
        config_free(config);
        return code;
    }
    code = process_run(process);
    process_close(process);
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
    int rc;

    if (start_config_load(&config, cli->config_path, NULL) < 0)
        return EXIT_CODE_CONFIG;
    if (cli->action == CLI_TEST) {
        printf("reactord: %s: configuration is valid\n", cli->config_path);
        code = finish_output();
    } else {
        rc = cli->action == CLI_DUMP_ORIGINS ? config_dump_origins(config, stdout)
                                             : config_dump(config, stdout);
        code = rc < 0 ? EXIT_CODE_FAILED : finish_output();
    }
    config_free(config);
    return code;
}

static enum exit_code run_daemon(const struct cli *cli, char **argv)
{
    struct process process = {.config_path = cli->config_path};
    struct config *config = NULL;
    enum exit_code code = EXIT_CODE_CONFIG;
    int rc = program_open(&process.program, argv);

    if (rc == 0)
        rc = predecessors_open(&process.predecessors);
    if (rc < 0) {
        fprintf(stderr, "reactord: cannot start: %s\n", strerror(-rc));
        program_close(&process.program);
        return EXIT_CODE_START;
    }
    if (predecessors_is_pending(process.predecessors))
        notify_set_main(false);
    if (start_config_load(&config, cli->config_path, process.predecessors) == 0) {
        code = serve(&process, config);
        free(process.notes);
    }
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
    case CLI_DUMP_CONFIG:
    case CLI_DUMP_ORIGINS: return use_config(&cli);
    case CLI_RUN: break;
    }
    return run_daemon(&cli, argv);
}
