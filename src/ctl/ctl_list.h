/*
 * ctl/ctl_list: rows of the daemon's JSON as tables.
 */
#ifndef CTL_CTL_LIST_H
#define CTL_CTL_LIST_H

#include <jansson.h>
#include <stdbool.h>

#include "ctl/ctl_table.h"

enum ctl_list_kind {
    CTL_LIST_TEXT,
    CTL_LIST_WORDS,  /* an array of texts */
    CTL_LIST_SERVER, /* UPSTREAM/SERVER of a session */
    CTL_LIST_COUNT,
    CTL_LIST_BYTES,
    CTL_LIST_SECONDS,
    CTL_LIST_MS,
    CTL_LIST_PERCENT,
    CTL_LIST_RATE,      /* growth of a counter per second */
    CTL_LIST_BYTE_RATE, /* bytes per second */
    CTL_LIST_BUSY,      /* milliseconds per second, shown in percent */
};

struct ctl_list_column {
    const char *title;
    const char *field; /* field of a row, or PART.FIELD */
    enum ctl_list_kind kind;
};

struct ctl_list {
    const char *key; /* field that names a row */
    const struct ctl_list_column *columns;
    unsigned n;
};

/* An earlier sample, for rates. */
struct ctl_list_before {
    const json_t *rows; /* from ctl_list_index(); NULL: no sample, rates are "-" */
    double seconds;     /* since that sample */
};

/*
 * ctl_list_index(list, rows):
 * Return an object that maps the key of each row to the row.
 *
 * Owns:   the caller releases it by json_decref()
 */
json_t *ctl_list_index(const struct ctl_list *list, const json_t *rows);

/*
 * ctl_list_number(list, column, row, before, out):
 * Set ${out} to the number that ${column} shows for ${row}; false: the column shows "-" or a text.
 */
bool ctl_list_number(const struct ctl_list *list, const struct ctl_list_column *column,
                     const json_t *row, const struct ctl_list_before *before, double *out);

/*
 * ctl_list_table(list, rows, before):
 * Return the rows as a table; ${before} may be NULL. Missing figures are "-".
 *
 * Owns:   the caller passes the table to ctl_table_destroy()
 */
struct ctl_table *ctl_list_table(const struct ctl_list *list, const json_t *rows,
                                 const struct ctl_list_before *before);

/* ctl_list_print(list, rows): write the table to stdout. */
void ctl_list_print(const struct ctl_list *list, const json_t *rows);

#endif
