#include "admin/route_servers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_request.h"
#include "admin/route_process.h"
#include "balance/balancer.h"
#include "base/log.h"
#include "server/server_admin.h"
#include "server/server_conf.h"

/* Maximum of max_connections, as in the configuration. */
#define ROUTE_SERVERS_CONNECTIONS_MAX 10000000

struct route_servers_call {
    struct server_admin change;
    struct admin_request *rq;
    char *name; /* UPSTREAM/SERVER, cut at the slash; or a listener's name */
};

static void route_servers_free(struct route_servers_call *call)
{
    free(call->name);
    free(call);
}

/* ---- answers ---- */

static const char *route_servers_state_text(enum server_line_state state)
{
    switch (state) {
    case SERVER_LINE_DRAIN: return "draining";
    case SERVER_LINE_DISABLED: return "disabled";
    case SERVER_LINE_READY:
    case SERVER_LINE_AS_CONFIGURED: break;
    }
    return "enabled";
}

static json_t *route_servers_line(const struct server_admin *change)
{
    json_t *weight = change->weight_now < 0 ? json_null() : json_integer(change->weight_now);

    return json_pack("{s:s++, s:s, s:o, s:s*}", "server", change->upstream, "/", change->server,
                     "state", route_servers_state_text(change->state_now), "weight", weight,
                     "warning", change->is_last ? "no server is left that gets clients" : NULL);
}

static json_t *route_servers_body(const struct server_admin *change)
{
    switch (change->kind) {
    case SERVER_ADMIN_STATE:
    case SERVER_ADMIN_WEIGHT: return route_servers_line(change);
    case SERVER_ADMIN_IO_RATIO: return json_pack("{s:i}", "io_ratio", (int)change->io_ratio);
    case SERVER_ADMIN_MAX_CONNECTIONS:
        return json_pack("{s:s, s:I}", "listener", change->target.listener, "max_connections",
                         (json_int_t)change->max_connections);
    case SERVER_ADMIN_PAUSE:
    case SERVER_ADMIN_RESUME:
    case SERVER_ADMIN_RESET: break;
    }
    return json_object();
}

static void route_servers_fail(const struct route_servers_call *call, int rc)
{
    const struct server_admin *change = &call->change;

    switch (rc) {
    case -ENOENT:
        if (change->target.listener)
            admin_answer_error(call->rq, 404, "listener '%s' does not exist",
                               change->target.listener);
        else
            admin_answer_error(call->rq, 404, "server '%s/%s' does not exist", change->upstream,
                               change->server);
        break;
    case -EOPNOTSUPP:
        admin_answer_error(call->rq, 409,
                           change->kind == SERVER_ADMIN_WEIGHT
                               ? "the weights of '%s/%s' are those of its SRV records"
                               : "'%s/%s' is a name and `disabled` in the configuration: nothing "
                                 "looks it up; change the line and reload",
                           change->upstream, change->server);
        break;
    case -EBUSY: admin_answer_error(call->rq, 409, "a reload is under way"); break;
    case -ESHUTDOWN: admin_answer_error(call->rq, 503, "reactord is stopping"); break;
    default: admin_answer_error(call->rq, 503, "%s", strerror(-rc)); break;
    }
}

static void route_servers_answered(struct server_admin *change, int rc)
{
    struct route_servers_call *call = CONTAINER_OF(change, struct route_servers_call, change);

    if (rc < 0)
        route_servers_fail(call, rc);
    else
        admin_answer_json(call->rq, 200, route_servers_body(change));
    route_servers_free(call);
}

/* ---- requests ---- */

/* Allocate a call; NULL: out of memory, and ${rq} is answered. */
static struct route_servers_call *route_servers_call(struct admin_request *rq,
                                                     const struct server_admin *change)
{
    struct route_servers_call *call = calloc(1, sizeof(*call));

    if (!call) {
        admin_answer_error(rq, 503, "out of memory");
        return NULL;
    }
    call->rq = rq;
    call->change = *change;
    call->change.answered = route_servers_answered;
    return call;
}

static void route_servers_begin(struct route_servers_call *call)
{
    int rc = server_admin_begin(admin_server(call->rq), &call->change);

    if (rc == 0)
        return;
    route_servers_fail(call, rc);
    route_servers_free(call);
}

/* Split ${name} at its slash; false: an error was answered. */
static bool route_servers_name(struct route_servers_call *call, const char *name)
{
    char *slash;

    call->name = strdup(name);
    slash = call->name ? strchr(call->name, '/') : NULL;
    if (!slash || slash == call->name || slash[1] == '\0') {
        admin_answer_error(call->rq, call->name ? 400 : 503,
                           call->name ? "'server' is not UPSTREAM/SERVER" : "out of memory");
        return false;
    }
    *slash = '\0';
    call->change.upstream = call->name;
    call->change.server = slash + 1;
    return true;
}

