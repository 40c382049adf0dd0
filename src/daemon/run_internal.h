/* daemon/run_internal: the main loop's state, for its own files. */
#ifndef DAEMON_RUN_INTERNAL_H
#define DAEMON_RUN_INTERNAL_H

#include "base/clock.h"
#include "reload/config_watch.h"
#include "daemon/run.h"
#include "system/signals.h"
#include "system/watchdog_feeder.h"

/*
 * While draining, extend systemd's stop timeout every TICK_NS: a drain may take longer than
 * TimeoutStopSec, a hang may not. server_stop() takes less than EXTEND_NS.
 */
#define TICK_NS   (5 * NS_PER_S)
#define EXTEND_NS (20 * NS_PER_S)

/* Maximum of signals that wait for the end of a reload; the rest is for stop signals. */
#define RUN_DELAYED       8
#define RUN_DELAYED_STOPS 2

/* Interval at which a replaced process reports its counters. */
#define REPORT_NS NS_PER_S

enum state { STATE_RUNNING, STATE_DRAINING, STATE_STOPPED };

struct run {
    int signal_fd, drained_fd;
    enum state state;
    bool told_to_end;    /* SIGTERM came, or SIGQUIT began the drain: the next SIGTERM stops */
    bool drained;        /* no session is left; replaced processes may still drain */
    int64_t close_at_ns; /* end of drain_delay; CLOCK_NEVER: accepts no more, or does not drain */
    int64_t deadline_at_ns;  /* end of drain_timeout, or of upgrade_drain_timeout */
    const char *deadline_of; /* name of that option */
    int64_t tick_at_ns;
    int64_t logs_at_ns; /* when to call access_logs_close_unused(); CLOCK_NEVER: not at all */
    struct watchdog_feeder watchdog_feeder;
    struct config_watch watch;
    struct signal_notice delayed[RUN_DELAYED + RUN_DELAYED_STOPS];
    unsigned n_delayed;
    int stop_rc;
};

/*
 * run_drain_begin(run, conf) / run_drain_tick(run, conf):
 * Begin a drain, with drain_delay / do what is due in it.
 */
void run_drain_begin(struct run *run, const struct run_conf *conf);
void run_drain_tick(struct run *run, const struct run_conf *conf);

/*
 * run_log_draining(conf) / run_set_draining(run, conf, tick_ns):
 * Log that no more clients are accepted / change the state, with the first tick in ${tick_ns}.
 */
void run_log_draining(const struct run_conf *conf);
void run_set_draining(struct run *run, const struct run_conf *conf, int64_t tick_ns);

/*
 * run_set_deadline(run, timeout_ns, name):
 * End the drain after ${timeout_ns}, the option ${name}, if that is sooner; 0: no limit.
 */
void run_set_deadline(struct run *run, int64_t timeout_ns, const char *name);

/*
 * run_stop_server(run, conf, cut):
 * Stop server and admin interface; ${cut} gets the number of sessions that were reset. False: a
 * loop hangs, as logged.
 */
bool run_stop_server(struct run *run, const struct run_conf *conf, unsigned *cut);

#endif
