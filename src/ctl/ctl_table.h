/*
 * ctl/ctl_table: aligned columns of text.
 *
 *   NAME   SESSIONS  BYTES        two blanks between columns, none at the end of a line
 *   front        12   1.5K
 */
#ifndef CTL_CTL_TABLE_H
#define CTL_CTL_TABLE_H

#include <limits.h>
#include <stdio.h>

struct ctl_table;

enum ctl_table_align { CTL_TABLE_LEFT, CTL_TABLE_RIGHT };

#define CTL_TABLE_ALL UINT_MAX /* all rows, or lines of any length */

/* ctl_table_create() / ctl_table_destroy(t): create a table without columns / free it. */
struct ctl_table *ctl_table_create(void);
void ctl_table_destroy(struct ctl_table *t);

/*
 * ctl_table_add_column(t, title, align):
 * Add a column; add all columns before the first cell.
 *
 * Owns:   a harmless copy of ${title}
 */
void ctl_table_add_column(struct ctl_table *t, const char *title, enum ctl_table_align align);

/*
 * ctl_table_add_cell(t, text):
 * Fill the next cell, row by row.
 *
 * Owns:   a harmless copy of ${text}
 */
void ctl_table_add_cell(struct ctl_table *t, const char *text);

/* ctl_table_rows(t): number of rows, without titles. */
unsigned ctl_table_rows(const struct ctl_table *t);

/*
 * ctl_table_retitle(t, title):
 * Replace the first column's title.
 *
 * Owns:   a harmless copy of ${title}
 */
void ctl_table_retitle(struct ctl_table *t, const char *title);

/*
 * ctl_table_print_titles(t, out, max_columns) /
 * ctl_table_print_rows(t, out, max_rows, max_columns):
 * Write the titles / at most ${max_rows} rows; cut lines at ${max_columns}.
 */
void ctl_table_print_titles(const struct ctl_table *t, FILE *out, unsigned max_columns);
void ctl_table_print_rows(const struct ctl_table *t, FILE *out, unsigned max_rows,
                          unsigned max_columns);

#endif
