#include "ctl/ctl_top_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/ctl_list.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_text.h"
#include "ctl/ctl_top_layout.h"
#include "ctl/ctl_units.h"

#define HEAD_LINES   1
#define GAP_COLUMNS  2 /* blanks in front of the notice */
#define TITLE_BYTES  64
#define RANK_TROUBLE 1e18 /* rank of a server that is not up: above all figures */

static const struct ctl_list_column loop_columns[] = {
    {"LOOP", "name", CTL_LIST_TEXT},
    {"CONNS", "connections", CTL_LIST_COUNT},
    {"IO", "io_ms", CTL_LIST_BUSY},
    {"TASKS", "task_ms", CTL_LIST_BUSY},
    {"EVENTS/S", "io_events", CTL_LIST_RATE},
    {"TASKS/S", "tasks_run", CTL_LIST_RATE},
    {"QUEUED", "tasks_pending", CTL_LIST_COUNT},
    {"TURN P99", "turn.p99_ms", CTL_LIST_MS},
    {"LONGEST", "longest_ms", CTL_LIST_MS},
    {"STALLS", "stalls", CTL_LIST_COUNT},
};

static const struct ctl_list_column listener_columns[] = {
    {"LISTENER", "name", CTL_LIST_TEXT},      {"STATE", "state", CTL_LIST_TEXT},
    {"SESSIONS", "sessions", CTL_LIST_COUNT}, {"NEW/S", "sessions_total", CTL_LIST_RATE},
    {"IN/S", "bytes_in", CTL_LIST_BYTE_RATE}, {"OUT/S", "bytes_out", CTL_LIST_BYTE_RATE},
    {"IN", "bytes_in", CTL_LIST_BYTES},       {"OUT", "bytes_out", CTL_LIST_BYTES},
};

static const struct ctl_list_column upstream_columns[] = {
    {"SERVER", "name", CTL_LIST_TEXT},
    {"STATE", "state", CTL_LIST_TEXT},
    {"SESSIONS", "sessions", CTL_LIST_COUNT},
    {"NEW/S", "sessions_total", CTL_LIST_RATE},
    {"WAITING", "waiting", CTL_LIST_COUNT},
    {"FAILED/S", "connect_failures", CTL_LIST_RATE},
    {"IN/S", "bytes_in", CTL_LIST_BYTE_RATE},
    {"OUT/S", "bytes_out", CTL_LIST_BYTE_RATE},
    {"CONNECT", "connect_duration.p99_ms", CTL_LIST_MS},
    {"WEIGHT", "weight", CTL_LIST_COUNT},
    {"DOWNS", "downs", CTL_LIST_COUNT},
    {"WHY", "down_reason", CTL_LIST_TEXT},
    {"AGENT", "agent", CTL_LIST_TEXT},
};

static const struct ctl_list_column event_columns[] = {
    {"EVENT", "age_s", CTL_LIST_SECONDS},
    {"LEVEL", "level", CTL_LIST_TEXT},
    {"LINES", "lines", CTL_LIST_COUNT},
    {"WHAT", "text", CTL_LIST_TEXT},
};

static const struct ctl_list_column session_columns[] = {
    {"CLIENT", "client", CTL_LIST_TEXT},      {"SERVER", "server", CTL_LIST_SERVER},
    {"LOOP", "loop", CTL_LIST_TEXT},          {"LOAD", "load", CTL_LIST_PERCENT},
    {"IN", "bytes_in", CTL_LIST_BYTES},       {"OUT", "bytes_out", CTL_LIST_BYTES},
    {"IN/S", "bytes_in", CTL_LIST_BYTE_RATE}, {"OUT/S", "bytes_out", CTL_LIST_BYTE_RATE},
    {"AGE", "age_s", CTL_LIST_SECONDS},       {"IDLE", "idle_s", CTL_LIST_SECONDS},
    {"LISTENER", "listener", CTL_LIST_TEXT},  {"ID", "id", CTL_LIST_TEXT},
};

