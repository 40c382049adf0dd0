/*
 * ini/ini_include, ini/ini_environment: files in files, and variables in values; each problem
 * where it stands.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ini/ini.h"
#include "ini/ini_environment.h"
#include "ini/ini_include.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

static void setup(void)
{
    text_file_enter();
    setenv("HOST", "127.0.0.1", 1);
    setenv("EMPTY", "", 1);
    unsetenv("NONE");
}

static const char *value(const char *section, const char *key)
{
    for (unsigned i = 0; i < config_file.ini->n_sections; i++) {
        if (strcmp(config_file.ini->sections[i].name, section) == 0) {
            const struct ini_entry *entry = ini_find(&config_file.ini->sections[i], key);

            return entry != NULL ? entry->value : "(no key)";
        }
    }
    return "(no section)";
}

/* ---- files ---- */

GROUP(files_and_variables, setup, config_file_leave);

TEST(files_and_variables, included_file_is_read_at_its_include)
{
    text_file_write_text("a.ini", "[a]\nx = 1"); /* without a newline */
    config_file_scan_text("# comment\ninclude = a.ini # and another\n\n[b]\nx = 2\n");
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_str_eq(value("a", "x"), "1");
    ck_assert_str_eq(value("b", "x"), "2");
    ck_assert_uint_eq(config_file.ini->n_sections, 2);
    ck_assert_str_eq(config_file.ini->sections[0].name, "a");
}

TEST(files_and_variables, ini_files_of_a_directory_are_read_in_the_order_of_their_names)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    text_file_write_text("d/20.ini", "[c]\nx = 20\n");
    text_file_write_text("d/10.ini", "[b]\nx = 10\n");
    text_file_write_text("d/.hidden.ini", "[h]\nx = 1\n");
    text_file_write_text("d/10.ini.bak", "[h]\nx = 1\n");
    config_file_scan_text("include = \"d\"\n[a]\nx = 1\n");
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_uint_eq(config_file.ini->n_sections, 3);
    ck_assert_str_eq(config_file.ini->sections[0].name, "b");
    ck_assert_str_eq(config_file.ini->sections[1].name, "c");
    ck_assert_str_eq(config_file.ini->sections[2].name, "a");
    ck_assert_int_eq(remove("d/20.ini") + remove("d/10.ini") + remove("d/.hidden.ini"), 0);
    ck_assert_int_eq(remove("d/10.ini.bak"), 0);
}

TEST(files_and_variables, path_is_relative_to_the_file_that_contains_it)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    text_file_write_text("d/a.ini", "include = b.ini\n");
    text_file_write_text("d/b.ini", "[b]\nx = 1\n");
    config_file_scan_text("include = d/a.ini\n");
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_str_eq(value("b", "x"), "1");
    ck_assert_int_eq(remove("d/a.ini") + remove("d/b.ini"), 0);
}

TEST(files_and_variables, problems_name_the_file_and_its_line)
{
    text_file_write_text("a.ini", "[a]\nx 1\n");
    text_file_write_text("b.ini", "\ny = 1\n[a]\nx = 2\n");
    config_file_scan_text("include = a.ini\n\ninclude = b.ini\nz = 1\n[t]\nx = 1\nx = 2\n[a]\n");
    ck_assert_str_eq(config_file.problems,
                     "a.ini:2: 'x 1': no '=' (key = value)\n"
                     "b.ini:2: 'y' is in no section (a line [KIND] or [KIND NAME] first)\n"
                     "b.ini:3: [a] is defined twice (first on line 1 of a.ini)\n"
                     "t.ini:4: 'z' is in no section (a line [KIND] or [KIND NAME] first)\n"
                     "t.ini:7: [t] x: is set twice (first on line 6)\n"
                     "t.ini:8: [a] is defined twice (first on line 1 of a.ini)\n");
}

TEST(files_and_variables, problem_right_before_an_include_is_in_the_including_file)
{
    text_file_write_text("a.ini", "[a]\nx = 1\n");
    config_file_scan_text("y = 1\nz = 1\ninclude = a.ini\n");
    ck_assert_str_eq(config_file.problems,
                     "t.ini:1: 'y' is in no section (a line [KIND] or [KIND NAME] first)\n"
                     "t.ini:2: 'z' is in no section (a line [KIND] or [KIND NAME] first)\n");
}

