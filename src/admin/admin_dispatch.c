#include "admin/admin_dispatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/admin_answer.h"
#include "admin/admin_client.h"
#include "admin/admin_routes.h"
#include "admin/admin_settings.h"
#include "admin/admin_types.h"
#include "admin/arguments.h"
#include "admin/host.h"
#include "base/clock.h"
#include "engine/loop.h"

#define BODY_MAX_BYTES (64 * 1024)

#define BEARER "Bearer "

static char empty_query[] = "";

static struct admin_request *admin_dispatch_begin(struct admin_client *c, const char *uri)
{
    struct admin_request *rq = calloc(1, sizeof(*rq));

    if (!rq)
        return NULL;
    rq->path = strdup(uri);
    if (!rq->path) {
        free(rq);
        return NULL;
    }
    rq->query = strchr(rq->path, '?');
    if (rq->query)
        *rq->query++ = '\0';
    else
        rq->query = empty_query;
    rq->client = c;
    c->request = rq;
    if (c->n_requests++ > 0)
        admin_client_restart(c);
    return rq;
}

/* Refuse requests from pages of other sites, because any page in a browser can connect over TCP. */
static bool admin_dispatch_is_same_site(struct admin_request *rq, const struct admin_head *head)
{
    if (!host_is_origin(head->origin, head->host)) {
        admin_answer_error(rq, 403, "Origin is that of another site");
        return false;
    }
    if (rq->client->is_unix || host_is_ours(head->host, &rq->client->local))
        return true;
    admin_answer_error(rq, 403, "Host is neither localhost nor the address of this interface");
    return false;
}

/* Is the client allowed by the unix socket, or by the token? */
static bool admin_dispatch_is_known(struct admin_client *c, const char *authorization)
{
    if (c->is_unix)
        return true;
    if (!authorization || strncasecmp(authorization, BEARER, strlen(BEARER)) != 0 ||
        !admin_settings_is_token(c->admin, authorization + strlen(BEARER)))
        return false;
    c->has_token = true;
    return true;
}

static bool admin_dispatch_has_token(struct admin_request *rq, const struct admin_head *head)
{
    struct admin *a = rq->client->admin;
    const char *given = head->authorization;
    unsigned suppressed;

    if (admin_dispatch_is_known(rq->client, given))
        return true;
    if (log_allowed(&a->token_limit, NS_PER_S, &suppressed))
        log_warning("admin: %s: refused: %s%s", rq->client->name,
                    given ? "wrong token" : "no token", LOG_SUPPRESSED(suppressed));
    rq->answer.header = "WWW-Authenticate";
    rq->answer.value = "Bearer";
    admin_answer_error(rq, 401, given ? "the token is wrong" : "a token is needed");
    return false;
}

static void admin_dispatch_refuse_path(struct admin_request *rq)
{
    const char *allow = rq->allow;

    if (*allow == '\0') {
        admin_answer_error(rq, 404, "there is nothing at this path");
        return;
    }
    rq->answer.header = "Allow";
    rq->answer.value = allow;
    admin_answer_error(
        rq, 405, strchr(allow, ',') ? "the methods here are %s" : "the method here is %s", allow);
}

static void admin_dispatch_admit(struct admin_request *rq, const struct admin_route *route)
{
    rq->route = route;
    if (route->access == ADMIN_ACTION && !admin_settings_write(rq->client->admin))
        admin_answer_error(rq, 403, "actions are not allowed: [admin] write = no");
}

static void admin_dispatch_head(struct admin_request *rq, const struct admin_head *head)
{
    const struct admin_route *route = admin_routes_find(rq->path, head->method, rq->allow);
    bool open = route && route->access == ADMIN_OPEN;

    MUST(loop_is_current(rq->client->admin->loop));
    if (head->problem) {
        rq->answer.is_last = true;
        admin_answer_error(rq, 400, "%s", head->problem);
    } else if (rq->client->extra && !open &&
               !(admin_dispatch_is_known(rq->client, head->authorization) &&
                 admin_client_take_place(rq->client)))
        admin_answer_error(rq, 503, "max_connections is reached");
    else if (!admin_dispatch_is_same_site(rq, head))
        return;
    else if (!open && !admin_dispatch_has_token(rq, head))
        return;
    else if (!route)
        admin_dispatch_refuse_path(rq);
    else
        admin_dispatch_admit(rq, route);
}

static void admin_dispatch_body(struct admin_request *rq, const char *data, size_t n)
{
    size_t before = rq->body_len;
    char *larger;

    rq->body_len += n;
    if (rq->state != ADMIN_REQUEST_READING)
        return;
    if (rq->body_len > BODY_MAX_BYTES) {
        admin_answer_error(rq, 413, "the body is longer than %d bytes", BODY_MAX_BYTES);
        return;
    }
    larger = realloc(rq->body, rq->body_len);
    if (!larger) {
        admin_answer_error(rq, 503, "out of memory");
        return;
    }
    rq->body = larger;
    memcpy(rq->body + before, data, n);
}

/* Read the fields: from the query of a GET, or from the body of others. */
static int admin_dispatch_parse(struct admin_request *rq, struct arguments_problem *problem)
{
    int rc;

    if (rq->route->access != ADMIN_ACTION) {
        if (rq->body_len > 0)
            return arguments_refuse(problem, "this request has no body");
        rc = arguments_parse_query(&rq->fields, rq->query, problem);
    } else {
        if (*rq->query != '\0')
            return arguments_refuse(problem, "fields are in the body, as JSON, not in the query");
        rc = arguments_parse_body(&rq->fields, rq->body, rq->body_len, problem);
    }
    return rc < 0 ? rc : arguments_check_names(rq->fields, rq->route->fields, problem);
}

static void admin_dispatch_handle(struct admin_request *rq)
{
    struct arguments_problem problem;
    int rc = admin_dispatch_parse(rq, &problem);

    MUST(loop_is_current(rq->client->admin->loop));
    rq->state = ADMIN_REQUEST_HANDLING;
    if (rc == -ENOMEM)
        admin_answer_error(rq, 503, "out of memory");
    else if (rc < 0)
        admin_answer_error(rq, 400, "%s", problem.text);
    else
        rq->route->handle(rq);
}

static void admin_dispatch_end(struct admin_request *rq)
{
    struct admin_client *c = rq->client;

    MUST(rq->state != ADMIN_REQUEST_HANDLING);
    c->request = NULL;
    c->admin->n_figures -= rq->has_figures;
    admin_client_restart(c);
    json_decref(rq->fields);
    free(rq->answer.text);
    free(rq->body);
    free(rq->path);
    free(rq);
}

const struct admin_http_ops admin_dispatch_ops = {.begin = admin_dispatch_begin,
                                                  .head = admin_dispatch_head,
                                                  .body = admin_dispatch_body,
                                                  .handle = admin_dispatch_handle,
                                                  .end = admin_dispatch_end};