#define LIST(key, columns)                   \
    {                                        \
        (key), (columns), ARRAY_LEN(columns) \
    }

static const struct ctl_list lists[CTL_TOP_SECTIONS] = {
    [CTL_TOP_LOOPS] = LIST("name", loop_columns),
    [CTL_TOP_LISTENERS] = LIST("name", listener_columns),
    [CTL_TOP_UPSTREAMS] = LIST("name", upstream_columns),
    [CTL_TOP_EVENTS] = LIST("time", event_columns),
    [CTL_TOP_SESSIONS] = LIST("id", session_columns),
};

/* ---- ranks of rows ---- */

struct ctl_top_view_row {
    json_t *row;
    double rank;
    size_t place;
};

static double ctl_top_view_field(const json_t *row, const char *field)
{
    return json_number_value(json_object_get(row, field));
}

/* Rank loops by busy time, others by sessions; servers that are not up rank first. */
static double ctl_top_view_rank(enum ctl_top_section section, const json_t *row,
                                const struct ctl_list_before *before)
{
    const char *state = json_string_value(json_object_get(row, "state"));
    double busy[2] = {0, 0};

    switch (section) {
    case CTL_TOP_LOOPS:
        (void)ctl_list_number(&lists[section], &loop_columns[2], row, before, &busy[0]);
        (void)ctl_list_number(&lists[section], &loop_columns[3], row, before, &busy[1]);
        return busy[0] + busy[1];
    case CTL_TOP_UPSTREAMS:
        if (state && strcmp(state, "up") != 0 && json_object_get(row, "address"))
            return RANK_TROUBLE;
        /* fall through */
    default: return ctl_top_view_field(row, "sessions");
    }
}

static int ctl_top_view_compare(const void *a, const void *b)
{
    const struct ctl_top_view_row *left = a, *right = b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? 1 : -1;
    return left->place < right->place ? -1 : 1;
}

/* Return the rows sorted by rank; the caller decrements the reference. */
static json_t *ctl_top_view_ranked(enum ctl_top_section section, const json_t *rows,
                                   const struct ctl_list_before *before)
{
    size_t n = json_array_size(rows), i;
    struct ctl_top_view_row *ranked = ctl_memory_need(calloc(n + 1, sizeof(*ranked)));
    json_t *row, *sorted = ctl_memory_need(json_array());

    json_array_foreach(rows, i, row)
    {
        ranked[i] = (struct ctl_top_view_row){row, ctl_top_view_rank(section, row, before), i};
    }
    qsort(ranked, n, sizeof(*ranked), ctl_top_view_compare);
    for (i = 0; i < n; i++)
        ctl_memory_need(json_array_append(sorted, ranked[i].row) == 0 ? sorted : NULL);
    free(ranked);
    return sorted;
}

/* ---- lines ---- */

static void ctl_top_view_head(FILE *out, const struct ctl_top_view *view)
{
    const json_t *status = view->now->status;
    const char *version = json_string_value(json_object_get(status, "version"));
    const char *state = json_string_value(json_object_get(status, "state"));

    fprintf(out, "reactord %s  %s  up ", version ? version : "?", state ? state : "?");
    ctl_units_put_seconds(out, ctl_top_view_field(status, "uptime_s"));
    fputs("  sessions ", out);
    ctl_units_put_count(out, ctl_top_view_field(status, "sessions"));
    fprintf(out, "  by %s", view->sort);
}

/* Write the first line, at most ${columns} wide; shorten the notice last. */
static void ctl_top_view_put_head(FILE *out, const struct ctl_top_view *view, unsigned columns,
                                  bool is_screen)
{
    char *notice = ctl_text_clean(view->notice ? view->notice : ""), *clean;
    unsigned taken = *notice ? ctl_text_columns(notice) + GAP_COLUMNS : 0;
    struct ctl_memory_text head;

    ctl_memory_text_open(&head);
    ctl_top_view_head(head.file, view);
    clean = ctl_text_clean(ctl_memory_text_close(&head));
    if (taken < columns)
        fprintf(out, "%.*s%*s", (int)ctl_text_cut(clean, columns - taken), clean,
                *notice ? GAP_COLUMNS : 0, "");
    fprintf(out, is_screen ? CTL_TERMINAL_BOLD "%.*s" CTL_TERMINAL_PLAIN "\n" : "%.*s\n",
            (int)ctl_text_cut(notice, columns), notice);
    free(notice);
    free(clean);
    free(head.bytes);
}

