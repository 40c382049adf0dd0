#include "admin/route_process.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_request.h"
#include "admin/admin_settings.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "server/server.h"
#include "server/server_admin.h"
#include "server/server_pause.h"
#include "stats/figure.h"

#define CONFIRM_MIN_NS NS_PER_S
#define CONFIRM_MAX_NS (3600 * NS_PER_S)

static const char type_text[] = "text/plain; charset=utf-8";

static bool route_process_is_draining(const struct admin_request *rq)
{
    return atomic_load_explicit(&admin_of(rq)->state, memory_order_relaxed) == ADMIN_DRAINING;
}

static void route_process_say(struct admin_request *rq, unsigned status, const char *word)
{
    char *text = NULL;
    int n = asprintf(&text, "%s\n", word);

    admin_answer_text(rq, status, type_text, n < 0 ? NULL : text, n < 0 ? 0 : (size_t)n);
}

static void route_process_health(struct admin_request *rq)
{
    route_process_say(rq, 200, "ok");
}

static void route_process_ready(struct admin_request *rq)
{
    if (route_process_is_draining(rq))
        route_process_say(rq, 503, "draining");
    else if (server_pause_is_any(admin_server(rq)))
        route_process_say(rq, 503, "paused");
    else
        route_process_say(rq, 200, "ready");
}

/* ---- status ---- */

static json_t *route_process_confirm_in_s(const struct admin_status *s)
{
    int64_t rest_ns = s->confirm_by_ns - clock_now_ns();

    if (s->confirm_by_ns == CLOCK_NEVER)
        return json_null();
    return json_integer(rest_ns > 0 ? (rest_ns + NS_PER_S - 1) / NS_PER_S : 0);
}

/* ${text} as a JSON string; if it is not UTF-8, with '?' for each byte that is not ASCII. */
static json_t *route_process_string(const char *text)
{
    json_t *string = json_string(text);
    char *copy = string ? NULL : strdup(text);

    for (char *p = copy; p && *p != '\0'; p++)
        if (!isascii((unsigned char)*p))
            *p = '?';
    if (copy)
        string = json_string(copy);
    free(copy);
    return string;
}

