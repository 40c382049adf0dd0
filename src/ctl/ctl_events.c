#include "ctl/ctl_events.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_text.h"

#define PATH_BYTES 96
#define MAX_LIMIT  500 /* maximum of events that the daemon keeps */

#define EVENTS_OF_BYTES 64

const struct ctl_option ctl_events_options[] = {
    {"follow", NULL, 0, "go on with new events, also over restarts, until interrupted", 'f'},
    {"limit", "N", CTL_VALUE_NUMBER, "begin with the last N events (500, which is all)", 0},
    {NULL, NULL, 0, NULL, 0},
};

struct ctl_events {
    struct ctl_context *context;
    long long limit;
    json_int_t last;              /* of the last answer; 0: none */
    char series[EVENTS_OF_BYTES]; /* the last ID belongs to it; "": no answer yet */
    bool is_away;                 /* the daemon did not answer, as was reported */
};

static void ctl_events_put(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));

    ctl_text_put(stdout, text ? text : "-", text ? strlen(text) : 1, false);
}

static double ctl_events_seconds(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static void ctl_events_print(const json_t *event)
{
    json_int_t lines = json_integer_value(json_object_get(event, "lines"));
    json_int_t others = json_integer_value(json_object_get(event, "others"));

    ctl_events_put(event, "time");
    putchar(' ');
    ctl_events_put(event, "level");
    putchar(' ');
    ctl_events_put(event, "text");
    if (others > 0)
        printf(" (and %lld others like it in %.1f s)", (long long)others,
               ctl_events_seconds(event, "first_age_s") - ctl_events_seconds(event, "age_s"));
    else if (lines > 1)
        printf(" (%lld times)", (long long)lines);
    putchar('\n');
}

/* What the IDs of an answer belong to; an older daemon has only its pid. */
static void ctl_events_series(char *series, const struct ctl_answer *answer)
{
    const char *text = json_string_value(json_object_get(answer->json, "series"));

    if (text)
        snprintf(series, EVENTS_OF_BYTES, "%s", text);
    else
        snprintf(series, EVENTS_OF_BYTES, "pid %lld",
                 (long long)json_integer_value(json_object_get(answer->json, "pid")));
}

/* Print what is new; the first time at most ${limit} events. */
static enum ctl_exit ctl_events_take(struct ctl_events *e, const struct ctl_answer *answer)
{
    json_t *rows = ctl_context_rows(e->context, answer, "events"), *row;
    size_t i;

    if (!rows)
        return CTL_EXIT_FAILED;
    e->last = json_integer_value(json_object_get(answer->json, "last"));
    ctl_events_series(e->series, answer);
    if (e->context->prints_json && (json_array_size(rows) > 0 || e->limit > 0))
        ctl_print_json(answer);
    json_array_foreach(rows, i, row)
    {
        if (!e->context->prints_json)
            ctl_events_print(row);
    }
    fflush(stdout);
    return CTL_EXIT_OK;
}

static enum ctl_exit ctl_events_ask(struct ctl_events *e)
{
    char path[PATH_BYTES], series[EVENTS_OF_BYTES];
    struct ctl_answer answer;
    enum ctl_exit code;

    snprintf(path, sizeof(path), "/v1/events?after=%lld&limit=%lld", (long long)e->last,
             e->limit > 0 ? e->limit : MAX_LIMIT);
    code = ctl_context_try(e->context, &(struct ctl_request){.path = path}, &answer);
    if (code != CTL_EXIT_OK)
        return code;
    ctl_events_series(series, &answer);
    if (e->series[0] != '\0' && strcmp(series, e->series) != 0) {
        ctl_client_drop(&answer);
        e->last = 0; /* another process, with events of its own */
        e->series[0] = '\0';
        return ctl_events_ask(e);
    }
    code = ctl_events_take(e, &answer);
    ctl_client_drop(&answer);
    e->limit = 0;
    return code;
}

static void ctl_events_wait(void)
{
    const struct timespec second = {.tv_sec = 1};

    nanosleep(&second, NULL);
}

/* Go on until a signal ends the program. */
static void ctl_events_follow(struct ctl_events *e)
{
    for (;;) {
        bool was_away = e->is_away;

        ctl_events_wait();
        e->is_away = ctl_events_ask(e) != CTL_EXIT_OK;
        if (e->is_away && !was_away)
            ctl_report("%s; trying again", e->context->problem);
    }
}

enum ctl_exit ctl_events_show(struct ctl_context *c, const struct ctl_arguments *a)
{
    const char *limit = ctl_arguments_value(a, "limit");
    struct ctl_events e = {.context = c, .limit = MAX_LIMIT};
    enum ctl_exit code;

    if (limit)
        e.limit = ctl_value_number(CTL_VALUE_NUMBER, limit);
    if (e.limit < 1 || e.limit > MAX_LIMIT) {
        ctl_report("events: --limit is 1 to %d", MAX_LIMIT);
        return CTL_EXIT_FAILED;
    }
    code = ctl_events_ask(&e);
    if (code != CTL_EXIT_OK)
        ctl_report("%s", c->problem);
    else if (ctl_arguments_has(a, "follow"))
        ctl_events_follow(&e);
    return code;
}