TEST(files_and_variables, file_that_cannot_be_included_is_reported_at_its_include)
{
    text_file_write_text("bad.ini", "[a]\r\n");
    ck_assert_int_eq(mkdir("d", 0700), 0);
    config_file_scan_text(
        "include = none.ini\ninclude =\ninclude = bad.ini\ninclude = ${NONE}\n[a]\nx = 1\n"
        "include = d\n");
    ck_assert_str_eq(
        config_file.problems,
        "t.ini:1: include: 'none.ini' cannot be opened: No such file or directory\n"
        "t.ini:2: include: '' is not the path of a file or directory\n"
        "t.ini:3: include: 'bad.ini' is not a text file with lines that end in LF\n"
        "t.ini:4: include: the environment variable NONE is not set (${NAME:-DEFAULT} gives a "
        "default)\n"
        "t.ini:7: include: must come before the first section of a file, except "
        "[defaults KIND]\n");
    ck_assert_str_eq(value("a", "x"), "1");
}

/* Of scandir(3); root may read each directory. */
static int directory_error;

int scandir(const char *path, struct dirent ***list, int (*select)(const struct dirent *),
            int (*compare)(const struct dirent **, const struct dirent **))
{
    int (*next)(const char *, struct dirent ***, int (*)(const struct dirent *),
                int (*)(const struct dirent **, const struct dirent **)) =
        dlsym(RTLD_NEXT, "scandir");

    if (directory_error == 0)
        return next(path, list, select, compare);
    errno = directory_error;
    return -1;
}

TEST(files_and_variables, directory_that_cannot_be_read_is_reported_at_its_include)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    directory_error = EACCES;
    config_file_scan_text("\ninclude = d\n[a]\nx = 1\n");
    ck_assert_str_eq(config_file.problems,
                     "t.ini:2: include: 'd' cannot be read: Permission denied\n");
    ck_assert_str_eq(value("a", "x"), "1");
}

TEST(files_and_variables, a_file_that_includes_itself_is_refused)
{
    text_file_write_text("a.ini", "include = b.ini\n[a]\n");
    text_file_write_text("b.ini", "include = a.ini\n[b]\n");
    config_file_scan_text("include = t.ini\ninclude = a.ini\n");
    ck_assert_str_eq(config_file.problems, "t.ini:1: include: 't.ini' includes itself\n"
                                           "b.ini:1: include: 'a.ini' includes itself\n");
    ck_assert_uint_eq(config_file.ini->n_sections, 2);
}

TEST(files_and_variables, include_depth_is_bounded)
{
    char name[16], text[64];

    for (int i = 0; i < INI_INCLUDE_DEPTH + 2; i++) {
        snprintf(name, sizeof(name), "%d.ini", i);
        snprintf(text, sizeof(text), "include = %d.ini\n[s%d]\n", i + 1, i);
        text_file_write_text(name, text);
    }
    text_file_write_text("1000.ini", "");
    config_file_scan_text("include = 0.ini\n");
    ck_assert_str_eq(config_file.problems,
                     "7.ini:1: include: files include each other too deeply (at most 8)\n");
}

TEST(files_and_variables, number_of_included_files_is_bounded)
{
    char text[(INI_INCLUDE_FILES + 1) * sizeof("include = a.ini\n")] = "";
    size_t len = 0;

    for (int i = 0; i < INI_INCLUDE_FILES; i++)
        len += (size_t)sprintf(text + len, "include = a.ini\n");
    text_file_write_text("a.ini", "# nothing\n");
    config_file_scan_text(text);
    ck_assert_str_eq(config_file.problems, "t.ini:1000: include: 'a.ini' is one file too many\n");
}

/* ---- variables ---- */