static bool route_servers_state(const char *word, enum server_line_state *out)
{
    static const struct {
        const char *word;
        enum server_line_state state;
    } words[] = {{"drain", SERVER_LINE_DRAIN},
                 {"disable", SERVER_LINE_DISABLED},
                 {"enable", SERVER_LINE_READY}};

    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(word, words[i].word) == 0) {
            *out = words[i].state;
            return true;
        }
    return false;
}

static void route_servers_change(struct admin_request *rq)
{
    struct server_admin change = {.kind = SERVER_ADMIN_STATE};
    const char *name = NULL, *state = NULL;
    struct route_servers_call *call;
    uint64_t weight = 0;

    if (!admin_field_text(rq, "server", &name) || !admin_field_text(rq, "state", &state) ||
        !admin_field_number(rq, "weight", 0, BALANCER_MAX_WEIGHT, &weight))
        return;
    if (!name || admin_field_has(rq, "weight") == (state != NULL)) {
        admin_answer_error(rq, 400,
                           name ? "either 'state' or 'weight' is needed" : "'server' is missing");
        return;
    }
    if (state && !route_servers_state(state, &change.state)) {
        admin_answer_error(rq, 400, "'state' is not drain, disable or enable");
        return;
    }
    if (!state)
        change.kind = SERVER_ADMIN_WEIGHT;
    change.weight = (unsigned)weight;
    call = route_servers_call(rq, &change);
    if (!call)
        return;
    if (route_servers_name(call, name))
        route_servers_begin(call);
    else
        route_servers_free(call);
}

static void route_servers_set_log_level(struct admin_request *rq, const char *word)
{
    enum log_level level;

    if (!log_level_of(word, &level)) {
        admin_answer_error(rq, 400, "'log_level' is not error, warning, notice, info or debug");
        return;
    }
    log_override_level(level);
    admin_answer_json(rq, 200, json_pack("{s:s}", "log_level", word));
}

static void route_servers_set_io_ratio(struct admin_request *rq, unsigned io_ratio)
{
    struct server_admin change = {.kind = SERVER_ADMIN_IO_RATIO, .io_ratio = io_ratio};
    struct route_servers_call *call = route_servers_call(rq, &change);

    if (call)
        route_servers_begin(call);
}

static void route_servers_set_max(struct admin_request *rq, const char *listener, uint64_t max)
{
    struct server_admin change = {.kind = SERVER_ADMIN_MAX_CONNECTIONS,
                                  .max_connections = (unsigned)max};
    struct route_servers_call *call = route_servers_call(rq, &change);

    if (!call)
        return;
    call->change.target.listener = call->name = strdup(listener);
    if (call->name) {
        route_servers_begin(call);
        return;
    }
    admin_answer_error(rq, 503, "out of memory");
    route_servers_free(call);
}

static void route_servers_set(struct admin_request *rq)
{
    const char *log_level = NULL, *listener = NULL;
    uint64_t io_ratio = 0, max = 0, workers = 0;

    if (!admin_field_number(rq, "io_ratio", 1, 100, &io_ratio) ||
        !admin_field_number(rq, "workers", 1, SERVER_WORKERS_MAX, &workers) ||
        !admin_field_text(rq, "log_level", &log_level) ||
        !admin_field_text(rq, "listener", &listener) ||
        !admin_field_number(rq, "max_connections", 0, ROUTE_SERVERS_CONNECTIONS_MAX, &max))
        return;
    if ((listener != NULL) != admin_field_has(rq, "max_connections"))
        admin_answer_error(rq, 400, "'listener' and 'max_connections' belong together");
    else if ((io_ratio > 0) + (workers > 0) + (log_level != NULL) + (listener != NULL) != 1)
        admin_answer_error(
            rq, 400, "either 'io_ratio', 'workers', 'log_level' or 'max_connections' is needed");
    else if (log_level)
        route_servers_set_log_level(rq, log_level);
    else if (listener)
        route_servers_set_max(rq, listener, max);
    else if (workers > 0)
        route_process_set_workers(rq, (unsigned)workers);
    else
        route_servers_set_io_ratio(rq, (unsigned)io_ratio);
}

void route_servers_reset(struct admin_request *rq)
{
    struct server_admin change = {.kind = SERVER_ADMIN_RESET};
    struct route_servers_call *call = route_servers_call(rq, &change);

    if (!call)
        return;
    log_restore_level();
    route_servers_begin(call);
}

static const char *const change_fields[] = {"server", "state", "weight", NULL};
static const char *const set_fields[] = {"io_ratio", "workers",         "log_level",
                                         "listener", "max_connections", NULL};

static const struct admin_route list[] = {
    {"POST", "/v1/server", ADMIN_ACTION, change_fields, route_servers_change},
    {"POST", "/v1/set", ADMIN_ACTION, set_fields, route_servers_set},
};

const struct admin_routes route_servers = {list, ARRAY_LEN(list)};
