#include "ctl/ctl_servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/ctl_filter.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_text.h"

#define WAIT_INTERVAL_NS (500 * NS_PER_MS)

const struct ctl_option ctl_servers_wait_options[] = {
    {"wait", NULL, 0, "return when the server has no session left", 0},
    {NULL, NULL, 0, NULL, 0},
};

static void ctl_servers_print(const char *server, const struct ctl_answer *answer)
{
    const char *state = json_string_value(json_object_get(answer->json, "state"));
    const char *warning = json_string_value(json_object_get(answer->json, "warning"));
    const json_t *weight = json_object_get(answer->json, "weight");
    char *clean = ctl_text_clean(state ? state : "changed");

    printf("%s: %s", server, clean);
    if (json_is_integer(weight))
        printf(", weight %lld", (long long)json_integer_value(weight));
    putchar('\n');
    fflush(stdout);
    free(clean);
    if (!warning)
        return;
    clean = ctl_text_clean(warning);
    ctl_report("%s: %s", server, clean);
    free(clean);
}

static enum ctl_exit ctl_servers_post(struct ctl_context *c, const char *server, json_t *body)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_post(c, "/v1/server", ctl_memory_need(body), &answer);

    if (code != CTL_EXIT_OK)
        return code;
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        ctl_servers_print(server, &answer);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

/*
 * Count the sessions of ${server}, at all its addresses, those included that it has no longer. None
 * are left if it is unknown: it has no address, or a reload has removed it.
 */
static enum ctl_exit ctl_servers_count(struct ctl_context *c, const char *server, long long *n)
{
    struct ctl_memory_text path;
    struct ctl_answer answer;
    enum ctl_exit code;
    const json_t *matched;

    ctl_memory_text_open(&path);
    fputs("/v1/sessions?limit=1", path.file);
    ctl_filter_put_argument(path.file, "server", server);
    code = ctl_context_try(c, &(struct ctl_request){.path = ctl_memory_text_close(&path)}, &answer);
    free(path.bytes);
    *n = 0;
    if (c->is_unknown)
        return CTL_EXIT_OK;
    if (code != CTL_EXIT_OK) {
        ctl_report("%s", c->problem);
        return code;
    }
    matched = json_object_get(answer.json, "matched");
    if (!json_is_integer(matched)) {
        ctl_report("%s: the answer does not tell its sessions", server);
        code = CTL_EXIT_FAILED;
    }
    *n = json_integer_value(matched);
    ctl_client_drop(&answer);
    return code;
}

static enum ctl_exit ctl_servers_wait(struct ctl_context *c, const char *server)
{
    const struct timespec interval = {.tv_nsec = WAIT_INTERVAL_NS};
    enum ctl_exit code;
    long long n = 0;

    while ((code = ctl_servers_count(c, server, &n)) == CTL_EXIT_OK && n > 0)
        nanosleep(&interval, NULL);
    if (code == CTL_EXIT_OK && !c->prints_json)
        printf("%s: no session\n", server);
    return code;
}

static enum ctl_exit ctl_servers_set_state(struct ctl_context *c, const struct ctl_arguments *a,
                                           const char *state)
{
    const char *server = a->words[0];
    enum ctl_exit code =
        ctl_servers_post(c, server, json_pack("{s:s, s:s}", "server", server, "state", state));

    if (code == CTL_EXIT_OK && ctl_arguments_has(a, "wait"))
        return ctl_servers_wait(c, server);
    return code;
}

enum ctl_exit ctl_servers_drain(struct ctl_context *c, const struct ctl_arguments *a)
{
    return ctl_servers_set_state(c, a, "drain");
}

enum ctl_exit ctl_servers_disable(struct ctl_context *c, const struct ctl_arguments *a)
{
    return ctl_servers_set_state(c, a, "disable");
}

enum ctl_exit ctl_servers_enable(struct ctl_context *c, const struct ctl_arguments *a)
{
    return ctl_servers_set_state(c, a, "enable");
}

enum ctl_exit ctl_servers_weight(struct ctl_context *c, const struct ctl_arguments *a)
{
    json_int_t weight = ctl_value_number(CTL_VALUE_NUMBER, a->words[1]);

    return ctl_servers_post(c, a->words[0],
                            json_pack("{s:s, s:I}", "server", a->words[0], "weight", weight));
}
