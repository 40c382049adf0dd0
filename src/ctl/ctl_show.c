#include "ctl/ctl_show.h"

#include <stdio.h>
#include <string.h>

#include "ctl/ctl_list.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_text.h"
#include "ctl/ctl_units.h"
#include "ctl/ctl_upstreams.h"

static const struct ctl_list_column loop_columns[] = {
    {"LOOP", "name", CTL_LIST_TEXT},
    {"STATE", "state", CTL_LIST_TEXT},
    {"CONNECTIONS", "connections", CTL_LIST_COUNT},
    {"TURNS", "turns", CTL_LIST_COUNT},
    {"IO EVENTS", "io_events", CTL_LIST_COUNT},
    {"TASKS", "tasks_run", CTL_LIST_COUNT},
    {"PENDING", "tasks_pending", CTL_LIST_COUNT},
    {"TURN P99", "turn.p99_ms", CTL_LIST_MS},
    {"LONGEST", "longest_ms", CTL_LIST_MS},
    {"STALLS", "stalls", CTL_LIST_COUNT},
    {"IO RATIO", "io_ratio", CTL_LIST_PERCENT},
    {"ACHIEVED", "io_ratio_achieved", CTL_LIST_PERCENT},
};
static const struct ctl_list loop_list = {"name", loop_columns, ARRAY_LEN(loop_columns)};

static const struct ctl_list_column listener_columns[] = {
    {"LISTENER", "name", CTL_LIST_TEXT},      {"SERVICE", "service", CTL_LIST_TEXT},
    {"UPSTREAM", "upstream", CTL_LIST_TEXT},  {"STATE", "state", CTL_LIST_TEXT},
    {"SESSIONS", "sessions", CTL_LIST_COUNT}, {"TOTAL", "sessions_total", CTL_LIST_COUNT},
    {"IN", "bytes_in", CTL_LIST_BYTES},       {"OUT", "bytes_out", CTL_LIST_BYTES},
    {"LIMITS", "limits", CTL_LIST_TEXT},      {"ADDRESSES", "addresses", CTL_LIST_WORDS},
};
static const struct ctl_list listener_list = {"name", listener_columns,
                                              ARRAY_LEN(listener_columns)};

static const struct ctl_list_column upstream_columns[] = {
    {"UPSTREAM/SERVER", "name", CTL_LIST_TEXT},
    {"ADDRESS", "address", CTL_LIST_TEXT},
    {"STATE", "state", CTL_LIST_TEXT},
    {"WEIGHT", "weight", CTL_LIST_COUNT},
    {"SESSIONS", "sessions", CTL_LIST_COUNT},
    {"TOTAL", "sessions_total", CTL_LIST_COUNT},
    {"WAITING", "waiting", CTL_LIST_COUNT},
    {"IN", "bytes_in", CTL_LIST_BYTES},
    {"OUT", "bytes_out", CTL_LIST_BYTES},
    {"CONNECT P99", "connect_duration.p99_ms", CTL_LIST_MS},
    {"CONNECT", "connect_recent_ms", CTL_LIST_MS},
    {"FIRST BYTE", "first_byte_recent_ms", CTL_LIST_MS},
    {"FAILED", "connect_failures", CTL_LIST_COUNT},
    {"DOWNS", "downs", CTL_LIST_COUNT},
    {"SINCE", "state_age_ms", CTL_LIST_MS},
    {"BACKUP", "backup", CTL_LIST_COUNT},
    {"IN USE", "in_use", CTL_LIST_COUNT},
    {"BY HAND", "by_hand", CTL_LIST_COUNT},
    {"WHY", "down_reason", CTL_LIST_TEXT},
    {"AGENT", "agent", CTL_LIST_TEXT},
};
static const struct ctl_list upstream_list = {"name", upstream_columns,
                                              ARRAY_LEN(upstream_columns)};

static enum ctl_exit ctl_show_rows(struct ctl_context *c, const char *path, const char *key,
                                   void (*print)(const json_t *rows))
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_get(c, path, &answer);
    json_t *rows;

    if (code != CTL_EXIT_OK)
        return code;
    rows = ctl_context_rows(c, &answer, key);
    if (!rows) {
        ctl_report("%s", c->problem);
        code = CTL_EXIT_FAILED;
    } else if (c->prints_json) {
        ctl_print_json(&answer);
    } else {
        print(rows);
    }
    ctl_client_drop(&answer);
    return code;
}

static void ctl_show_print_loops(const json_t *rows)
{
    ctl_list_print(&loop_list, rows);
}

static void ctl_show_print_listeners(const json_t *rows)
{
    ctl_list_print(&listener_list, rows);
}

