/* daemon/run_drain: the drain at the end of the process, and of a replaced one: see run.h. */
#include "admin/admin.h"
#include "base/log.h"
#include "config/config.h"
#include "system/notify.h"
#include "reload/reload.h"
#include "daemon/run_internal.h"
#include "upgrade/upgrade.h"
#include "handover/server_upgrade.h"

void run_set_deadline(struct run *run, int64_t timeout_ns, const char *name)
{
    int64_t at_ns = timeout_ns > 0 ? clock_add_ns(clock_now_ns(), timeout_ns) : CLOCK_NEVER;

    if (at_ns < run->deadline_at_ns)
        run->deadline_of = name;
    run->deadline_at_ns = clock_sooner(at_ns, run->deadline_at_ns);
}

void run_log_draining(const struct run_conf *conf)
{
    log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "draining: accepts no more clients; sessions left: %u",
              server_sessions(conf->server));
}

void run_set_draining(struct run *run, const struct run_conf *conf, int64_t tick_ns)
{
    run->state = STATE_DRAINING;
    admin_set_state(conf->admin, ADMIN_DRAINING);
    run->tick_at_ns = clock_add_ns(clock_now_ns(), tick_ns);
    reload_give_up(conf->reload);
}

/* Stop accepting: close the listen sockets, or before the take-over leave them to the starter. */
static void run_close_server(const struct run_conf *conf)
{
    if (upgrade_is_pending(conf->upgrade))
        server_upgrade_leave(conf->server);
    else
        server_drain(conf->server);
}

/* End of drain_delay. */
static void run_drain_close(struct run *run, const struct run_conf *conf)
{
    run->close_at_ns = CLOCK_NEVER;
    run_log_draining(conf);
    run_set_deadline(run, reload_running(conf->reload)->process.drain_timeout_ns, "drain_timeout");
    run_close_server(conf);
    upgrade_tell_old(conf->upgrade, "drain");
}

void run_drain_begin(struct run *run, const struct run_conf *conf)
{
    int64_t delay_ns = reload_running(conf->reload)->process.drain_delay_ns;

    upgrade_cancel(conf->upgrade, "this process drains");
    run->told_to_end = true;
    run_set_draining(run, conf, TICK_NS);
    notify_stopping("Draining, sessions left: %u", server_sessions(conf->server));
    notify_extend(EXTEND_NS);
    if (delay_ns == 0 || upgrade_is_pending(conf->upgrade)) {
        run_drain_close(run, conf);
        return;
    }
    log_event(LOG_PROCESS, LOG_LEVEL_NOTICE,
              "draining: accepts clients for another %.1f s (drain_delay)",
              (double)delay_ns / (double)NS_PER_S);
    run->close_at_ns = clock_add_ns(clock_now_ns(), delay_ns);
}

void run_drain_tick(struct run *run, const struct run_conf *conf)
{
    int64_t now_ns = clock_now_ns();

    if (now_ns >= run->close_at_ns) {
        run_drain_close(run, conf);
    } else if (now_ns >= run->deadline_at_ns) {
        unsigned cut;

        if (run_stop_server(run, conf, &cut))
            log_warning("%s is over; sessions reset: %u", run->deadline_of, cut);
    } else if (now_ns >= run->tick_at_ns && upgrade_is_replaced(conf->upgrade)) {
        upgrade_report(conf->upgrade, "state");
        run->tick_at_ns = clock_add_ns(now_ns, REPORT_NS);
    } else if (now_ns >= run->tick_at_ns) {
        notify_status("Draining, sessions left: %u", server_sessions(conf->server));
        notify_extend(EXTEND_NS);
        run->tick_at_ns = clock_add_ns(now_ns, TICK_NS);
    }
}
