#include "ctl/ctl_context.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl_problem.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_token.h"

#define HTTP_BAD_REQUEST 400
#define HTTP_NOT_FOUND   404
#define HTTP_TIMEOUT     408

enum ctl_exit ctl_context_open(struct ctl_context *c, const char *address, const char *token_file,
                               int64_t timeout_ns)
{
    const char *environment = getenv(CTL_ADDRESS_ENVIRONMENT);

    if (!address)
        address = environment && *environment ? environment : CTL_ADDRESS_DEFAULT;
    if (ctl_address_parse(&c->conf.address, address, c->problem, sizeof(c->problem)) < 0) {
        ctl_report("address '%s' %s", address, c->problem);
        return CTL_EXIT_FAILED;
    }
    if (token_file && ctl_token_read(&c->token, token_file) < 0)
        return CTL_EXIT_FAILED;
    c->conf.token = c->token;
    c->conf.timeout_ns = timeout_ns;
    if (ctl_client_open(&c->client, &c->conf) < 0) {
        ctl_report("libcurl cannot be used");
        free(c->token);
        return CTL_EXIT_FAILED;
    }
    return CTL_EXIT_OK;
}

void ctl_context_close(struct ctl_context *c)
{
    ctl_client_close(c->client);
    free(c->token);
}

enum ctl_exit ctl_context_try(struct ctl_context *c, const struct ctl_request *request,
                              struct ctl_answer *out)
{
    enum ctl_client_failure failure = ctl_client_ask(c->client, request, out);
    enum ctl_exit code;

    c->is_late =
        failure == CTL_CLIENT_TIMEOUT || (failure == CTL_CLIENT_OK && out->status == HTTP_TIMEOUT);
    c->is_unknown = failure == CTL_CLIENT_OK && out->status == HTTP_NOT_FOUND;
    if (failure != CTL_CLIENT_OK) {
        ctl_problem_of_failure(c, failure);
        return CTL_EXIT_FAILED;
    }
    if (out->status < HTTP_BAD_REQUEST)
        return CTL_EXIT_OK;
    code = ctl_problem_of_refusal(c, request, out);
    ctl_client_drop(out);
    return code;
}

enum ctl_exit ctl_context_send(struct ctl_context *c, const struct ctl_request *request,
                               struct ctl_answer *out)
{
    enum ctl_exit code = ctl_context_try(c, request, out);

    if (code != CTL_EXIT_OK)
        ctl_report("%s", c->problem);
    return code;
}

enum ctl_exit ctl_context_get(struct ctl_context *c, const char *path, struct ctl_answer *out)
{
    return ctl_context_send(c, &(struct ctl_request){.path = path}, out);
}

enum ctl_exit ctl_context_post(struct ctl_context *c, const char *path, json_t *body,
                               struct ctl_answer *out)
{
    enum ctl_exit code =
        ctl_context_send(c, &(struct ctl_request){.path = path, .body = body}, out);

    json_decref(body);
    return code;
}

static bool ctl_context_are_objects(const json_t *rows)
{
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (!json_is_object(row))
            return false;
    }
    return json_is_array(rows);
}

json_t *ctl_context_rows(struct ctl_context *c, const struct ctl_answer *answer, const char *key)
{
    json_t *rows = json_object_get(answer->json, key);

    if (ctl_context_are_objects(rows))
        return rows;
    snprintf(c->problem, sizeof(c->problem),
             "the answer of %s has no list '%s': is this reactord's admin interface?",
             c->conf.address.text, key);
    return NULL;
}