static const struct {
    const char *value;
    const char *expanded; /* or what is wrong */
    int rc;
} values[] = {
    {"plain", "plain", 0},
    {"${HOST}", "127.0.0.1", 0},
    {"${HOST}:7, [::1]:${PORT:-7}", "127.0.0.1:7, [::1]:7", 0},
    {"${NONE:-}", "", 0},
    {"${EMPTY}", "", 0},
    {"${EMPTY:-x}", "x", 0},
    {"${HOST:-x}", "127.0.0.1", 0},
    {"${client} $HOST $${HOST} ${HOST", "${client} $HOST $${HOST} ${HOST", 0},
    {"${1X} ${} ${HOST-x}", "${1X} ${} ${HOST-x}", 0},
    {"a ${NONE}", "the environment variable NONE is not set (${NAME:-DEFAULT} gives a default)",
     -EINVAL},
    {"${NEWLINE}",
     "the environment variable NEWLINE contains a control character, both kinds of quotes or a "
     "variable",
     -EINVAL},
    {"${NESTED}",
     "the environment variable NESTED contains a control character, both kinds of quotes or a "
     "variable",
     -EINVAL},
    {"x${LONG}", "the value is too long with its environment variables (at most 1000 characters)",
     -EINVAL},
};

TEST_EACH(files_and_variables, variable_is_replaced_or_refused, ARRAY_LEN(values))
{
    struct ini_environment out;
    char longest[INI_VALUE_BYTES + 1];

    memset(longest, 'l', INI_VALUE_BYTES);
    longest[INI_VALUE_BYTES] = '\0';
    setenv("LONG", longest, 1);
    setenv("NEWLINE", "a\nb", 1);
    setenv("NESTED", "${HOST}", 1);
    ck_assert_int_eq(ini_environment_expand(&out, values[_i].value, INI_VALUE_BYTES),
                     values[_i].rc);
    ck_assert_str_eq(values[_i].rc == 0 ? out.text : out.problem, values[_i].expanded);
    ck_assert_int_eq(ini_environment_expand(&out, "${LONG}", INI_VALUE_BYTES), 0);
    ck_assert_str_eq(out.text, longest);
    ck_assert_int_eq(ini_environment_expand(&out, "${LONG}", INI_VALUE_BYTES - 1), -EINVAL);
}

TEST(files_and_variables, variables_are_replaced_in_values_and_paths_only)
{
    text_file_write_text("127.0.0.1.ini", "[a]\nx = \"${HOST}:7\"\n");
    config_file_scan_text("include = ${HOST}.ini\n# ${NONE}\n[b]\nx = 1 ; ${NONE}\ny = ${NONE}\n");
    ck_assert_str_eq(config_file.problems,
                     "t.ini:5: [b] y: the environment variable NONE is not set "
                     "(${NAME:-DEFAULT} gives a default)\n");
    ck_assert_str_eq(value("a", "x"), "127.0.0.1:7");
    ck_assert_str_eq(value("b", "x"), "1");
}

/* Write a file of ${n} bytes of comments, between ${begin} and ${end}. */
static void write_comments(const char *name, const char *begin, size_t n, const char *end)
{
    FILE *out = fopen(name, "w");

    ck_assert_ptr_nonnull(out);
    fputs(begin, out);
    for (size_t i = 0; i < n; i += 512)
        fprintf(out, "#%510s\n", "");
    fputs(end, out);
    ck_assert_int_eq(fclose(out), 0);
}

TEST(files_and_variables, path_is_written_as_any_value)
{
    text_file_write_text("a b.ini", "[a]\nx = 1\n");
    config_file_scan_text(
        "include = 'a b.ini' ; a comment\ninclude = 'a b.ini\ninclude = \"a\" b\n");
    ck_assert_str_eq(value("a", "x"), "1");
    ck_assert_str_eq(config_file.problems,
                     "t.ini:2: include: the closing quote is missing\n"
                     "t.ini:3: include: text follows the closing quote (only a comment may)\n");
}

TEST(files_and_variables, total_size_of_included_files_is_bounded)
{
    write_comments("a.ini", "", INI_FILE_BYTES / 2, "");
    text_file_write_text("b.ini", "[b]\nx = 1\n");
    write_comments("t.ini", "include = a.ini\n", INI_FILE_BYTES / 2, "include = b.ini\n");
    config_file_scan("t.ini");
    ck_assert_ptr_nonnull(strstr(config_file.problems,
                                 "include: 'b.ini' is too large (all files together "
                                 "at most 32 MiB)\n"));
    ck_assert_str_eq(value("b", "x"), "(no section)");
}
