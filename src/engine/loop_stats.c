#include "engine/loop_stats.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
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
    out->io_ratio = TELEMETRY_GET(l->io_ratio);
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

static void loop_stats_log_histogram(const struct loop *l, const char *what,
                                     const struct histogram_view *v)
{
    char text[LOG_LINE_BYTES];

    log_notice("stats %s %s count=%" PRIu64 "%s", l->name, what, v->count,
               histogram_format(text, sizeof(text), v));
}

#define MS(ns) ((double)(ns) / (double)NS_PER_MS)

void loop_stats_log(const struct loop *l)
{
    static const char *const states[] = {"not_started", "started", "shutting_down", "shutdown",
                                         "terminated"};
    struct loop_stats s;

    loop_stats(l, &s);
    log_notice("stats %s state=%s connections=%u turns=%" PRIu64 " turns_empty=%" PRIu64
               " polls_blocking=%" PRIu64 " io_events=%" PRIu64 " poll_ms=%.0f io_ms=%.0f"
               " task_ms=%.0f io_ratio=%u io_ratio_achieved=%u rebuilds=%" PRIu64 " stalls=%" PRIu64
               " turn_ms=%.1f doing=\"%s\"",
               l->name, states[loop_state(l)], s.connections, s.turns, s.turns_empty,
               s.polls_blocking, s.io_events, MS(s.poll_ns), MS(s.io_ns), MS(s.task_ns), s.io_ratio,
               s.io_ratio_achieved, s.rebuilds, s.stalls, MS(s.turn_ns),
               s.turn_ns > 0 && s.doing ? s.doing : "");
    log_notice("stats %s tasks_run=%" PRIu64 " tasks_dropped=%" PRIu64 " tasks_rejected=%" PRIu64
               " tasks_pending=%" PRIu64 " oldest_ms=%.1f longest_ms=%.3f longest=\"%s\""
               " wakeups_sent=%" PRIu64 " wakeups_saved=%" PRIu64,
               l->name, s.tasks_run, s.tasks_dropped, s.tasks_rejected, s.tasks_pending,
               MS(s.oldest_ns), MS(s.longest_ns), s.longest_name ? s.longest_name : "",
               s.wakeups_sent, s.wakeups_saved);
    loop_stats_log_histogram(l, "turn", &s.turn);
    loop_stats_log_histogram(l, "queue_wait", &s.queue_wait);
}
