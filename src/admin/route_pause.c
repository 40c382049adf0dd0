#include "admin/route_pause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_request.h"
#include "base/clock.h"
#include "server/server_admin.h"

#define ROUTE_PAUSE_HELD     1000
#define ROUTE_PAUSE_HELD_MAX 1000000
#define ROUTE_PAUSE_RATE_MAX 1000000
#define ROUTE_PAUSE_FOR_NS   (30 * NS_PER_S)
#define ROUTE_PAUSE_MIN_NS   NS_PER_S
#define ROUTE_PAUSE_MAX_NS   (3600 * NS_PER_S)

struct route_pause_call {
    struct server_admin change;
    struct admin_request *rq;
    char *name;
};

static void route_pause_free(struct route_pause_call *call)
{
    free(call->name);
    free(call);
}

static void route_pause_fail(const struct route_pause_call *call, int rc)
{
    const char *kind = call->change.target.listener ? "listener" : "upstream";

    switch (rc) {
    case -ENOENT:
        admin_answer_error(call->rq, 404, "%s '%s' does not exist", kind, call->name);
        break;
    case -EALREADY:
        admin_answer_error(call->rq, 409, "%s '%s' is not paused", kind, call->name);
        break;
    case -ESHUTDOWN: admin_answer_error(call->rq, 503, "reactord is stopping"); break;
    default: admin_answer_error(call->rq, 503, "%s", strerror(-rc)); break;
    }
}

static const char *route_pause_state(const struct server_admin *change)
{
    if (change->kind == SERVER_ADMIN_PAUSE)
        return "paused";
    return change->rate > 0 ? "resuming" : "resumed";
}

static void route_pause_answered(struct server_admin *change, int rc)
{
    struct route_pause_call *call = CONTAINER_OF(change, struct route_pause_call, change);

    if (rc < 0)
        route_pause_fail(call, rc);
    else
        admin_answer_json(call->rq, 200, json_pack("{s:s}", "state", route_pause_state(change)));
    route_pause_free(call);
}

/* Begin ${change} for the listener or upstream that ${rq} names. */
static void route_pause_act(struct admin_request *rq, const struct server_admin *change)
{
    const char *listener = NULL, *upstream = NULL;
    struct route_pause_call *call;
    int rc;

    if (!admin_field_text(rq, "listener", &listener) ||
        !admin_field_text(rq, "upstream", &upstream))
        return;
    if (!listener == !upstream) {
        admin_answer_error(rq, 400, "either 'listener' or 'upstream' is needed");
        return;
    }
    if (listener && admin_field_has(rq, "max_held")) {
        admin_answer_error(rq, 400,
                           "'max_held' is of an upstream; a listener holds as many as its "
                           "backlog");
        return;
    }
    call = malloc(sizeof(*call));
    if (call)
        *call = (struct route_pause_call){
            .change = *change, .rq = rq, .name = strdup(listener ? listener : upstream)};
    if (!call || !call->name) {
        free(call);
        admin_answer_error(rq, 503, "out of memory");
        return;
    }
    if (listener)
        call->change.target.listener = call->name;
    else
        call->change.target.upstream = call->name;
    call->change.answered = route_pause_answered;
    rc = server_admin_begin(admin_server(rq), &call->change);
    if (rc == 0)
        return;
    route_pause_fail(call, rc);
    route_pause_free(call);
}

static void route_pause_begin(struct admin_request *rq)
{
    struct server_admin change = {.kind = SERVER_ADMIN_PAUSE,
                                  .pause = {.for_ns = ROUTE_PAUSE_FOR_NS}};
    uint64_t max_held = ROUTE_PAUSE_HELD;

    if (!admin_field_number(rq, "max_held", 1, ROUTE_PAUSE_HELD_MAX, &max_held) ||
        !admin_field_duration(rq, "for", ROUTE_PAUSE_MIN_NS, ROUTE_PAUSE_MAX_NS,
                              &change.pause.for_ns))
        return;
    change.pause.max_held = (unsigned)max_held;
    route_pause_act(rq, &change);
}

static void route_pause_resume(struct admin_request *rq)
{
    struct server_admin change = {.kind = SERVER_ADMIN_RESUME};
    uint64_t rate = 0;

    if (!admin_field_number(rq, "rate", 0, ROUTE_PAUSE_RATE_MAX, &rate))
        return;
    change.rate = (unsigned)rate;
    route_pause_act(rq, &change);
}

static const char *const begin_fields[] = {"listener", "upstream", "max_held", "for", NULL};
static const char *const resume_fields[] = {"listener", "upstream", "rate", NULL};

static const struct admin_route list[] = {
    {"POST", "/v1/pause", ADMIN_ACTION, begin_fields, route_pause_begin},
    {"POST", "/v1/resume", ADMIN_ACTION, resume_fields, route_pause_resume},
};

const struct admin_routes route_pause = {list, ARRAY_LEN(list)};
