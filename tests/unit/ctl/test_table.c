/* ctl/ctl_table, ctl/ctl_text: columns stay aligned, and no byte of a cell drives a terminal. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_table.h"
#include "ctl/ctl_text.h"
#include "support/suite.h"

static struct ctl_table *table;
static char text[4096];

static void setup(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    table = ctl_table_create();
    ctl_table_add_column(table, "NAME", CTL_TABLE_LEFT);
    ctl_table_add_column(table, "SESSIONS", CTL_TABLE_RIGHT);
    ctl_table_add_column(table, "NOTE", CTL_TABLE_LEFT);
}

static void teardown(void)
{
    ctl_table_destroy(table);
}

static void add_row(const char *name, const char *sessions, const char *note)
{
    ctl_table_add_cell(table, name);
    ctl_table_add_cell(table, sessions);
    ctl_table_add_cell(table, note);
}

static const char *printed(unsigned max_rows, unsigned max_columns)
{
    FILE *out;

    memset(text, 0, sizeof(text));
    out = fmemopen(text, sizeof(text), "w");
    ck_assert_ptr_nonnull(out);
    ctl_table_print_titles(table, out, max_columns);
    ctl_table_print_rows(table, out, max_rows, max_columns);
    fclose(out);
    return text;
}

GROUP(tables, setup, teardown);

TEST(tables, a_table_without_rows_has_its_titles)
{
    ck_assert_uint_eq(ctl_table_rows(table), 0);
    ck_assert_str_eq(printed(CTL_TABLE_ALL, CTL_TABLE_ALL), "NAME  SESSIONS  NOTE\n");
}

TEST(tables, columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks)
{
    add_row("front", "12", "");
    add_row("b", "123456789", "all of it");
    ck_assert_uint_eq(ctl_table_rows(table), 2);
    ck_assert_str_eq(printed(CTL_TABLE_ALL, CTL_TABLE_ALL), "NAME    SESSIONS  NOTE\n"
                                                            "front         12\n"
                                                            "b      123456789  all of it\n");
}

TEST(tables, rows_and_columns_are_cut_at_their_limits)
{
    add_row("front", "12", "a");
    add_row("back", "3", "b");
    ck_assert_str_eq(printed(1, 9), "NAME   SE\nfront\n");
}

TEST(tables, control_characters_and_bytes_that_are_no_text_are_escaped)
{
    add_row("a\x1b[2J\n", "\x7f", "\xff\xc2\x9b\xe2\x80\xae");
    ck_assert_str_eq(printed(CTL_TABLE_ALL, CTL_TABLE_ALL),
                     "NAME          SESSIONS  NOTE\n"
                     "a\\x1b[2J\\x0a      \\x7f  \\xff\\xc2\\x9b\\xe2\\x80\\xae\n");
}

TEST(tables, wide_characters_take_their_display_columns)
{
    add_row("h\xc3\xa9", "1", "x");
    add_row("\xe6\x97\xa5\xe6\x9c\xac", "2", "y"); /* two characters, four columns */
    ck_assert_str_eq(printed(CTL_TABLE_ALL, CTL_TABLE_ALL),
                     "NAME  SESSIONS  NOTE\n"
                     "h\xc3\xa9           1  x\n"
                     "\xe6\x97\xa5\xe6\x9c\xac         2  y\n");
    ck_assert_str_eq(printed(2, 3), "NAM\nh\xc3\xa9\n\xe6\x97\xa5\n");
}

TEST(tables, characters_outside_the_locale_are_escaped)
{
    char *clean;

    setlocale(LC_CTYPE, "C");
    clean = ctl_text_clean("h\xc3\xa9\t");
    ck_assert_str_eq(clean, "h\\xc3\\xa9\\x09");
    ck_assert_uint_eq(ctl_text_columns(clean), strlen(clean));
    free(clean);
}

TEST(tables, changed_first_title_widens_its_column)
{
    add_row("n", "1", "x");
    ctl_table_retitle(table, "NAME 1/12");
    ck_assert_str_eq(printed(1, CTL_TABLE_ALL), "NAME 1/12  SESSIONS  NOTE\n"
                                                "n                 1  x\n");
}

TEST(tables, long_table_is_printed_completely)
{
    for (int i = 0; i < 100; i++)
        add_row("n", "1", "x");
    ck_assert_uint_eq(ctl_table_rows(table), 100);
    ck_assert_uint_eq(strlen(printed(CTL_TABLE_ALL, CTL_TABLE_ALL)),
                      101 * strlen("NAME  SESSIONS  NOTE\n") - 100 * 3);
}

TEST_ABORTS(tables, adding_a_column_after_a_cell_is_a_bug)
{
    add_row("a", "b", "c");
    ctl_table_add_column(table, "LATE", CTL_TABLE_LEFT);
}
