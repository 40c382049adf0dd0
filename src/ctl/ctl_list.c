#include "ctl/ctl_list.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_memory.h"
#include "ctl/ctl_units.h"

#define MISSING  "-"
#define MS_PER_S 1000.0
#define PERCENT  100.0

static const char *ctl_list_text(const json_t *row, const char *field)
{
    return json_string_value(json_object_get(row, field));
}

/* Value of ${field} in ${row}: a key, or two keys with a dot between. */
static const json_t *ctl_list_value(const json_t *row, const char *field)
{
    const char *dot = strchr(field, '.');
    const json_t *part;

    if (!dot)
        return json_object_get(row, field);
    part = json_object_getn(row, field, (size_t)(dot - field));
    return json_object_get(part, dot + 1);
}

json_t *ctl_list_index(const struct ctl_list *list, const json_t *rows)
{
    json_t *index = ctl_memory_need(json_object()), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const char *key = ctl_list_text(row, list->key);

        if (key)
            ctl_memory_need(json_object_set(index, key, row) == 0 ? index : NULL);
    }
    return index;
}

/* Growth per second; false: unknown, or the counter was reset. */
static bool ctl_list_rate(const struct ctl_list *list, const char *field, const json_t *row,
                          const struct ctl_list_before *before, double *out)
{
    const char *key = ctl_list_text(row, list->key);
    const json_t *now = ctl_list_value(row, field), *then;

    if (!key || !before || !before->rows || before->seconds <= 0)
        return false;
    then = ctl_list_value(json_object_get(before->rows, key), field);
    if (!json_is_number(now) || !json_is_number(then))
        return false;
    *out = (json_number_value(now) - json_number_value(then)) / before->seconds;
    return *out >= 0;
}

bool ctl_list_number(const struct ctl_list *list, const struct ctl_list_column *column,
                     const json_t *row, const struct ctl_list_before *before, double *out)
{
    const json_t *value = ctl_list_value(row, column->field);

    switch (column->kind) {
    case CTL_LIST_RATE:
    case CTL_LIST_BYTE_RATE: return ctl_list_rate(list, column->field, row, before, out);
    case CTL_LIST_BUSY:
        if (!ctl_list_rate(list, column->field, row, before, out))
            return false;
        *out *= PERCENT / MS_PER_S;
        return true;
    default: *out = json_number_value(value); return json_is_number(value);
    }
}

static void ctl_list_put_number(FILE *out, enum ctl_list_kind kind, double n)
{
    switch (kind) {
    case CTL_LIST_BYTES:
    case CTL_LIST_BYTE_RATE: ctl_units_put_bytes(out, n); break;
    case CTL_LIST_SECONDS: ctl_units_put_seconds(out, n); break;
    case CTL_LIST_MS: ctl_units_put_seconds(out, n / MS_PER_S); break;
    case CTL_LIST_BUSY:
    case CTL_LIST_PERCENT: fprintf(out, "%.0f%%", n); break;
    default: ctl_units_put_count(out, n); break;
    }
}

static void ctl_list_put_words(FILE *out, const json_t *words)
{
    const json_t *word;
    size_t i;

    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);

        fprintf(out, "%s%s", i > 0 ? ", " : "", text ? text : MISSING);
    }
}

/* Write UPSTREAM/SERVER; the field `server` is a name, or already UPSTREAM/SERVER. */
static void ctl_list_put_server(FILE *out, const json_t *row)
{
    const char *upstream = ctl_list_text(row, "upstream"), *server = ctl_list_text(row, "server");

    if (upstream && server && !strchr(server, '/'))
        fprintf(out, "%s/%s", upstream, server);
    else if (server || upstream)
        fputs(server ? server : upstream, out);
}

static void ctl_list_put(FILE *out, const struct ctl_list *list,
                         const struct ctl_list_column *column, const json_t *row,
                         const struct ctl_list_before *before)
{
    const json_t *value = json_object_get(row, column->field);
    const char *text;
    double n;

    if (column->kind == CTL_LIST_SERVER)
        ctl_list_put_server(out, row);
    else if (column->kind == CTL_LIST_WORDS)
        ctl_list_put_words(out, value);
    else if (ctl_list_number(list, column, row, before, &n))
        ctl_list_put_number(out, column->kind, n);
    else if ((text = ctl_list_text(row, column->field)) != NULL)
        fputs(text, out);
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", out);
}

static void ctl_list_add_cell(struct ctl_table *table, const struct ctl_list *list,
                              const struct ctl_list_column *column, const json_t *row,
                              const struct ctl_list_before *before)
{
    struct ctl_memory_text text;

    ctl_memory_text_open(&text);
    ctl_list_put(text.file, list, column, row, before);
    ctl_memory_text_close(&text);
    ctl_table_add_cell(table, text.len > 0 ? text.bytes : MISSING);
    free(text.bytes);
}

struct ctl_table *ctl_list_table(const struct ctl_list *list, const json_t *rows,
                                 const struct ctl_list_before *before)
{
    struct ctl_table *table = ctl_table_create();
    const json_t *row;
    size_t i;

    for (unsigned k = 0; k < list->n; k++)
        ctl_table_add_column(table, list->columns[k].title,
                             list->columns[k].kind <= CTL_LIST_SERVER ? CTL_TABLE_LEFT
                                                                      : CTL_TABLE_RIGHT);
    json_array_foreach(rows, i, row)
    {
        for (unsigned k = 0; k < list->n; k++)
            ctl_list_add_cell(table, list, &list->columns[k], row, before);
    }
    return table;
}

void ctl_list_print(const struct ctl_list *list, const json_t *rows)
{
    struct ctl_table *table = ctl_list_table(list, rows, NULL);

    ctl_table_print_titles(table, stdout, CTL_TABLE_ALL);
    ctl_table_print_rows(table, stdout, CTL_TABLE_ALL, CTL_TABLE_ALL);
    ctl_table_destroy(table);
}
