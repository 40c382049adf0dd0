#include "ctl/ctl_table.h"

#include <stdlib.h>
#include <stdbool.h>

#include "base/must.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_text.h"

#define GAP         "  "
#define FIRST_CELLS 64

struct ctl_table_column {
    enum ctl_table_align align;
    unsigned width;
};

/* `cells` has the titles, then row after row. */
struct ctl_table {
    struct ctl_table_column *columns;
    unsigned n_columns;
    char **cells;
    size_t n_cells, cap;
};

struct ctl_table *ctl_table_create(void)
{
    return ctl_memory_need(calloc(1, sizeof(struct ctl_table)));
}

void ctl_table_destroy(struct ctl_table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->columns);
    free(t);
}

static void ctl_table_widen(struct ctl_table *t, size_t cell)
{
    struct ctl_table_column *column = &t->columns[cell % t->n_columns];
    unsigned width = ctl_text_columns(t->cells[cell]);

    if (width > column->width)
        column->width = width;
}

static void ctl_table_append(struct ctl_table *t, const char *text)
{
    if (t->n_cells == t->cap) {
        t->cap = t->cap ? 2 * t->cap : FIRST_CELLS;
        t->cells = ctl_memory_need(reallocarray(t->cells, t->cap, sizeof(*t->cells)));
    }
    t->cells[t->n_cells] = ctl_text_clean(text);
    ctl_table_widen(t, t->n_cells++);
}

void ctl_table_retitle(struct ctl_table *t, const char *title)
{
    MUST(t->n_columns > 0);
    free(t->cells[0]);
    t->cells[0] = ctl_text_clean(title);
    ctl_table_widen(t, 0);
}

void ctl_table_add_column(struct ctl_table *t, const char *title, enum ctl_table_align align)
{
    MUST(t->n_cells == t->n_columns);
    t->columns = ctl_memory_need(reallocarray(t->columns, t->n_columns + 1, sizeof(*t->columns)));
    t->columns[t->n_columns++] = (struct ctl_table_column){.align = align};
    ctl_table_append(t, title);
}

void ctl_table_add_cell(struct ctl_table *t, const char *text)
{
    MUST(t->n_columns > 0);
    ctl_table_append(t, text);
}

unsigned ctl_table_rows(const struct ctl_table *t)
{
    return t->n_columns > 0 ? (unsigned)(t->n_cells / t->n_columns) - 1 : 0;
}

static void ctl_table_put_row(const struct ctl_table *t, FILE *out, char *const *cells)
{
    for (unsigned i = 0; i < t->n_columns; i++) {
        int blanks = (int)(t->columns[i].width - ctl_text_columns(cells[i]));
        bool right = t->columns[i].align == CTL_TABLE_RIGHT;

        fprintf(out, "%s%*s%s%*s", i > 0 ? GAP : "", right ? blanks : 0, "", cells[i],
                right ? 0 : blanks, "");
    }
}

static void ctl_table_print_row(const struct ctl_table *t, FILE *out, char *const *cells,
                                unsigned max_columns)
{
    struct ctl_memory_text line;
    size_t len;

    ctl_memory_text_open(&line);
    ctl_table_put_row(t, line.file, cells);
    ctl_memory_text_close(&line);
    len = max_columns == CTL_TABLE_ALL ? line.len : ctl_text_cut(line.bytes, max_columns);
    while (len > 0 && line.bytes[len - 1] == ' ')
        len--;
    fwrite(line.bytes, 1, len, out);
    fputc('\n', out);
    free(line.bytes);
}

void ctl_table_print_titles(const struct ctl_table *t, FILE *out, unsigned max_columns)
{
    ctl_table_print_row(t, out, t->cells, max_columns);
}

void ctl_table_print_rows(const struct ctl_table *t, FILE *out, unsigned max_rows,
                          unsigned max_columns)
{
    unsigned rows = ctl_table_rows(t);

    if (rows > max_rows)
        rows = max_rows;
    for (unsigned i = 1; i <= rows; i++)
        ctl_table_print_row(t, out, t->cells + (size_t)i * t->n_columns, max_columns);
}
