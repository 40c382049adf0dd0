#include "ctl/ctl_bans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl_filter.h"
#include "ctl/ctl_list.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"

const struct ctl_option ctl_bans_options[] = {
    {"listener", "NAME", CTL_VALUE_LISTENER, "of this listener", 0},
    {"client", "CIDR", CTL_VALUE_TEXT, "of clients in this network, such as 10.0.0.0/8", 0},
    {"limit", "N", CTL_VALUE_NUMBER, "show at most N bans, the newest (100; at most 1000)", 0},
    {NULL, NULL, 0, NULL, 0},
};

const struct ctl_option ctl_bans_lift_options[] = {
    {"listener", "NAME", CTL_VALUE_LISTENER, "of this listener only", 0},
    {NULL, NULL, 0, NULL, 0},
};

static const struct ctl_list_column ban_columns[] = {
    {"CLIENT", "client", CTL_LIST_TEXT},   {"LISTENER", "listener", CTL_LIST_TEXT},
    {"OFFENCE", "offence", CTL_LIST_TEXT}, {"AGE", "age_s", CTL_LIST_SECONDS},
    {"LEFT", "left_s", CTL_LIST_SECONDS},  {"REFUSED", "refused", CTL_LIST_COUNT},
};
static const struct ctl_list ban_list = {"client", ban_columns, ARRAY_LEN(ban_columns)};

static char *ctl_bans_path(const struct ctl_arguments *a)
{
    struct ctl_memory_text path;

    ctl_memory_text_open(&path);
    fprintf(path.file, "/v1/bans?limit=%s",
            ctl_arguments_has(a, "limit") ? ctl_arguments_value(a, "limit") : "100");
    for (const struct ctl_option *o = ctl_bans_options; o->kind != CTL_VALUE_NUMBER; o++)
        if (ctl_arguments_has(a, o->name))
            ctl_filter_put_argument(path.file, o->name, ctl_arguments_value(a, o->name));
    return ctl_memory_text_close(&path);
}

static void ctl_bans_print(const struct ctl_answer *answer, const json_t *rows)
{
    long long matched = json_integer_value(json_object_get(answer->json, "matched"));
    long long shown = (long long)json_array_size(rows);

    ctl_list_print(&ban_list, rows);
    if (matched > shown && isatty(STDOUT_FILENO))
        printf("%lld of %lld bans; --limit shows more\n", shown, matched);
}

enum ctl_exit ctl_bans_show(struct ctl_context *c, const struct ctl_arguments *a)
{
    char *path = ctl_bans_path(a);
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_get(c, path, &answer);
    const json_t *rows;

    free(path);
    if (code != CTL_EXIT_OK)
        return code;
    rows = ctl_context_rows(c, &answer, "bans");
    if (!rows) {
        ctl_report("%s", c->problem);
        code = CTL_EXIT_FAILED;
    } else if (c->prints_json) {
        ctl_print_json(&answer);
    } else {
        ctl_bans_print(&answer, rows);
    }
    ctl_client_drop(&answer);
    return code;
}

static json_t *ctl_bans_body(const struct ctl_arguments *a)
{
    const char *listener = ctl_arguments_value(a, "listener");
    bool all = strcmp(a->words[0], "all") == 0;
    json_t *body = ctl_memory_need(all ? json_pack("{s:b}", "all", 1)
                                       : json_pack("{s:s}", "client", a->words[0]));

    if (listener)
        ctl_memory_need(json_object_set_new(body, "listener", json_string(listener)) == 0 ? body
                                                                                          : NULL);
    return body;
}

enum ctl_exit ctl_bans_lift(struct ctl_context *c, const struct ctl_arguments *a)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_post(c, "/v1/bans/lift", ctl_bans_body(a), &answer);
    long long n;

    if (code != CTL_EXIT_OK)
        return code;
    n = json_integer_value(json_object_get(answer.json, "lifted"));
    if (c->prints_json)
        ctl_print_json(&answer);
    else if (n > 0 || strcmp(a->words[0], "all") == 0)
        printf("lifted %lld %s\n", n, n == 1 ? "ban" : "bans");
    ctl_client_drop(&answer);
    if (n == 0 && strcmp(a->words[0], "all") != 0) {
        ctl_report("no client in %s is banned", a->words[0]);
        return CTL_EXIT_REFUSED;
    }
    return CTL_EXIT_OK;
}
