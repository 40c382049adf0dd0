#include "stats/executor_figures.h"

#include "base/must.h"
#include "engine/executor.h"

static const struct figure executor_figures_rows[] = {
    FIGURE_OF(struct executor_stats, GAUGE, NUMBER, threads, "Threads that were started."),
    FIGURE_OF(struct executor_stats, COUNTER, NUMBER, tasks_run, "Tasks that ran."),
    FIGURE_OF(struct executor_stats, COUNTER, NUMBER, tasks_dropped,
              "Tasks that ended with the executor, without a run."),
    FIGURE_OF(struct executor_stats, COUNTER, NUMBER, tasks_rejected,
              "Tasks that the executor refused."),
    FIGURE_OF(struct executor_stats, GAUGE, NUMBER, tasks_pending, "Tasks that wait."),
    FIGURE_MS_OF(struct executor_stats, GAUGE, oldest, 1, "Age of the oldest task that waits."),
    FIGURE_MS_OF(struct executor_stats, GAUGE, longest, 3, "Longest task that has ended."),
    FIGURE_ROW(struct executor_stats, longest_name, "longest", FIGURE_TEXT, FIGURE_NUMBER, 0,
               "Type of the longest task."),
    FIGURE_MS_OF(struct executor_stats, GAUGE, running, 1,
                 "Age of the task that has been running longest; 0 if none runs."),
    FIGURE_ROW(struct executor_stats, running_name, "running", FIGURE_TEXT, FIGURE_NUMBER, 0,
               "Type of the task that has been running longest."),
};

static const struct figure_table executor_figures_table = {
    FIGURE_TABLE(struct executor_stats, executor_figures_rows)};

void executor_figures(struct executor *e, enum figure_subject subject, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = subject};
    struct executor_stats s;

    executor_stats(e, &s);
    figure_show(v, &executor_figures_table, &object, &s);
}
