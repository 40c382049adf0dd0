#include "stats/loop_figures.h"

#include "base/must.h"
#include "engine/loop.h"
#include "engine/loop_stats.h"
#include "stats/figure.h"

struct loop_figures_view {
    const char *state;
    const char *doing; /* NULL outside a turn */
    struct loop_stats s;
};

/* FIGURE_OF() and FIGURE_MS_OF() for struct loop_stats. */
#define LOOP_FIGURE(kind, unit, member, help) \
    FIGURE_ROW(struct loop_figures_view, s.member, #member, FIGURE_##kind, FIGURE_##unit, 0, help)
#define LOOP_FIGURE_MS(kind, member, digits, help)                                               \
    FIGURE_ROW(struct loop_figures_view, s.member##_ns, #member "_ms", FIGURE_##kind, FIGURE_NS, \
               digits, help)

static const struct figure loop_figures_turns[] = {
    FIGURE_OF(struct loop_figures_view, STATE, NUMBER, state, "State of the loop."),
    LOOP_FIGURE(GAUGE, NUMBER, connections, "Connections open on this loop."),
    LOOP_FIGURE(COUNTER, NUMBER, turns, "Turns of the loop."),
    LOOP_FIGURE(COUNTER, NUMBER, turns_empty, "Turns in which nothing ran."),
    LOOP_FIGURE(COUNTER, NUMBER, polls_blocking, "Turns that waited for an event."),
    LOOP_FIGURE(COUNTER, NUMBER, io_events, "Events of descriptors."),
    LOOP_FIGURE_MS(COUNTER, poll, 0, "Time spent waiting for events."),
    LOOP_FIGURE_MS(COUNTER, io, 0, "Time spent on connections."),
    LOOP_FIGURE_MS(COUNTER, task, 0, "Time spent on tasks."),
    LOOP_FIGURE(GAUGE, PERCENT, io_ratio, "Share of the time for connections."),
    FIGURE_ROW(struct loop_figures_view, s.io_ratio_reason, "io_ratio_reason", FIGURE_TEXT,
               FIGURE_NUMBER, 0, "Why io_ratio is what it is."),
    LOOP_FIGURE_MS(GAUGE, queue_wait_judged, 3, "With io_ratio = auto: the waits that it judged."),
    LOOP_FIGURE(GAUGE, PERCENT, io_ratio_achieved, "Share of the time spent on connections."),
    LOOP_FIGURE(COUNTER, NUMBER, rebuilds, "Epoll instances that were replaced."),
    LOOP_FIGURE(COUNTER, NUMBER, stalls, "Turns longer than stall_threshold."),
    LOOP_FIGURE_MS(GAUGE, turn, 1, "Age of the present turn; 0 while the loop waits."),
    FIGURE_OF(struct loop_figures_view, TEXT, NUMBER, doing, "What the present turn runs."),
};

static const struct figure_table loop_figures_turns_table = {
    FIGURE_TABLE(struct loop_figures_view, loop_figures_turns)};

static const struct figure loop_figures_tasks[] = {
    LOOP_FIGURE(COUNTER, NUMBER, tasks_run, "Tasks that ran."),
    LOOP_FIGURE(COUNTER, NUMBER, tasks_dropped, "Tasks that ended with the loop, without a run."),
    LOOP_FIGURE(COUNTER, NUMBER, tasks_rejected, "Tasks that the loop refused."),
    LOOP_FIGURE(GAUGE, NUMBER, tasks_pending, "Tasks that wait."),
    LOOP_FIGURE_MS(GAUGE, oldest, 1, "Age of the oldest task that waits, at most."),
    LOOP_FIGURE_MS(GAUGE, longest, 3, "Longest task so far, or several of one type."),
    FIGURE_ROW(struct loop_figures_view, s.longest_name, "longest", FIGURE_TEXT, FIGURE_NUMBER, 0,
               "Type of the longest task."),
    LOOP_FIGURE(COUNTER, NUMBER, wakeups_sent, "Tasks that woke the loop by a system call."),
    LOOP_FIGURE(COUNTER, NUMBER, wakeups_saved, "Tasks of other threads without a system call."),
};

static const struct figure_table loop_figures_tasks_table = {
    FIGURE_TABLE(struct loop_figures_view, loop_figures_tasks)};

struct loop_figures_times {
    struct histogram_view duration;
};

static const struct figure loop_figures_turn[] = {
    FIGURE_ROW(struct loop_figures_times, duration.count, "count", FIGURE_DERIVED, FIGURE_NUMBER, 0,
               "Turns."),
    FIGURE_OF(struct loop_figures_times, HISTOGRAM, NS, duration,
              "Duration of turns, without the wait for events."),
};

static const struct figure_table loop_figures_turn_table = {
    .part = "turn", .prefix = "turn_", FIGURE_TABLE(struct loop_figures_times, loop_figures_turn)};

static const struct figure loop_figures_wait[] = {
    FIGURE_ROW(struct loop_figures_times, duration.count, "count", FIGURE_DERIVED, FIGURE_NUMBER, 0,
               "Tasks whose wait was measured."),
    FIGURE_OF(struct loop_figures_times, HISTOGRAM, NS, duration,
              "Wait of tasks that found the queue empty, and of 1 in 64 others."),
};

static const struct figure_table loop_figures_wait_table = {
    .part = "queue_wait",
    .prefix = "queue_wait_",
    FIGURE_TABLE(struct loop_figures_times, loop_figures_wait)};

static const char *loop_figures_state(const struct loop *loop)
{
    static const char *const states[] = {[LOOP_NOT_STARTED] = "not_started",
                                         [LOOP_STARTED] = "started",
                                         [LOOP_SHUTTING_DOWN] = "shutting_down",
                                         [LOOP_SHUTDOWN] = "shutdown",
                                         [LOOP_TERMINATED] = "terminated"};

    return states[loop_state(loop)];
}

void loop_figures(const struct loop *loop, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_LOOP, .name = loop_name(loop)};
    struct loop_figures_view view = {.state = loop_figures_state(loop)};

    loop_stats(loop, &view.s);
    view.doing = view.s.turn_ns > 0 ? view.s.doing : NULL;
    figure_show(v, &loop_figures_turns_table, &object, &view);
    figure_show(v, &loop_figures_tasks_table, &object, &view);
    figure_show(v, &loop_figures_turn_table, &object, &view.s.turn);
    figure_show(v, &loop_figures_wait_table, &object, &view.s.queue_wait);
}
