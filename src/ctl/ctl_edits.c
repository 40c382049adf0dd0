#include "ctl/ctl_edits.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_text.h"

static void ctl_edits_print(const char *server, const struct ctl_answer *answer)
{
    const char *state = json_string_value(json_object_get(answer->json, "state"));
    const char *warning = json_string_value(json_object_get(answer->json, "warning"));
    const json_t *sessions = json_object_get(answer->json, "sessions");
    const json_t *servers = json_object_get(answer->json, "servers");
    char *clean = ctl_text_clean(state ? state : "done");

    printf("%s: %s", server, clean);
    free(clean);
    if (json_integer_value(sessions) > 0)
        printf("; sessions that go on: %lld", (long long)json_integer_value(sessions));
    if (servers)
        printf("; servers up: %lld of %lld",
               (long long)json_integer_value(json_object_get(servers, "up")),
               (long long)json_integer_value(json_object_get(servers, "used")));
    putchar('\n');
    fflush(stdout);
    if (!warning)
        return;
    clean = ctl_text_clean(warning);
    ctl_report("%s: %s", server, clean);
    free(clean);
}

static enum ctl_exit ctl_edits_send(struct ctl_context *c, const char *method, const char *server,
                                    json_t *body)
{
    const struct ctl_request request = {
        .path = "/v1/server", .body = ctl_memory_need(body), .method = method};
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_send(c, &request, &answer);

    json_decref(body);
    if (code != CTL_EXIT_OK)
        return code;
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        ctl_edits_print(server, &answer);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

enum ctl_exit ctl_edits_add(struct ctl_context *c, const struct ctl_arguments *a)
{
    return ctl_edits_send(c, "PUT", a->words[0],
                          json_pack("{s:s, s:s}", "server", a->words[0], "line", a->words[1]));
}

enum ctl_exit ctl_edits_remove(struct ctl_context *c, const struct ctl_arguments *a)
{
    return ctl_edits_send(c, "DELETE", a->words[0], json_pack("{s:s}", "server", a->words[0]));
}
