#include "ctl/ctl_bans.h"

#include <stdio.h>
#include <string.h>

#include "ctl/ctl_filter.h"
#include "ctl/ctl_list.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_pages.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"

const struct ctl_option ctl_bans_options[] = {
    {"listener", "NAME", CTL_VALUE_LISTENER, "of this listener", 0},
    {"limits", "NAME", CTL_VALUE_LIMITS, "of the listeners with limits = NAME", 0},
    {"client", "CIDR", CTL_VALUE_TEXT, "of clients in this network, such as 10.0.0.0/8", 0},
    {"limit", "N", CTL_VALUE_NUMBER, "show at most N bans, the newest (100; 0: all)", 0},
    {NULL, NULL, 0, NULL, 0},
};

const struct ctl_option ctl_bans_lift_options[] = {
    {"listener", "NAME", CTL_VALUE_LISTENER, "of this listener, and those that share its limits",
     0},
    {"limits", "NAME", CTL_VALUE_LIMITS, "of the listeners with limits = NAME", 0},
    {NULL, NULL, 0, NULL, 0},
};

static const struct ctl_list_column ban_columns[] = {
    {"CLIENT", "client", CTL_LIST_TEXT},   {"LISTENER", "listener", CTL_LIST_TEXT},
    {"OFFENCE", "offence", CTL_LIST_TEXT}, {"AGE", "age_s", CTL_LIST_SECONDS},
    {"LEFT", "left_s", CTL_LIST_SECONDS},  {"REFUSED", "refused", CTL_LIST_COUNT},
    {"LIMITS", "limits", CTL_LIST_TEXT},   {"DRY RUN", "dry_run", CTL_LIST_TEXT},
};
static const struct ctl_list ban_list = {"client", ban_columns, ARRAY_LEN(ban_columns)};

static void ctl_bans_put_query(FILE *out, const struct ctl_arguments *a)
{
    for (const struct ctl_option *o = ctl_bans_options; o->kind != CTL_VALUE_NUMBER; o++)
        if (ctl_arguments_has(a, o->name))
            ctl_filter_put_argument(out, o->name, ctl_arguments_value(a, o->name));
}

enum ctl_exit ctl_bans_show(struct ctl_context *c, const struct ctl_arguments *a)
{
    static const struct ctl_pages pages = {.path = "/v1/bans",
                                           .key = "bans",
                                           .list = &ban_list,
                                           .put_query = ctl_bans_put_query,
                                           .reports_rest = true};

    return ctl_pages_show(&pages, c, a);
}

static json_t *ctl_bans_body(const struct ctl_arguments *a)
{
    static const char *const owners[] = {"listener", "limits"};
    bool all = strcmp(a->words[0], "all") == 0;
    json_t *body = ctl_memory_need(all ? json_pack("{s:b}", "all", 1)
                                       : json_pack("{s:s}", "client", a->words[0]));

    for (unsigned i = 0; i < ARRAY_LEN(owners); i++) {
        const char *name = ctl_arguments_value(a, owners[i]);

        if (name && json_object_set_new(body, owners[i], json_string(name)) < 0)
            ctl_memory_need(NULL);
    }
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