/* ${at} as a JSON string, by RFC 3339 and in UTC. */
static json_t *route_process_time(time_t at)
{
    char text[sizeof("2026-01-02T03:04:05Z") + 16];
    struct tm tm;

    gmtime_r(&at, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string(text);
}

/* What determines the number of worker loops by load; null: nothing. */
static json_t *route_process_auto(const struct server_scale *scale)
{
    if (scale->max == 0)
        return json_null();
    return json_pack("{s:i, s:i}", "min", (int)scale->min, "max", (int)scale->max);
}

/* The worker loops, and the sessions that stay on those out of use, by obstacle. */
static json_t *route_process_workers(const struct admin *a)
{
    const struct session_spread_figures f = server_admin_spread(a->server);
    const struct server_scale scale = server_admin_scale(a->server);
    json_t *staying = json_object();

    for (unsigned i = 0; i < SESSION_OBSTACLES; i++)
        if (f.staying[i] > 0)
            (void)json_object_set_new(staying, session_obstacle_name(i),
                                      json_integer((json_int_t)f.staying[i]));
    return json_pack("{s:i, s:o, s:o, s:I, s:I, s:I, s:o}", "threads", (int)f.workers, "set",
                     scale.set > 0 ? json_integer(scale.set) : json_null(), "auto",
                     route_process_auto(&scale), "scaled_up", (json_int_t)scale.n_up, "scaled_down",
                     (json_int_t)scale.n_down, "sessions_moved", (json_int_t)f.sessions_moved,
                     "staying", staying);
}

struct route_process_counters {
    struct figure_visitor visitor;
    json_t *out;
};

static void route_process_visit(struct figure_visitor *v, const struct figure_table *table,
                                const struct figure_object *object, const void *values)
{
    const struct route_process_counters *counters =
        CONTAINER_OF(v, struct route_process_counters, visitor);

    (void)object;
    for (const struct figure *f = table->figures; f < table->figures + table->n; f++) {
        MUST(f->type == FIGURE_UINT64);
        (void)json_object_set_new(
            counters->out, f->name,
            json_integer((json_int_t) * (const uint64_t *)figure_value(table, f, values)));
    }
}

/* The counters of rebalancing, as the metrics have them. */
static json_t *route_process_rebalance(const struct admin *a)
{
    struct route_process_counters counters = {.visitor = {.visit = route_process_visit},
                                              .out = json_object()};

    server_admin_rebalance_figures(a->server, &counters.visitor);
    return counters.out;
}

/* The last hand-off of sessions. */
static json_t *route_process_handoff(const struct handoff_figures *f)
{
    json_t *stayed = json_object();

    for (unsigned i = SESSION_STAYS_NOT + 1; i < SESSION_STAYS; i++)
        if (f->stayed[i] > 0)
            (void)json_object_set_new(stayed, session_stay_word((enum session_stay)i),
                                      json_integer((json_int_t)f->stayed[i]));
    return json_pack("{s:b, s:I, s:o}", "under_way", (int)f->under_way, "moved",
                     (json_int_t)f->moved, "stayed", stayed);
}

static void route_process_status(struct admin_request *rq)
{
    const struct admin *a = admin_of(rq);
    struct admin_status s;

    a->ops.status(a->ops.cookie, &s);
    admin_answer_json(
        rq, 200,
        json_pack(
            "{s:s, s:i, s:o, s:I, s:s, s:b, s:I, s:o, s:{s:s, s:I, s:I, s:I, s:o}, s:{s:I, s:o}, s:I, s:o, s:o}",
            "version", REACTORD_VERSION, "pid", (int)getpid(), "started_at",
            route_process_time(a->started_at), "uptime_s",
            (json_int_t)((clock_now_ns() - a->started_at_ns) / NS_PER_S), "state",
            route_process_is_draining(rq) ? "draining" : "serving", "write",
            (int)admin_settings_write(admin_of(rq)), "sessions",
            (json_int_t)server_sessions(a->server), "config_path",
            route_process_string(s.config_path), "reload", "state", s.reload, "count",
            (json_int_t)s.reloads, "failed", (json_int_t)s.reloads_failed, "reverted",
            (json_int_t)s.reloads_reverted, "confirm_in_s", route_process_confirm_in_s(&s),
            "upgrade", "old_processes", (json_int_t)s.old_processes, "handoff",
            route_process_handoff(&s.handoff), "edits", (json_int_t)s.edits, "workers",
            route_process_workers(a), "rebalance", route_process_rebalance(a)));
}

/* ---- actions of the main thread ---- */

static void route_process_submit(struct admin_request *rq, const struct admin_action *wanted)
{
    const struct admin *a = admin_of(rq);
    struct admin_action *action = malloc(sizeof(*action));

    if (!action) {
        admin_answer_error(rq, 503, "out of memory");
        return;
    }
    *action = *wanted;
    action->request = rq;
    admin_wait(rq);
    a->ops.submit(a->ops.cookie, action);
}

/* ${lines} as a JSON array, without empty lines. */
static json_t *route_process_lines(char *lines)
{
    json_t *list = json_array();
    char *rest = lines, *line;

    while (list && (line = strsep(&rest, "\n")))
        if (*line != '\0')
            (void)json_array_append_new(list, route_process_string(line));
    return list;
}

static void route_process_answer(struct admin_request *rq, struct admin_action *action)
{
    if (!action->done && action->text)
        admin_answer_json(rq, 409,
                          json_pack("{s:o, s:o}", "error", route_process_string(action->error),
                                    "messages", route_process_lines(action->text)));
    else if (!action->done)
        admin_answer_error(rq, action->stopping ? 503 : 409, "%s", action->error);
    else if (action->kind == ADMIN_RELOAD)
        admin_answer_json(rq, 200,
                          json_pack("{s:o}", "changes", route_process_lines(action->text)));
    else if (action->kind == ADMIN_SET_WORKERS)
        admin_answer_json(rq, 200, json_pack("{s:i}", "workers", (int)action->workers));
    else
        admin_answer_json(rq, 200, json_object());
}

void route_process_finish(struct admin_action *action)
{
    struct admin_request *rq = action->request;

    if (action->done && action->kind == ADMIN_DUMP_CONFIG) {
        admin_answer_text(rq, 200, type_text, action->text,
                          action->text ? strlen(action->text) : 0);
        action->text = NULL;
    } else {
        route_process_answer(rq, action);
    }
    free(action->text);
    free(action);
}

static void route_process_config(struct admin_request *rq)
{
    route_process_submit(rq, &(struct admin_action){.kind = ADMIN_DUMP_CONFIG});
}

static void route_process_reload(struct admin_request *rq)
{
    struct admin_action action = {.kind = ADMIN_RELOAD, .confirm_ns = ADMIN_CONFIRM_AS_CONFIGURED};

    if (admin_field_flag(rq, "dry_run", &action.dry_run) &&
        admin_field_duration(rq, "confirm", CONFIRM_MIN_NS, CONFIRM_MAX_NS, &action.confirm_ns))
        route_process_submit(rq, &action);
}

static void route_process_confirm(struct admin_request *rq)
{
    route_process_submit(rq, &(struct admin_action){.kind = ADMIN_CONFIRM});
}

static void route_process_revert(struct admin_request *rq)
{
    route_process_submit(rq, &(struct admin_action){.kind = ADMIN_REVERT});
}

static void route_process_upgrade(struct admin_request *rq)
{
    route_process_submit(rq, &(struct admin_action){.kind = ADMIN_UPGRADE});
}

void route_process_set_workers(struct admin_request *rq, unsigned workers)
{
    route_process_submit(rq, &(struct admin_action){.kind = ADMIN_SET_WORKERS, .workers = workers});
}

static const char *const reload_fields[] = {"dry_run", "confirm", NULL};

static const struct admin_route list[] = {
    {"GET", "/healthz", ADMIN_OPEN, NULL, route_process_health},
    {"GET", "/readyz", ADMIN_OPEN, NULL, route_process_ready},
    {"GET", "/v1/status", ADMIN_READ, NULL, route_process_status},
    {"GET", "/v1/config", ADMIN_READ, NULL, route_process_config},
    {"POST", "/v1/reload", ADMIN_ACTION, reload_fields, route_process_reload},
    {"POST", "/v1/confirm", ADMIN_ACTION, NULL, route_process_confirm},
    {"POST", "/v1/revert", ADMIN_ACTION, NULL, route_process_revert},
    {"POST", "/v1/upgrade", ADMIN_ACTION, NULL, route_process_upgrade},
};

const struct admin_routes route_process = {list, ARRAY_LEN(list)};