static struct ctl_list_before ctl_top_view_before(const struct ctl_top_view *view,
                                                  enum ctl_top_section section)
{
    struct ctl_list_before before = {.rows = NULL};

    if (view->before->status) {
        before.rows = ctl_list_index(&lists[section], view->before->rows[section]);
        before.seconds = (double)(view->now->at_ns - view->before->at_ns) / (double)NS_PER_S;
    }
    return before;
}

static void ctl_top_view_section(FILE *out, const struct ctl_top_view *view,
                                 enum ctl_top_section section,
                                 const struct ctl_top_layout_section *layout,
                                 const unsigned *columns)
{
    struct ctl_list_before before = ctl_top_view_before(view, section);
    const json_t *rows = view->now->rows[section];
    bool is_cut = json_array_size(rows) > layout->rows && section != CTL_TOP_SESSIONS;
    json_t *ranked =
        is_cut && section != CTL_TOP_EVENTS ? ctl_top_view_ranked(section, rows, &before) : NULL;
    struct ctl_table *table = ctl_list_table(&lists[section], ranked ? ranked : rows, &before);
    char title[TITLE_BYTES];

    if (is_cut) {
        snprintf(title, sizeof(title), "%s %u/%zu", lists[section].columns[0].title, layout->rows,
                 json_array_size(rows));
        ctl_table_retitle(table, title);
    }
    if (columns)
        fputs(CTL_TERMINAL_BOLD, out);
    ctl_table_print_titles(table, out, columns ? *columns : CTL_TABLE_ALL);
    if (columns)
        fputs(CTL_TERMINAL_PLAIN, out);
    ctl_table_print_rows(table, out, layout->rows, columns ? *columns : CTL_TABLE_ALL);
    ctl_table_destroy(table);
    json_decref(ranked);
    json_decref((json_t *)before.rows);
}

static void ctl_top_view_wanted(const struct ctl_top_view *view,
                                struct ctl_top_layout_section *sections)
{
    for (unsigned i = 0; i < CTL_TOP_SECTIONS; i++) {
        sections[i].wanted = (unsigned)json_array_size(view->now->rows[i]);
        sections[i].rows = sections[i].wanted;
        sections[i].is_shown = true;
    }
}

void ctl_top_view_screen(FILE *out, const struct ctl_top_view *view, struct ctl_terminal_size size)
{
    struct ctl_top_layout_section sections[CTL_TOP_SECTIONS];
    bool gaps, first = true;

    ctl_top_view_wanted(view, sections);
    gaps = ctl_top_layout(sections, CTL_TOP_SECTIONS, size.rows - HEAD_LINES);
    ctl_top_view_put_head(out, view, size.columns, true);
    for (unsigned i = 0; i < CTL_TOP_SECTIONS; i++) {
        if (!sections[i].is_shown)
            continue;
        if (gaps && !first)
            fputc('\n', out);
        first = false;
        ctl_top_view_section(out, view, (enum ctl_top_section)i, &sections[i], &size.columns);
    }
}

void ctl_top_view_text(FILE *out, const struct ctl_top_view *view)
{
    struct ctl_top_layout_section sections[CTL_TOP_SECTIONS];

    ctl_top_view_wanted(view, sections);
    ctl_top_view_put_head(out, view, CTL_TABLE_ALL, false);
    for (unsigned i = 0; i < CTL_TOP_SECTIONS; i++) {
        fputc('\n', out);
        ctl_top_view_section(out, view, (enum ctl_top_section)i, &sections[i], NULL);
    }
}
