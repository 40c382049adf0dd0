#include "admin/route_sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_request.h"
#include "admin/session_page.h"
#include "base/clock.h"
#include "server/server_admin.h"
#include "sessions/rebalance.h"
#include "sessions/session_kill.h"
#include "sessions/session_query.h"
#include "sessions/session_row.h"
#include "sessions/session_shed.h"
#include "sessions/session_transfer.h"

#define ROUTE_SESSIONS_LIMIT   100
#define ROUTE_SESSIONS_OVER_NS (3600 * NS_PER_S)

/* Longest number as text. */
#define ROUTE_SESSIONS_NUMBER_BYTES 24

static const char *const filter_fields[] = {"id",   "listener", "upstream", "server",    "client",
                                            "loop", "min_age",  "min_idle", "min_bytes", NULL};

struct route_sessions_call {
    struct admin_request *rq;
    struct session_filter filter;
};

/* ---- the filter ---- */

static const char *route_sessions_set(struct session_filter *f, const char *name,
                                      const json_t *value)
{
    char number[ROUTE_SESSIONS_NUMBER_BYTES];

    if (json_is_string(value))
        return session_filter_set(f, name, json_string_value(value));
    if (!json_is_integer(value) || strcmp(name, "min_bytes") != 0)
        return "is not a text";
    snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return session_filter_set(f, name, number);
}

/* Read ${fields}, a list ended by NULL, into ${f}, and count them. False: an error was answered. */
static bool route_sessions_filter(struct admin_request *rq, const char *const *fields,
                                  struct session_filter *f, unsigned *n)
{
    for (*n = 0; *fields; fields++) {
        const json_t *value = json_object_get(admin_fields(rq), *fields);
        const char *why = value ? route_sessions_set(f, *fields, value) : NULL;

        if (why) {
            admin_answer_error(rq, 400, "'%s' %s", *fields, why);
            return false;
        }
        *n += value != NULL;
    }
    return true;
}

/*
 * If a name in the filter is unknown, answer with an error and return true. Call this only if no
 * session was found: a removed listener or server may have sessions.
 */
static bool route_sessions_unknown(const struct route_sessions_call *call)
{
    const struct session_filter *f = &call->filter;
    const struct server *sv = admin_server(call->rq);

    if (f->listener[0] != '\0' && !server_admin_has_listener(sv, f->listener))
        admin_answer_error(call->rq, 404, "listener '%s' does not exist", f->listener);
    else if (f->upstream[0] != '\0' && !server_admin_has_server(sv, f->upstream, ""))
        admin_answer_error(call->rq, 404, "upstream '%s' does not exist", f->upstream);
    else if (f->server[0] != '\0' && !server_admin_has_server(sv, f->upstream, f->server))
        admin_answer_error(call->rq, 404, "server '%s/%s' does not exist", f->upstream, f->server);
    else if (f->loop[0] != '\0' && !server_admin_has_worker(sv, f->loop))
        admin_answer_error(call->rq, 404, "worker loop '%s' does not exist", f->loop);
    else
        return false;
    return true;
}

/* Allocate a call; NULL: out of memory, and ${rq} is answered. */
static struct route_sessions_call *route_sessions_call(struct admin_request *rq,
                                                       const struct session_filter *f)
{
    struct route_sessions_call *call = malloc(sizeof(*call));

    if (!call)
        admin_answer_error(rq, 503, "out of memory");
    else
        *call = (struct route_sessions_call){.rq = rq, .filter = *f};
    return call;
}

/* If ${rc} is an error, the command did not begin: answer with the error. */
static void route_sessions_failed(struct route_sessions_call *call, int rc)
{
    if (rc == 0)
        return;
    admin_answer_error(call->rq, 503, "%s",
                       rc == -ESHUTDOWN ? "reactord is stopping" : "out of memory");
    free(call);
}

/* ---- list ---- */

static void route_sessions_listed(void *cookie, struct session_query_page *page)
{
    struct route_sessions_call *call = cookie;

    if (!page)
        admin_answer_error(call->rq, 503, "out of memory");
    else if (page->matched == 0 && route_sessions_unknown(call))
        session_query_page_free(page);
    else
        session_page_answer(call->rq, page);
    free(call);
}

