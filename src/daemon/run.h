/*
 * daemon/run: the time between the start and the end: the main thread waits for signals and acts on
 * them.
 *
 *   running --SIGTERM, SIGQUIT--> draining --last session ended, drain_timeout, SIGTERM--> stopped
 *   running or draining --SIGINT--> stopped
 *
 * SIGUSR1 reopens the log and the access logs, SIGUSR2 writes statistics to it and SIGHUP is
 * answered with a warning, in either state, and in either state the loops are watched
 * (daemon/watchdog_feeder).
 */
#ifndef DAEMON_RUN_H
#define DAEMON_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "daemon/exit_code.h"
#include "daemon/log_target.h"
#include "server/server.h"

struct access_logs;
struct run;

struct run_conf {
    struct server *server; /* started */
    struct log_target *log;
    struct access_logs *access_logs; /* NULL: there are none */
    int64_t drain_timeout_ns;        /* 0: wait for ever */
};

/*
 * run_create(out):
 * Block the signals it will wait for, and make what server_create() needs of the main thread.
 *
 * Thread: main, before any other thread
 * Errors: 0; -ENOMEM, -EMFILE, -ENFILE
 */
int run_create(struct run **out) NODISCARD;

/*
 * run_events(run):
 * What server_create() takes, so that the end of a drain wakes run_until_stopped().
 *
 * Thread: main
 * Owns:   ${run} must outlive the server
 */
struct server_events run_events(struct run *run);

/*
 * run_until_stopped(run, conf, alone):
 * Wait and act as drawn above; when this returns the server has been stopped. ${alone} is whether
 * all other threads have ended; if not, nothing that they may use can be freed, and the process has
 * to be ended.
 *
 * Thread: main
 * Owns:   nothing of ${conf}
 * Errors: EXIT_CODE_OK; EXIT_CODE_FAILED (the wait itself failed, or a loop hangs)
 */
enum exit_code run_until_stopped(struct run *run, const struct run_conf *conf,
                                 bool *alone) NODISCARD;

/*
 * run_destroy(run):
 * Free it; NULL is allowed.
 *
 * Thread: main, after the server is destroyed
 */
void run_destroy(struct run *run);

#endif
