#include "ctl/ctl_top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_terminal.h"
#include "ctl/ctl_top_sample.h"
#include "ctl/ctl_top_view.h"

#define DEFAULT_INTERVAL_NS NS_PER_S
#define MIN_INTERVAL_NS     (100 * NS_PER_MS)
#define TEXT_SESSIONS       20   /* sessions in a view that is written once */
#define MAX_SESSIONS        1000 /* maximum of rows in an answer */
#define FOREVER_NS          (3600 * NS_PER_S)

const struct ctl_option ctl_top_options[] = {
    {"once", NULL, 0, "write plain text once and exit", 0},
    {"interval", "DURATION", CTL_VALUE_DURATION, "time between samples (1s)", 0},
    {"sort", "KEY", CTL_VALUE_SORT, "sessions by bytes (default), load, age or idle", 0},
    {NULL, NULL, 0, NULL, 0},
};

struct ctl_top {
    struct ctl_context *context;
    int64_t interval_ns;
    const char *sort;
    struct ctl_top_sample now, before;
    bool is_paused, is_over;
    bool is_stale; /* the last request failed, see context->problem */
};

/* ---- samples ---- */

static enum ctl_exit ctl_top_take(struct ctl_top *top, unsigned n_sessions)
{
    struct ctl_top_sample sample;
    enum ctl_exit code = ctl_top_sample_take(top->context, top->sort, n_sessions, &sample);

    top->is_stale = code != CTL_EXIT_OK;
    if (top->is_stale)
        return code;
    ctl_top_sample_drop(&top->before);
    top->before = top->now;
    top->now = sample;
    return CTL_EXIT_OK;
}

/* ---- screen ---- */

static void ctl_top_draw(const struct ctl_top *top)
{
    const struct ctl_top_view view = {.now = &top->now,
                                      .before = &top->before,
                                      .sort = top->sort,
                                      .notice = top->is_paused  ? "paused"
                                                : top->is_stale ? top->context->problem
                                                                : NULL};
    struct ctl_memory_text frame;

    ctl_memory_text_open(&frame);
    ctl_top_view_screen(frame.file, &view, ctl_terminal_size());
    ctl_terminal_draw(ctl_memory_text_close(&frame));
    free(frame.bytes);
}

static void ctl_top_sort_by_next(struct ctl_top *top)
{
    const char *const *words = ctl_value_words(CTL_VALUE_SORT);
    unsigned i = 0;

    while (strcmp(words[i], top->sort) != 0)
        i++;
    top->sort = words[i + 1] ? words[i + 1] : words[0];
}

/* Act on ${key}; true if a new sample is wanted now. */
static bool ctl_top_obey(struct ctl_top *top, int key)
{
    switch (key) {
    case 'q':
    case CTL_TERMINAL_GONE: top->is_over = true; return false;
    case 's': ctl_top_sort_by_next(top); return !top->is_paused;
    case 'p': top->is_paused = !top->is_paused; return !top->is_paused;
    default: return false;
    }
}

/* Handle keys during a request, so that q works without an answer. */
static bool ctl_top_is_cancelled(void *cookie)
{
    struct ctl_top *top = cookie;

    ctl_top_obey(top, ctl_terminal_wait(0));
    return top->is_over;
}

/* Handle keys until the next sample is due. */
static void ctl_top_wait(struct ctl_top *top, int64_t due_at_ns)
{
    bool wants_sample = false;

    while (!top->is_over && !wants_sample) {
        int64_t left_ns = top->is_paused ? FOREVER_NS : due_at_ns - clock_now_ns();

        if (left_ns <= 0)
            return;
        wants_sample = ctl_top_obey(top, ctl_terminal_wait(left_ns));
        if (!top->is_over && !wants_sample)
            ctl_top_draw(top);
    }
}

static unsigned ctl_top_sessions_on_screen(void)
{
    unsigned rows = ctl_terminal_size().rows;

    return rows < MAX_SESSIONS ? rows : MAX_SESSIONS;
}

static enum ctl_exit ctl_top_live(struct ctl_top *top)
{
    enum ctl_exit code = ctl_top_take(top, ctl_top_sessions_on_screen());

    if (code != CTL_EXIT_OK || ctl_terminal_open() < 0)
        return code == CTL_EXIT_OK ? CTL_EXIT_FAILED : code;
    top->context->conf.is_cancelled = ctl_top_is_cancelled;
    top->context->conf.cookie = top;
    while (!top->is_over) {
        int64_t due_at_ns = clock_add_ns(clock_now_ns(), top->interval_ns);

        ctl_top_draw(top);
        ctl_top_wait(top, due_at_ns);
        if (!top->is_over)
            (void)ctl_top_take(top, ctl_top_sessions_on_screen());
    }
    ctl_terminal_close();
    return CTL_EXIT_OK;
}

/* ---- once ---- */

static enum ctl_exit ctl_top_once(struct ctl_top *top)
{
    const struct timespec interval = {.tv_sec = top->interval_ns / NS_PER_S,
                                      .tv_nsec = top->interval_ns % NS_PER_S};
    const struct ctl_top_view view = {.now = &top->now, .before = &top->before, .sort = top->sort};
    enum ctl_exit code = ctl_top_take(top, TEXT_SESSIONS);

    if (code != CTL_EXIT_OK)
        return code;
    nanosleep(&interval, NULL);
    code = ctl_top_take(top, TEXT_SESSIONS);
    if (code == CTL_EXIT_OK)
        ctl_top_view_text(stdout, &view);
    return code;
}

enum ctl_exit ctl_top_show(struct ctl_context *c, const struct ctl_arguments *a)
{
    const char *interval = ctl_arguments_value(a, "interval"),
               *sort = ctl_arguments_value(a, "sort");
    struct ctl_top top = {.context = c,
                          .interval_ns = interval ? ctl_value_ns(interval) : DEFAULT_INTERVAL_NS,
                          .sort = sort ? sort : "bytes"};
    enum ctl_exit code;

    if (c->prints_json || top.interval_ns < MIN_INTERVAL_NS) {
        ctl_report(c->prints_json ? "top is for people: loops, listeners, upstreams and sessions "
                                    "have --json"
                                  : "top: --interval is 100ms or more");
        return CTL_EXIT_FAILED;
    }
    if (isatty(STDOUT_FILENO) && !ctl_arguments_has(a, "once"))
        code = ctl_top_live(&top);
    else
        code = ctl_top_once(&top);
    if (code != CTL_EXIT_OK)
        ctl_report("%s", c->problem);
    ctl_top_sample_drop(&top.now);
    ctl_top_sample_drop(&top.before);
    return code;
}
