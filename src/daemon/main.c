/*
 * daemon/main: start and end of the process.
 *
 * Signals before threads; lookups, and all that needs root, before dropping root; threads last. A
 * failed start leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "daemon/access_logs.h"
#include "daemon/cli.h"
#include "daemon/exit_code.h"
#include "daemon/log_target.h"
#include "daemon/notify.h"
#include "daemon/pid_file.h"
#include "daemon/privileges.h"
#include "daemon/run.h"
#include "engine/loop.h"
#include "server/server.h"

/* In the order of the start. */
struct process {
    struct privileges privileges;
    struct run *run;
    struct log_target *log;
    struct access_logs *access_logs;
    struct pid_file *pid_file; /* NULL: none configured */
    struct server *server;
};

/* Occupy descriptors 0 to 2: no later one is taken for stdout or stderr. */
static int open_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_NOCTTY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -errno;
    close(fd);
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
        log_warning("limit of open files: stays at %llu: %s", (unsigned long long)before,
                    strerror(errno));
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
        return start_failed("log", conf->log, rc);
    log_set_sink(log_target_sink(p->log));
    log_set_level(conf->log_level);
    return 0;
}

/* Point stderr to the log with the reason. */
static void close_log_of_failed_start(struct process *p, const struct process_conf *conf)
{
    log_target_close(p->log);
    if (strcmp(conf->log, "stderr") != 0)
        log_error("could not start; the log (%s) says why", conf->log);
}

/* All before the first thread. */
static int process_open(struct process *p, const struct config *config, const char *config_path)
{
    const struct process_conf *conf = &config->process;
    struct server_events events;
    int rc;

    privileges_set_no_new_privs();
    rc = privileges_lookup(&p->privileges, conf->user, conf->group);
    if (rc < 0)
        return rc;
    rc = run_create(&p->run);
    if (rc < 0)
        return start_failed("signals", NULL, rc);
    rc = open_log(p, conf);
    if (rc < 0)
        goto err_destroy_run;
    log_versions(config_path);
    raise_descriptor_limit();
    rc = access_logs_open(&p->access_logs, &config->server, conf->access_log_buffer_bytes,
                          &p->privileges);
    if (rc < 0)
        goto err_close_log;
    rc = conf->pid_file ? pid_file_create(&p->pid_file, conf->pid_file, &p->privileges) : 0;
    if (rc < 0)
        goto err_close_access_logs;
    events = run_events(p->run);
    events.access_log = access_logs_find;
    events.access_cookie = p->access_logs;
    rc = server_create(&p->server, &config->server, &events);
    if (rc < 0)
        goto err_remove_pid_file;
    rc = privileges_drop(&p->privileges);
    if (rc < 0)
        goto err_destroy_server;
    return 0;
err_destroy_server:
    server_destroy(p->server);
err_remove_pid_file:
    pid_file_remove(p->pid_file);
err_close_access_logs:
    access_logs_close(p->access_logs);
err_close_log:
    close_log_of_failed_start(p, conf);
err_destroy_run:
    run_destroy(p->run);
    return rc;
}

/* The server has stopped or never started. */
static void process_close(struct process *p)
{
    server_destroy(p->server);
    pid_file_remove(p->pid_file);
    access_logs_close(p->access_logs);
    log_target_close(p->log);
    run_destroy(p->run);
}

static unsigned count_addresses(const struct server_conf *conf)
{
    unsigned n = 0;

    for (unsigned i = 0; i < conf->n_listeners; i++)
        n += conf->listeners[i].n_addresses;
    return n;
}

/* Other threads run: free nothing, but remove the pid file. */
static _Noreturn void process_leave(struct process *p, enum exit_code code)
{
    log_write(code == EXIT_CODE_OK ? LOG_LEVEL_NOTICE : LOG_LEVEL_ERROR,
              "exits without cleanup: a thread did not stop");
    pid_file_remove(p->pid_file);
    _exit(code);
}

static enum exit_code process_run(struct process *p, const struct config *config)
{
    const struct run_conf conf = {
        .server = p->server,
        .log = p->log,
        .access_logs = p->access_logs,
        .drain_timeout_ns = config->process.drain_timeout_ns,
    };
    enum exit_code code;
    unsigned cut;
    bool alone;

    if (server_start(p->server) == 0) {
        log_notice("ready");
        notify_ready("Accepting, listen addresses: %u", count_addresses(&config->server));
        code = run_until_stopped(p->run, &conf, &alone);
    } else {
        alone = server_stop(p->server, &cut) == 0; /* some loops may have started */
        code = EXIT_CODE_START;
    }
    if (access_logs_finish(p->access_logs) < 0 || !alone)
        process_leave(p, code);
    return code;
}

static enum exit_code serve(const struct config *config, const char *config_path)
{
    struct process process = {.run = NULL};
    enum exit_code code;

    if (process_open(&process, config, config_path) < 0)
        return EXIT_CODE_START;
    code = process_run(&process, config);
    process_close(&process);
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
    int rc = config_load(&config, cli->config_path, stderr);

    if (rc < 0) {
        if (rc == -ENOMEM) /* config_load() reports all else */
            fprintf(stderr, "reactord: %s: %s\n", cli->config_path, strerror(ENOMEM));
        return EXIT_CODE_CONFIG;
    }
    if (cli->action == CLI_TEST) {
        printf("reactord: %s: configuration is valid\n", cli->config_path);
        code = finish_output();
    } else if (cli->action == CLI_DUMP_CONFIG) {
        rc = config_dump(config, stdout);
        code = rc < 0 ? EXIT_CODE_FAILED : finish_output();
    } else {
        code = serve(config, cli->config_path);
    }
    config_free(config);
    return code;
}

int main(int argc, char **argv)
{
    struct cli cli;

    if (open_standard_descriptors() < 0)
        return EXIT_CODE_START;
    if (cli_parse(&cli, argc, argv, stderr) < 0)
        return EXIT_CODE_USAGE;
    if (cli.action == CLI_HELP) {
        cli_print_help(stdout);
        return finish_output();
    }
    if (cli.action == CLI_VERSION) {
        cli_print_version(stdout);
        return finish_output();
    }
    return use_config(&cli);
}