static void ctl_show_print_upstreams(const json_t *rows)
{
    json_t *flat = ctl_upstreams_flat(rows);

    ctl_list_print(&upstream_list, flat);
    json_decref(flat);
}

enum ctl_exit ctl_show_loops(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_show_rows(c, "/v1/loops", "loops", ctl_show_print_loops);
}

enum ctl_exit ctl_show_listeners(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_show_rows(c, "/v1/listeners", "listeners", ctl_show_print_listeners);
}

enum ctl_exit ctl_show_upstreams(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_show_rows(c, "/v1/upstreams", "upstreams", ctl_show_print_upstreams);
}

/* ---- status ---- */

static void ctl_show_field(const char *title, const json_t *value)
{
    const char *text = json_string_value(value);

    printf("%-14s ", title);
    if (json_is_integer(value))
        printf("%lld", (long long)json_integer_value(value));
    else if (text)
        ctl_text_put(stdout, text, strlen(text), false);
    else
        putchar('-');
    putchar('\n');
}

static void ctl_show_uptime(const json_t *status)
{
    const json_t *started = json_object_get(status, "started_at");
    const char *text = json_string_value(started);

    printf("%-14s ", "up");
    ctl_units_put_seconds(stdout, json_number_value(json_object_get(status, "uptime_s")));
    if (text) {
        fputs(", since ", stdout);
        ctl_text_put(stdout, text, strlen(text), false);
    }
    putchar('\n');
}

static void ctl_show_reload(const json_t *reload)
{
    const json_t *rest = json_object_get(reload, "confirm_in_s");
    const char *state = json_string_value(json_object_get(reload, "state"));

    printf("%-14s ", "reloads");
    printf("%lld, %lld refused, ", (long long)json_integer_value(json_object_get(reload, "count")),
           (long long)json_integer_value(json_object_get(reload, "failed")));
    ctl_text_put(stdout, state ? state : "-", state ? strlen(state) : 1, false);
    if (json_is_number(rest)) {
        fputs(": reverted in ", stdout);
        ctl_units_put_seconds(stdout, json_number_value(rest));
        fputs(" unless `reactorctl confirm`", stdout);
    }
    putchar('\n');
}

/* The last hand-off of sessions, by a process that was replaced; an older daemon tells none. */
static void ctl_show_handoff(const json_t *handoff)
{
    const char *reason, *before = "; stayed: ";
    const json_t *n;

    printf("%-14s ", "hand-off");
    if (!handoff) {
        puts("-");
        return;
    }
    printf("%lld sessions moved", (long long)json_integer_value(json_object_get(handoff, "moved")));
    if (json_is_true(json_object_get(handoff, "under_way")))
        fputs(" so far", stdout);
    json_object_foreach(json_object_get(handoff, "stayed"), reason, n)
    {
        fputs(before, stdout);
        ctl_text_put(stdout, reason, strlen(reason), false);
        printf(" %lld", (long long)json_integer_value(n));
        before = ", ";
    }
    putchar('\n');
}

static void ctl_show_print_status(const json_t *status)
{
    const json_t *upgrade = json_object_get(status, "upgrade");

    ctl_show_field("version", json_object_get(status, "version"));
    ctl_show_field("pid", json_object_get(status, "pid"));
    ctl_show_field("state", json_object_get(status, "state"));
    ctl_show_uptime(status);
    ctl_show_field("sessions", json_object_get(status, "sessions"));
    ctl_show_field("configuration", json_object_get(status, "config_path"));
    ctl_show_reload(json_object_get(status, "reload"));
    ctl_show_field("old processes", json_object_get(upgrade, "old_processes"));
    ctl_show_handoff(json_object_get(upgrade, "handoff"));
    ctl_show_field("edits", json_object_get(status, "edits"));
    ctl_show_field("workers", json_object_get(json_object_get(status, "workers"), "threads"));
    ctl_show_field("rebalanced", json_object_get(json_object_get(status, "rebalance"), "moved"));
}

enum ctl_exit ctl_show_status(struct ctl_context *c, const struct ctl_arguments *a)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_get(c, "/v1/status", &answer);

    (void)a;
    return code == CTL_EXIT_OK ? ctl_print_answer(c, &answer, ctl_show_print_status) : code;
}

/* ---- texts ---- */

static enum ctl_exit ctl_show_text(struct ctl_context *c, const char *path)
{
    const struct ctl_request request = {.path = path, .wants_text = true};
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_send(c, &request, &answer);

    if (code != CTL_EXIT_OK)
        return code;
    ctl_print_text(&answer);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

enum ctl_exit ctl_show_config(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_show_text(c, "/v1/config");
}

enum ctl_exit ctl_show_metrics(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_show_text(c, "/metrics");
}
