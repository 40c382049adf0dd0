/* daemon/run: see run.h. */
#include "daemon/run.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/access_logs.h"
#include "daemon/notify.h"
#include "daemon/signals.h"
#include "daemon/watchdog_feeder.h"

/*
 * While draining, extend systemd's stop timeout every TICK_NS: drains may exceed TimeoutStopSec,
 * hangs not. server_stop() takes less than EXTEND_NS.
 */
#define TICK_NS   (5 * NS_PER_S)
#define EXTEND_NS (20 * NS_PER_S)

enum state { STATE_RUNNING, STATE_DRAINING, STATE_STOPPED };

struct run {
    int signal_fd;
    int drained_fd;
    enum state state;
    int64_t deadline_at_ns; /* of the drain */
    int64_t tick_at_ns;
    struct watchdog_feeder watchdog_feeder;
    int stop_rc; /* result of server_stop() */
};

static void run_on_drained(void *cookie)
{
    struct run *run = cookie;

    /* called once: no overflow */
    MUST(eventfd_write(run->drained_fd, 1) == 0);
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
    close(run->drained_fd);
    close(run->signal_fd);
    free(run);
}

static void run_drain_begin(struct run *run, const struct run_conf *conf)
{
    unsigned sessions = server_sessions(conf->server);
    int64_t now_ns = clock_now_ns();

    log_notice("draining: accepts no more clients; sessions left: %u", sessions);
    notify_stopping("Draining, sessions left: %u", sessions);
    notify_extend(EXTEND_NS);
    run->state = STATE_DRAINING;
    run->tick_at_ns = clock_add_ns(now_ns, TICK_NS);
    run->deadline_at_ns =
        conf->drain_timeout_ns > 0 ? clock_add_ns(now_ns, conf->drain_timeout_ns) : CLOCK_NEVER;
    server_drain(conf->server);
}

/* False: a loop hangs, as the server has logged. */
static bool run_stop_server(struct run *run, const struct run_conf *conf, unsigned *cut)
{
    notify_extend(EXTEND_NS);
    run->stop_rc = server_stop(conf->server, cut);
    run->state = STATE_STOPPED;
    return run->stop_rc != -ETIMEDOUT;
}

static void run_stop_now(struct run *run, const struct run_conf *conf)
{
    unsigned cut;

    notify_stopping("Stopping at once");
    if (run_stop_server(run, conf, &cut))
        log_notice("stopped at once; sessions reset: %u", cut);
}

static void run_reopen_log(struct log_target *log)
{
    int rc = log_target_reopen(log);

    if (rc < 0)
        log_error("log: cannot be reopened: %s; the old file stays in use", strerror(-rc));
    else
        log_notice("log: reopened");
}

static void run_act_on_signal(struct run *run, const struct run_conf *conf,
                              const struct signal_notice *notice)
{
    log_notice("%s from pid %ld uid %ld", signals_name(notice->number), (long)notice->pid,
               (long)notice->uid);
    switch (notice->number) {
    case SIGTERM:
        if (run->state == STATE_DRAINING)
            run_stop_now(run, conf);
        else
            run_drain_begin(run, conf);
        break;
    case SIGQUIT:
        if (run->state == STATE_RUNNING)
            run_drain_begin(run, conf);
        break;
    case SIGINT: run_stop_now(run, conf); break;
    case SIGUSR1:
        run_reopen_log(conf->log);
        access_logs_reopen(conf->access_logs);
        break;
    case SIGUSR2:
        server_log_stats(conf->server);
        access_logs_log_stats(conf->access_logs);
        log_notice("stats end");
        break;
    case SIGHUP: log_warning("the configuration cannot be reloaded: restart to change it"); break;
    default: break;
    }
}

static void run_take_signals(struct run *run, const struct run_conf *conf)
{
    struct signal_notice notice;

    while (run->state != STATE_STOPPED && signals_read(run->signal_fd, &notice) == 0)
        run_act_on_signal(run, conf, &notice);
}

static void run_drain_finish(struct run *run, const struct run_conf *conf)
{
    unsigned cut; /* unused: no session is left */

    if (run_stop_server(run, conf, &cut))
        log_notice("stopped; all sessions have finished");
}

static void run_drain_tick(struct run *run, const struct run_conf *conf)
{
    int64_t now_ns = clock_now_ns();

    if (now_ns >= run->deadline_at_ns) {
        unsigned cut;

        if (run_stop_server(run, conf, &cut))
            log_warning("drain_timeout is over; sessions reset: %u", cut);
    } else if (now_ns >= run->tick_at_ns) {
        notify_status("Draining, sessions left: %u", server_sessions(conf->server));
        notify_extend(EXTEND_NS);
        run->tick_at_ns = clock_add_ns(now_ns, TICK_NS);
    }
}

/* Timeout of poll(2) in ms, rounded up: never early. */
static int run_wait_ms(const struct run *run)
{
    int64_t due_at_ns = watchdog_feeder_due_at_ns(&run->watchdog_feeder);
    int64_t rest_ns;

    if (run->state == STATE_DRAINING)
        due_at_ns = clock_sooner(due_at_ns, clock_sooner(run->tick_at_ns, run->deadline_at_ns));
    if (due_at_ns == CLOCK_NEVER)
        return -1;
    rest_ns = due_at_ns - clock_now_ns();
    if (rest_ns <= 0)
        return 0;
    return rest_ns <= INT_MAX * NS_PER_MS ? (int)((rest_ns + NS_PER_MS - 1) / NS_PER_MS) : INT_MAX;
}

/* Handle all events, the most final first. */
static void run_act(struct run *run, const struct run_conf *conf, bool drained, bool signalled)
{
    if (drained)
        run_drain_finish(run, conf);
    if (run->state != STATE_STOPPED && signalled)
        run_take_signals(run, conf);
    if (run->state == STATE_DRAINING)
        run_drain_tick(run, conf);
    if (run->state != STATE_STOPPED)
        watchdog_feeder_look(&run->watchdog_feeder);
}

enum exit_code run_until_stopped(struct run *run, const struct run_conf *conf, bool *alone)
{
    struct pollfd fds[] = {
        {.fd = run->signal_fd, .events = POLLIN},
        {.fd = run->drained_fd, .events = POLLIN},
    };
    enum exit_code code = EXIT_CODE_OK;

    watchdog_feeder_start(&run->watchdog_feeder, conf->server);
    while (run->state != STATE_STOPPED) {
        if (poll(fds, ARRAY_LEN(fds), run_wait_ms(run)) >= 0) {
            run_act(run, conf, fds[1].revents != 0, fds[0].revents != 0);
        } else if (errno != EINTR && errno != EAGAIN) {
            log_error("cannot wait for signals: %s; stopping", strerror(errno));
            run_stop_now(run, conf);
            code = EXIT_CODE_FAILED;
        }
    }
    *alone = run->stop_rc == 0;
    return run->stop_rc == -ETIMEDOUT ? EXIT_CODE_FAILED : code;
}
