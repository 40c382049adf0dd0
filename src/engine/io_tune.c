#include "engine/io_tune.h"

#include <stdbool.h>

#define IO_TUNE_PERMILLE 990

/* A look at more than this time says nothing about the last second. */
#define IO_TUNE_STALE_NS (10 * IO_TUNE_PERIOD_NS)

static void io_tune_set(struct io_tune *t, unsigned io_ratio, const char *reason)
{
    TELEMETRY_SET(t->io_ratio, io_ratio);
    TELEMETRY_SET(t->reason, reason);
}

static void io_tune_lower(struct io_tune *t, unsigned io_ratio)
{
    unsigned next = io_ratio - (io_ratio + 3) / 4;

    if (io_ratio <= IO_TUNE_LEAST)
        io_tune_set(t, IO_TUNE_LEAST, "least");
    else
        io_tune_set(t, next > IO_TUNE_LEAST ? next : IO_TUNE_LEAST, "lowered");
}

static void io_tune_raise(struct io_tune *t, unsigned io_ratio)
{
    if (io_ratio >= IO_TUNE_MOST)
        io_tune_set(t, IO_TUNE_MOST, "most");
    else
        io_tune_set(t, io_ratio + 1, "raised");
}

/* See note: unused. */
static bool io_tune_is_unused(struct io_tune *t, const struct telemetry *loop, unsigned io_ratio)
{
    int64_t io_ns = TELEMETRY_GET(loop->io_ns), task_ns = TELEMETRY_GET(loop->task_ns);
    double io = (double)(io_ns - t->io_ns), tasks = (double)(task_ns - t->task_ns);

    t->io_ns = io_ns;
    t->task_ns = task_ns;
    return 2 * 100 * io < io_ratio * (io + tasks);
}

void io_tune_look(struct io_tune *t, const struct telemetry *loop, int64_t goal_ns, int64_t now_ns)
{
    int64_t since_ns = now_ns - t->looked_at_ns;
    unsigned io_ratio = TELEMETRY_GET(t->io_ratio);
    bool is_unused = io_tune_is_unused(t, loop, io_ratio);
    struct histogram_view all, last;

    histogram_read(&loop->queue_wait, &all);
    last = histogram_since(&all, &t->before);
    t->looked_at_ns = now_ns;
    t->before = all;
    TELEMETRY_SET(t->wait_ns, histogram_between_ns(&last, IO_TUNE_PERMILLE));
    if (io_ratio == 0)
        io_tune_set(t, IO_TUNE_START, "start");
    else if (since_ns > IO_TUNE_STALE_NS || last.count < IO_TUNE_WAITS)
        io_tune_set(t, io_ratio, "few_tasks");
    else if (TELEMETRY_GET(t->wait_ns) > goal_ns && is_unused)
        io_tune_set(t, io_ratio, "unused");
    else if (TELEMETRY_GET(t->wait_ns) > goal_ns)
        io_tune_lower(t, io_ratio);
    else if (TELEMETRY_GET(t->wait_ns) < goal_ns / 2)
        io_tune_raise(t, io_ratio);
    else
        io_tune_set(t, io_ratio, "met");
}

unsigned io_tune_in_use(const struct io_tune *t)
{
    unsigned io_ratio = TELEMETRY_GET(t->io_ratio);

    return io_ratio > 0 ? io_ratio : IO_TUNE_START;
}

const char *io_tune_reason(const struct io_tune *t)
{
    const char *reason = TELEMETRY_GET(t->reason);

    return reason ? reason : "start";
}
