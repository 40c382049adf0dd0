#include "admin/route_edits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_request.h"
#include "admin/admin_types.h"
#include "admin/route_servers.h"

struct route_edits_call {
    struct admin_action action;
    char *name; /* UPSTREAM/ID, cut at the slash */
    char *line; /* NULL: none */
};

static void route_edits_free(struct route_edits_call *call)
{
    free(call->action.text);
    free(call->name);
    free(call->line);
    free(call);
}

/* ---- answers ---- */

static unsigned route_edits_status(const struct admin_action *action)
{
    switch (action->rc) {
    case -ENOENT: return 404;
    case -EINVAL: return 400;
    case -EAGAIN: return 503;
    default: return action->stopping ? 503 : 409;
    }
}

static void route_edits_answer(const struct admin_action *action)
{
    bool is_removed = !action->line, is_last = is_removed && action->n_up == 0;
    json_t *body = json_pack("{s:s++, s:s, s:{s:I, s:I}, s:s*}", "server", action->upstream, "/",
                             action->server, "state", is_removed ? "removed" : "added", "servers",
                             "up", (json_int_t)action->n_up, "used", (json_int_t)action->n_used,
                             "warning", is_last ? "no server is left that gets clients" : NULL);

    admin_answer_note(action->request, is_removed ? "removed" : "added");
    if (body && is_removed)
        (void)json_object_set_new(body, "sessions", json_integer(action->n_sessions));
    admin_answer_json(action->request, 200, body);
}

void route_edits_finish(struct admin_action *action)
{
    struct admin_request *rq = action->request;

    if (!action->done)
        admin_answer_error(rq, route_edits_status(action), "%s",
                           action->text ? action->text : action->error);
    else if (action->kind == ADMIN_UNDO_EDITS)
        route_servers_reset(rq);
    else
        route_edits_answer(action);
    route_edits_free(CONTAINER_OF(action, struct route_edits_call, action));
}

/* ---- requests ---- */

static struct route_edits_call *route_edits_call(struct admin_request *rq,
                                                 enum admin_action_kind kind)
{
    struct route_edits_call *call = calloc(1, sizeof(*call));

    if (!call) {
        admin_answer_error(rq, 503, "out of memory");
        return NULL;
    }
    call->action.kind = kind;
    call->action.request = rq;
    return call;
}

static void route_edits_submit(struct route_edits_call *call)
{
    const struct admin *a = admin_of(call->action.request);

    admin_wait(call->action.request);
    a->ops.submit(a->ops.cookie, &call->action);
}

/* Begin an edit of ${name}; ${line} NULL: remove it. */
static void route_edits_edit(struct admin_request *rq, const char *name, const char *line)
{
    const char *slash = name ? strchr(name, '/') : NULL;
    struct route_edits_call *call;

    if (!slash || slash == name || slash[1] == '\0') {
        admin_answer_error(rq, 400,
                           name ? "'server' is not UPSTREAM/SERVER" : "'server' is missing");
        return;
    }
    call = route_edits_call(rq, ADMIN_EDIT_SERVER);
    if (!call)
        return;
    call->name = strdup(name);
    call->line = line ? strdup(line) : NULL;
    if (!call->name || (line && !call->line)) {
        admin_answer_error(rq, 503, "out of memory");
        route_edits_free(call);
        return;
    }
    call->name[slash - name] = '\0';
    call->action.upstream = call->name;
    call->action.server = call->name + (slash - name) + 1;
    call->action.line = call->line;
    route_edits_submit(call);
}

static void route_edits_add(struct admin_request *rq)
{
    const char *name = NULL, *line = NULL;

    if (!admin_field_text(rq, "server", &name) || !admin_field_text(rq, "line", &line))
        return;
    if (line)
        route_edits_edit(rq, name, line);
    else
        admin_answer_error(rq, 400, "'line' is missing: ADDRESS and words, as in the file");
}

static void route_edits_remove(struct admin_request *rq)
{
    const char *name = NULL;

    if (admin_field_text(rq, "server", &name))
        route_edits_edit(rq, name, NULL);
}

static void route_edits_reset(struct admin_request *rq)
{
    struct route_edits_call *call = route_edits_call(rq, ADMIN_UNDO_EDITS);

    if (call)
        route_edits_submit(call);
}

static const char *const add_fields[] = {"server", "line", NULL};
static const char *const remove_fields[] = {"server", NULL};

static const struct admin_route list[] = {
    {"PUT", "/v1/server", ADMIN_ACTION, add_fields, route_edits_add},
    {"DELETE", "/v1/server", ADMIN_ACTION, remove_fields, route_edits_remove},
    {"POST", "/v1/reset", ADMIN_ACTION, NULL, route_edits_reset},
};

const struct admin_routes route_edits = {list, ARRAY_LEN(list)};
