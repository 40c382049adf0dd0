#include "support/phase_table.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/must.h"

#define START      "| event | PREFACE | CONNECTING | OPEN | CLOSING | ENDING |\n"
#define MAX_EVENTS 40

static struct row {
    char text[128];
    char cells[PHASES][16];
} rows[MAX_EVENTS];
static int n_rows;

static const struct row *find(const char *text)
{
    for (int i = 0; i < n_rows; i++)
        if (strcmp(rows[i].text, text) == 0)
            return &rows[i];
    return NULL;
}

static void read_row(char *line)
{
    char *rest = line + 2, *text = strsep(&rest, "|");
    struct row *row = &rows[n_rows];

    text[strlen(text) - 1] = '\0';
    ck_assert_msg(!find(text), "twice: %s", text);
    ck_assert_int_lt(n_rows, MAX_EVENTS);
    snprintf(row->text, sizeof(row->text), "%s", text);
    for (unsigned i = 0; i < PHASES; i++)
        ck_assert_msg(rest && sscanf(strsep(&rest, "|"), " %15s ", row->cells[i]) == 1,
                      "too few cells: %s", text);
    n_rows++;
}

int phase_table_read(void)
{
    FILE *f = fopen("DESIGN.md", "r");
    char line[256];

    ck_assert_ptr_nonnull(f);
    n_rows = 0;
    while (fgets(line, sizeof(line), f) && strcmp(line, START) != 0)
        ;
    ck_assert(fgets(line, sizeof(line), f)); /* |---| */
    while (fgets(line, sizeof(line), f) && line[0] == '|')
        read_row(line);
    fclose(f);
    return n_rows;
}

const char *phase_table_cell(const char *text, int phase)
{
    const struct row *row = find(text);

    ck_assert_msg(row != NULL, "not in the table: %s", text);
    return row->cells[phase];
}

int phase_table_expected(const char *text, int phase)
{
    static const char *const words[] = {"PREFACE", "CONNECTING", "OPEN", "CLOSING",
                                        "ENDING",  "yes",        "no",   "never"};
    const char *cell = phase_table_cell(text, phase);

    if (strcmp(cell, "stays") == 0)
        return phase;
    for (int i = 0; i < (int)ARRAY_LEN(words); i++)
        if (strcmp(cell, words[i]) == 0)
            return i;
    ck_abort_msg("%s: no word of the table: %s", text, cell);
    return -1;
}
