#include "ctl/ctl_pages.h"

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

/* A listing under way. */
struct ctl_pages_walk {
    const struct ctl_pages *pages;
    struct ctl_context *context;
    const struct ctl_arguments *arguments;
    int64_t left; /* rows wanted */
    char *cursor; /* NULL: the first page */
    json_t *rows; /* so far */
    long long shown, matched;
};

static char *ctl_pages_path(const struct ctl_pages_walk *w)
{
    struct ctl_memory_text path;

    ctl_memory_text_open(&path);
    fprintf(path.file, "%s?limit=%d", w->pages->path,
            (int)(w->left < PAGE_LIMIT ? w->left : PAGE_LIMIT));
    w->pages->put_query(path.file, w->arguments);
    if (w->cursor)
        ctl_filter_put_argument(path.file, "after", w->cursor);
    return ctl_memory_text_close(&path);
}

/* Keep the rows of a page, and the cursor of the next page. */
static enum ctl_exit ctl_pages_take(struct ctl_pages_walk *w, const struct ctl_answer *answer)
{
    json_t *rows = ctl_context_rows(w->context, answer, w->pages->key);
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
    w->shown += (long long)json_array_size(rows);
    w->left -= (int64_t)json_array_size(rows);
    free(w->cursor);
    w->cursor = next && json_array_size(rows) > 0 ? ctl_memory_need(strdup(next)) : NULL;
    return CTL_EXIT_OK;
}

static enum ctl_exit ctl_pages_fetch(struct ctl_pages_walk *w)
{
    enum ctl_exit code;

    do {
        char *path = ctl_pages_path(w);
        struct ctl_answer answer;

        code = ctl_context_get(w->context, path, &answer);
        free(path);
        if (code != CTL_EXIT_OK)
            return code;
        code = ctl_pages_take(w, &answer);
        ctl_client_drop(&answer);
    } while (code == CTL_EXIT_OK && w->cursor && w->left > 0);
    return code;
}

static void ctl_pages_print(const struct ctl_pages_walk *w)
{
    ctl_list_print(w->pages->list, w->rows);
    if (w->matched <= w->shown)
        return;
    if (isatty(STDOUT_FILENO))
        printf("%lld of %lld %s; --limit shows more\n", w->shown, w->matched, w->pages->key);
    else if (w->pages->reports_rest)
        ctl_report("%lld of %lld %s; --limit shows more", w->shown, w->matched, w->pages->key);
}

enum ctl_exit ctl_pages_show(const struct ctl_pages *p, struct ctl_context *c,
                             const struct ctl_arguments *a)
{
    const char *limit = ctl_arguments_value(a, "limit");
    struct ctl_pages_walk w = {.pages = p, .context = c, .arguments = a, .left = DEFAULT_LIMIT};
    enum ctl_exit code;

    if (limit)
        w.left = ctl_value_number(CTL_VALUE_NUMBER, limit);
    if (w.left == 0)
        w.left = INT64_MAX;
    w.rows = ctl_memory_need(json_array());
    code = ctl_pages_fetch(&w);
    if (code == CTL_EXIT_OK && !c->prints_json)
        ctl_pages_print(&w);
    json_decref(w.rows);
    free(w.cursor);
    return code;
}
