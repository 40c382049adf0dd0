#include "ctl/ctl_sessions.h"

#include <stdio.h>

#include "ctl/ctl_filter.h"
#include "ctl/ctl_list.h"
#include "ctl/ctl_pages.h"

const struct ctl_option ctl_sessions_options[] = {
    {"sort", "KEY", CTL_VALUE_SORT, "age (default), idle, bytes or load; largest value first", 0},
    {"limit", "N", CTL_VALUE_NUMBER, "show at most N sessions (100; 0: all)", 0},
    {NULL, NULL, 0, NULL, 0},
};

static const struct ctl_list_column session_columns[] = {
    {"ID", "id", CTL_LIST_TEXT},
    {"CLIENT", "client", CTL_LIST_TEXT},
    {"LISTENER", "listener", CTL_LIST_TEXT},
    {"SERVER", "server", CTL_LIST_SERVER},
    {"LOOP", "loop", CTL_LIST_TEXT},
    {"LOAD", "load", CTL_LIST_PERCENT},
    {"STATE", "state", CTL_LIST_TEXT},
    {"AGE", "age_s", CTL_LIST_SECONDS},
    {"IDLE", "idle_s", CTL_LIST_SECONDS},
    {"IN", "bytes_in", CTL_LIST_BYTES},
    {"OUT", "bytes_out", CTL_LIST_BYTES},
};
static const struct ctl_list session_list = {"id", session_columns, ARRAY_LEN(session_columns)};

static void ctl_sessions_put_query(FILE *out, const struct ctl_arguments *a)
{
    const char *sort = ctl_arguments_value(a, "sort");

    ctl_filter_put_query(out, a);
    if (sort)
        ctl_filter_put_argument(out, "sort", sort);
}

enum ctl_exit ctl_sessions_show(struct ctl_context *c, const struct ctl_arguments *a)
{
    static const struct ctl_pages pages = {.path = "/v1/sessions",
                                           .key = "sessions",
                                           .list = &session_list,
                                           .put_query = ctl_sessions_put_query};

    return ctl_pages_show(&pages, c, a);
}