/* Read `sort`, `after` and `limit` into ${conf}; false: an error was answered. */
static bool route_sessions_order(struct admin_request *rq, struct session_query_conf *conf)
{
    const char *sort = "age", *after = NULL;
    uint64_t limit = ROUTE_SESSIONS_LIMIT;

    if (!admin_field_text(rq, "sort", &sort) || !admin_field_text(rq, "after", &after) ||
        !admin_field_number(rq, "limit", 1, SESSION_QUERY_LIMIT_MAX, &limit))
        return false;
    conf->limit = (unsigned)limit;
    if (session_query_sort_of(&conf->sort, sort) < 0) {
        admin_answer_error(rq, 400, "'sort' is not age, idle, bytes or load");
        return false;
    }
    if (after &&
        (session_query_cursor_parse(&conf->after, after) < 0 || conf->after.sort != conf->sort)) {
        admin_answer_error(rq, 400, "'after' is not a cursor of this list");
        return false;
    }
    return true;
}

static void route_sessions_list(struct admin_request *rq)
{
    struct session_scan_workers workers = server_admin_workers(admin_server(rq));
    struct session_query_conf conf = {.answered = route_sessions_listed};
    struct route_sessions_call *call;
    unsigned n;

    if (!route_sessions_filter(rq, filter_fields, &conf.filter, &n) ||
        !route_sessions_order(rq, &conf))
        return;
    call = route_sessions_call(rq, &conf.filter);
    if (!call)
        return;
    conf.cookie = call;
    rebalance_time_events(&workers);
    route_sessions_failed(call, session_query_begin(&workers, &conf));
}

/* ---- kill ---- */

static void route_sessions_killed(void *cookie, uint64_t n)
{
    struct route_sessions_call *call = cookie;

    admin_answer_note(call->rq, "%" PRIu64 " sessions", n);
    if (n > 0 || !route_sessions_unknown(call))
        admin_answer_json(call->rq, 200, json_pack("{s:I}", "killed", (json_int_t)n));
    free(call);
}

/* Read a filter, or `all`; false: an error was answered. */
static bool route_sessions_selection(struct admin_request *rq, struct session_filter *filter)
{
    bool all = false;
    unsigned n;

    if (!route_sessions_filter(rq, filter_fields, filter, &n) || !admin_field_flag(rq, "all", &all))
        return false;
    if (all == (n > 0))
        admin_answer_error(
            rq, 400, all ? "'all' allows no other field" : "which sessions? \"all\": true for all");
    return all != (n > 0);
}

static void route_sessions_kill(struct admin_request *rq)
{
    struct session_scan_workers workers = server_admin_workers(admin_server(rq));
    struct session_filter filter = {.min_bytes = 0};
    struct route_sessions_call *call;

    if (!route_sessions_selection(rq, &filter))
        return;
    call = route_sessions_call(rq, &filter);
    if (call)
        route_sessions_failed(call,
                              session_kill_begin(&workers, &filter, route_sessions_killed, call));
}

/* ---- move ---- */

static void route_sessions_moved(void *cookie, const struct session_transfer_result *result)
{
    struct route_sessions_call *call = cookie;

    admin_answer_note(call->rq, "%" PRIu64 " sessions", result->moved);
    if (result->moved + result->there + result->busy + result->failed > 0 ||
        !route_sessions_unknown(call))
        admin_answer_json(call->rq, 200,
                          json_pack("{s:I, s:I, s:I, s:I}", "moved", (json_int_t)result->moved,
                                    "there", (json_int_t)result->there, "busy",
                                    (json_int_t)result->busy, "failed",
                                    (json_int_t)result->failed));
    free(call);
}

/* Read `to`; false: an error was answered. */
static bool route_sessions_target(struct admin_request *rq, struct loop **out)
{
    const char *to = NULL;
    int rc;

    if (!admin_field_text(rq, "to", &to))
        return false;
    if (!to) {
        admin_answer_error(rq, 400, "'to', a worker loop, is missing");
        return false;
    }
    rc = server_admin_find_worker(admin_server(rq), to, out);
    if (rc == -ENOENT)
        admin_answer_error(rq, 404, "worker loop '%s' does not exist", to);
    else if (rc < 0)
        admin_answer_error(rq, 409, "worker loop '%s' is parked: it gets no sessions", to);
    return rc == 0;
}

static void route_sessions_move(struct admin_request *rq)
{
    struct session_scan_workers workers = server_admin_workers(admin_server(rq));
    struct session_filter filter = {.min_bytes = 0};
    struct session_transfer_conf conf = {.filter = &filter, .answered = route_sessions_moved};

    if (!route_sessions_selection(rq, &filter) || !route_sessions_target(rq, &conf.to))
        return;
    conf.cookie = route_sessions_call(rq, &filter);
    if (conf.cookie)
        route_sessions_failed(conf.cookie, session_transfer_begin(&workers, &conf));
}

/* ---- rebalance ---- */

struct route_sessions_ask {
    struct rebalance_ask ask;
    struct admin_request *rq;
};

static double route_sessions_percent(unsigned load_us)
{
    return (double)load_us * 100 / REBALANCE_PLAN_WHOLE_US;
}

