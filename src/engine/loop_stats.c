#include "engine/loop_stats.h"

#include "base/clock.h"
#include "engine/loop_internal.h"

static void loop_stats_tasks(const struct loop *l, int64_t now_ns, struct loop_stats *out)
{
    const struct telemetry *t = &l->telemetry;
    uint64_t quiet, all;

    out->tasks_run = TELEMETRY_GET(t->tasks_run);
    out->tasks_dropped = TELEMETRY_GET(t->tasks_dropped);
    out->tasks_rejected = TELEMETRY_GET(l->tasks_rejected);
    out->wakeups_sent = TELEMETRY_GET(l->wakeup.sent);
    out->tasks_pending = 0;
    out->oldest_ns = 0;
    for (unsigned i = 0; i < LOOP_QUEUES; i++) {
        uint64_t pending = gate_count(&l->queues[i].gate);
        int64_t age_ns = now_ns - TELEMETRY_GET(l->oldest_at_ns[i]);

        out->tasks_pending += pending;
        if (pending > 0 && age_ns > out->oldest_ns)
            out->oldest_ns = age_ns;
    }
    all = out->tasks_run + out->tasks_pending;
    quiet = TELEMETRY_GET(t->tasks_own) + TELEMETRY_GET(l->tasks_lazy) + out->wakeups_sent;
    out->wakeups_saved = all > quiet ? all - quiet : 0;
}

static void loop_stats_io_ratio(const struct loop *l, struct loop_stats *out)
{
    bool is_auto = TELEMETRY_GET(l->io_ratio) == BUDGET_RATIO_AUTO;

    out->io_ratio = is_auto ? io_tune_in_use(&l->io_tune) : TELEMETRY_GET(l->io_ratio);
    out->io_ratio_reason = is_auto ? io_tune_reason(&l->io_tune) : "fixed";
    out->queue_wait_judged_ns = is_auto ? TELEMETRY_GET(l->io_tune.wait_ns) : 0;
}

void loop_stats(const struct loop *l, struct loop_stats *out)
{
    const struct telemetry *t = &l->telemetry;
    int64_t turn_at_ns = TELEMETRY_GET(t->turn_at_ns);
    int64_t now_ns = clock_now_ns(); /* read after turn_at_ns: else turn_ns could be negative */
    int64_t busy_ns;

    loop_stats_tasks(l, now_ns, out);
    out->connections = loop_load(l);
    out->turns = TELEMETRY_GET(t->turns);
    out->turns_empty = TELEMETRY_GET(t->turns_empty);
    out->polls_blocking = TELEMETRY_GET(t->polls_blocking);
    out->io_events = TELEMETRY_GET(t->io_events);
    out->rebuilds = TELEMETRY_GET(t->rebuilds);
    out->stalls = TELEMETRY_GET(t->stalls);
    out->poll_ns = TELEMETRY_GET(t->poll_ns);
    out->io_ns = TELEMETRY_GET(t->io_ns);
    out->task_ns = TELEMETRY_GET(t->task_ns);
    loop_stats_io_ratio(l, out);
    busy_ns = out->io_ns + out->task_ns;
    out->io_ratio_achieved =
        busy_ns > 0 ? (unsigned)((double)out->io_ns / (double)busy_ns * 100 + 0.5) : 100;
    out->longest_ns = TELEMETRY_GET(t->longest_ns);
    out->longest_name = TELEMETRY_GET(t->longest_name);
    out->turn_ns = turn_at_ns > 0 ? now_ns - turn_at_ns : 0;
    out->doing = TELEMETRY_GET(t->doing);
    histogram_read(&t->turn, &out->turn);
    histogram_read(&t->queue_wait, &out->queue_wait);
}
