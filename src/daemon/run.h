/*
 * daemon/run: main loop: signals, drain and stop.
 *
 *   running --SIGTERM, SIGQUIT--> draining --last session ended, drain_timeout, SIGTERM--> stopped
 *   running or draining --SIGINT--> stopped
 *
 * A drain begins with drain_delay, in which clients are still accepted.
 *
 *   running --SIGUSR2, and another process takes over--> draining, without the listen sockets
 *
 * While running or draining, SIGUSR1 reopens logs, SIGRTMIN logs statistics, and
 * system/watchdog_feeder watches the loops. SIGHUP reloads (reload/reload). While a reload changes
 * the server, signals wait, except SIGHUP and SIGUSR2. A drain also waits for the processes that
 * this one has replaced (upgrade/upgrade).
 */
#ifndef DAEMON_RUN_H
#define DAEMON_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "daemon/exit_code.h"
#include "log/log_target.h"
#include "server/server.h"

struct access_logs;
struct admin;
struct admin_desk;
struct reload;
struct run;
struct upgrade;

struct run_conf {
    struct server *server; /* started */
    struct log_target *log;
    struct access_logs *access_logs; /* NULL: none */
    const char *config_path;
    struct reload *reload;
    struct upgrade *upgrade;
    struct admin *admin; /* NULL: none */
    struct admin_desk *desk;
};

/*
 * run_create(out):
 * Block the handled signals and create the state of the main loop.
 *
 * Thread: main, before any other thread
 * Errors: 0; -ENOMEM, -EMFILE, -ENFILE
 */
int run_create(struct run **out) NODISCARD;

/*
 * run_events(run):
 * Callbacks for server_create(): the end of a drain wakes run_until_stopped().
 *
 * Owns:   ${run} must outlive the server
 */
struct server_events run_events(struct run *run);

/*
 * run_until_stopped(run, conf, alone):
 * Run until the server has stopped. ${alone} false: other threads still run, so exit without
 * freeing anything.
 *
 * Errors: EXIT_CODE_OK; EXIT_CODE_FAILED (poll(2) failed, or a loop hangs)
 */
enum exit_code run_until_stopped(struct run *run, const struct run_conf *conf,
                                 bool *alone) NODISCARD;

/* run_destroy(run): free ${run} or NULL. Thread: main, after the server is destroyed */
void run_destroy(struct run *run);

#endif