static json_t *route_sessions_rebalance_answer(const struct rebalance_ask *ask)
{
    return json_pack("{s:s?, s:f, s:s, s:f, s:I, s:I, s:I, s:I}", "from", ask->from, "load",
                     route_sessions_percent(ask->load_us), "idlest", ask->idlest, "idlest_load",
                     route_sessions_percent(ask->idlest_us), "moved", (json_int_t)ask->counts.moved,
                     "heavy", (json_int_t)ask->counts.heavy, "busy", (json_int_t)ask->counts.busy,
                     "failed", (json_int_t)ask->counts.failed);
}

static void route_sessions_rebalanced(struct rebalance_ask *ask, int rc)
{
    struct route_sessions_ask *call = CONTAINER_OF(ask, struct route_sessions_ask, ask);

    if (rc == 0) {
        admin_answer_note(call->rq, "%" PRIu64 " sessions", ask->counts.moved);
        admin_answer_json(call->rq, 200, route_sessions_rebalance_answer(ask));
    } else if (rc == -EBUSY) {
        admin_answer_error(call->rq, 409, "another request to rebalance is under way");
    } else {
        admin_answer_error(call->rq, 503, "reactord is stopping");
    }
    free(call);
}

static void route_sessions_rebalance(struct admin_request *rq)
{
    struct route_sessions_ask *call = calloc(1, sizeof(*call));

    if (!call) {
        admin_answer_error(rq, 503, "out of memory");
        return;
    }
    call->rq = rq;
    call->ask.answered = route_sessions_rebalanced;
    if (server_admin_rebalance(admin_server(rq), &call->ask) == 0)
        return;
    free(call);
    admin_answer_error(rq, 503, "reactord is stopping");
}

/* ---- shed ---- */

static void route_sessions_shed_told(void *cookie, int64_t n)
{
    struct route_sessions_call *call = cookie;

    admin_answer_note(call->rq, "%" PRId64 " sessions", n);
    if (n < 0)
        admin_answer_error(call->rq, 503, "out of memory");
    else if (n > 0 || !route_sessions_unknown(call))
        admin_answer_json(call->rq, 200, json_pack("{s:I}", "sessions", (json_int_t)n));
    free(call);
}

static void route_sessions_shed(struct admin_request *rq)
{
    static const char *const of[] = {"upstream", "server", NULL};
    struct session_scan_workers workers = server_admin_workers(admin_server(rq));
    struct session_shed_conf conf = {.answered = route_sessions_shed_told};
    struct route_sessions_call *call;
    uint64_t percent = 0;
    unsigned n;

    if (!route_sessions_filter(rq, of, &conf.filter, &n) ||
        !admin_field_number(rq, "percent", 1, 100, &percent) ||
        !admin_field_duration(rq, "over", 0, ROUTE_SESSIONS_OVER_NS, &conf.over_ns))
        return;
    if (n != 1 || percent == 0 || !admin_field_has(rq, "over")) {
        admin_answer_error(rq, 400,
                           n != 1         ? "either 'upstream' or 'server' is needed"
                           : percent == 0 ? "'percent' is missing"
                                          : "'over' is missing");
        return;
    }
    conf.percent = (unsigned)percent;
    call = route_sessions_call(rq, &conf.filter);
    if (!call)
        return;
    conf.cookie = call;
    route_sessions_failed(call, session_shed_begin(&workers, &conf));
}

static const char *const list_fields[] = {"id",    "listener", "upstream", "server",    "client",
                                          "loop",  "min_age",  "min_idle", "min_bytes", "sort",
                                          "limit", "after",    NULL};
static const char *const kill_fields[] = {"id",        "listener", "upstream", "server",
                                          "client",    "loop",     "min_age",  "min_idle",
                                          "min_bytes", "all",      NULL};
static const char *const move_fields[] = {"id",        "listener", "upstream", "server",
                                          "client",    "loop",     "min_age",  "min_idle",
                                          "min_bytes", "all",      "to",       NULL};
static const char *const shed_fields[] = {"upstream", "server", "percent", "over", NULL};

static const struct admin_route list[] = {
    {"GET", "/v1/sessions", ADMIN_READ, list_fields, route_sessions_list},
    {"POST", "/v1/sessions/kill", ADMIN_ACTION, kill_fields, route_sessions_kill},
    {"POST", "/v1/sessions/move", ADMIN_ACTION, move_fields, route_sessions_move},
    {"POST", "/v1/rebalance", ADMIN_ACTION, NULL, route_sessions_rebalance},
    {"POST", "/v1/shed", ADMIN_ACTION, shed_fields, route_sessions_shed},
};

const struct admin_routes route_sessions = {list, ARRAY_LEN(list)};
