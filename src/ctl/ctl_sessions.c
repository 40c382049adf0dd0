#include "ctl/ctl_sessions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl_filter.h"
#include "ctl/ctl_list.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"

#define DEFAULT_LIMIT 100
#define PAGE_LIMIT    1000 /* maximum of rows in an answer */

const struct ctl_option ctl_sessions_options[] = {
    {"sort", "KEY", CTL_VALUE_SORT, "age (default), idle or bytes; largest value first", 0},
    {"limit", "N", CTL_VALUE_NUMBER, "show at most N sessions (100; 0: all)", 0},
    {NULL, NULL, 0, NULL, 0},
};

static const struct ctl_list_column session_columns[] = {
    {"ID", "id", CTL_LIST_TEXT},
    {"CLIENT", "client", CTL_LIST_TEXT},
    {"LISTENER", "listener", CTL_LIST_TEXT},
    {"SERVER", "server", CTL_LIST_SERVER},
    {"LOOP", "loop", CTL_LIST_TEXT},
    {"STATE", "state", CTL_LIST_TEXT},
    {"AGE", "age_s", CTL_LIST_SECONDS},
    {"IDLE", "idle_s", CTL_LIST_SECONDS},
    {"IN", "bytes_in", CTL_LIST_BYTES},
    {"OUT", "bytes_out", CTL_LIST_BYTES},
};
static const struct ctl_list session_list = {"id", session_columns, ARRAY_LEN(session_columns)};

/* A listing under way. */
struct ctl_sessions_walk {
    struct ctl_context *context;
    const struct ctl_arguments *arguments;
    int64_t left; /* rows wanted */
    char *cursor; /* NULL: the first page */
    json_t *rows; /* so far */
    long long matched;
};

static char *ctl_sessions_path(const struct ctl_sessions_walk *w)
{
    const char *sort = ctl_arguments_value(w->arguments, "sort");
    struct ctl_memory_text path;

    ctl_memory_text_open(&path);
    fprintf(path.file, "/v1/sessions?limit=%d", (int)(w->left < PAGE_LIMIT ? w->left : PAGE_LIMIT));
    ctl_filter_put_query(path.file, w->arguments);
    if (sort)
        ctl_filter_put_argument(path.file, "sort", sort);
    if (w->cursor)
        ctl_filter_put_argument(path.file, "after", w->cursor);
    return ctl_memory_text_close(&path);
}

/* Keep the rows of a page, and the cursor of the next page. */
static enum ctl_exit ctl_sessions_take_page(struct ctl_sessions_walk *w,
                                            const struct ctl_answer *answer)
{
    json_t *rows = ctl_context_rows(w->context, answer, "sessions");
    const char *next = json_string_value(json_object_get(answer->json, "next"));
    json_int_t matched = json_integer_value(json_object_get(answer->json, "matched"));

    if (!rows) {
        ctl_report("%s", w->context->problem);
        return CTL_EXIT_FAILED;
    }
    if (w->context->prints_json)
        ctl_print_json(answer);
    else
        ctl_memory_need(json_array_extend(w->rows, rows) == 0 ? rows : NULL);
    if (!w->cursor)
        w->matched = matched;
    w->left -= (int64_t)json_array_size(rows);
    free(w->cursor);
    w->cursor = next && json_array_size(rows) > 0 ? ctl_memory_need(strdup(next)) : NULL;
    return CTL_EXIT_OK;
}

static enum ctl_exit ctl_sessions_fetch(struct ctl_sessions_walk *w)
{
    enum ctl_exit code;

    do {
        char *path = ctl_sessions_path(w);
        struct ctl_answer answer;

        code = ctl_context_get(w->context, path, &answer);
        free(path);
        if (code != CTL_EXIT_OK)
            return code;
        code = ctl_sessions_take_page(w, &answer);
        ctl_client_drop(&answer);
    } while (code == CTL_EXIT_OK && w->cursor && w->left > 0);
    return code;
}

static void ctl_sessions_print(const struct ctl_sessions_walk *w)
{
    long long shown = (long long)json_array_size(w->rows);

    ctl_list_print(&session_list, w->rows);
    if (w->matched > shown && isatty(STDOUT_FILENO))
        printf("%lld of %lld sessions; --limit shows more\n", shown, w->matched);
}

enum ctl_exit ctl_sessions_show(struct ctl_context *c, const struct ctl_arguments *a)
{
    const char *limit = ctl_arguments_value(a, "limit");
    struct ctl_sessions_walk w = {.context = c, .arguments = a, .left = DEFAULT_LIMIT};
    enum ctl_exit code;

    if (limit)
        w.left = ctl_value_number(CTL_VALUE_NUMBER, limit);
    if (w.left == 0)
        w.left = INT64_MAX;
    w.rows = ctl_memory_need(json_array());
    code = ctl_sessions_fetch(&w);
    if (code == CTL_EXIT_OK && !c->prints_json)
        ctl_sessions_print(&w);
    json_decref(w.rows);
    free(w.cursor);
    return code;
}
