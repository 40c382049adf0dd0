/* daemon/ini: what a line can be, what is refused, and that iniparser agrees with the rest. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/ini.h"
#include "daemon/report.h"
#include "support/text_file.h"

static struct ini *ini;
static char *problems;

/* Load t.ini as it is; its problems are in ${problems}. */
static int load_file(const char *path)
{
    struct report *report;
    size_t size;
    FILE *out = open_memstream(&problems, &size);
    int rc;

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(report_create(&report, path), 0);
    rc = ini_load(&ini, path, report);
    ck_assert_int_eq(report_write(report, out), 0);
    report_destroy(report);
    ck_assert_int_eq(fclose(out), 0);
    return rc;
}

static int load(const char *bytes, size_t len)
{
    text_file_write("t.ini", bytes, len);
    return load_file("t.ini");
}

static void teardown(void)
{
    ini_free(ini);
    free(problems);
    text_file_leave();
}

static const char *value(const char *text)
{
    char file[2048];

    snprintf(file, sizeof(file), "[s]\nk = %s\n", text);
    ck_assert_int_eq(load(file, strlen(file)), 0);
    ck_assert_str_eq(problems, "");
    ck_assert_uint_eq(ini->sections[0].n_entries, 1);
    return ini->sections[0].entries[0].value;
}

START_TEST(sections_and_keys_come_in_the_order_of_the_file)
{
    static const char text[] = "# comment\n\n[B]\nZ=1\n  a\t=\t2  \n;[c]\n[A x]\n z.Y-_9 = 3";

    ck_assert_int_eq(load(text, strlen(text)), 0);
    ck_assert_str_eq(problems, "");
    ck_assert_uint_eq(ini->n_sections, 2);
    ck_assert_str_eq(ini->sections[0].name, "b");
    ck_assert_uint_eq(ini->sections[0].line, 3);
    ck_assert_uint_eq(ini->sections[0].n_entries, 2);
    ck_assert_str_eq(ini->sections[0].entries[0].key, "z");
    ck_assert_str_eq(ini->sections[0].entries[1].key, "a");
    ck_assert_str_eq(ini->sections[0].entries[1].value, "2");
    ck_assert_uint_eq(ini->sections[0].entries[1].line, 5);
    ck_assert_str_eq(ini->sections[1].name, "a x");
    ck_assert_str_eq(ini->sections[1].entries[0].key, "z.y-_9");
    ck_assert_uint_eq(ini->sections[1].entries[0].line, 8);
    ck_assert_ptr_eq(ini_find(&ini->sections[0], "a"), &ini->sections[0].entries[1]);
    ck_assert_ptr_null(ini_find(&ini->sections[0], "z.y-_9"));
}
END_TEST

START_TEST(an_empty_file_has_no_sections)
{
    ck_assert_int_eq(load("", 0), 0);
    ck_assert_uint_eq(ini->n_sections, 0);
    ck_assert_str_eq(problems, "");
}
END_TEST

static const struct {
    const char *text;
    const char *value;
} values[] = {
    {"v", "v"},
    {"a b", "a b"},
    {"Upper", "Upper"},
    {"a=b", "a=b"},
    {"a # comment", "a"},
    {"a\t;comment", "a"},
    {"", ""},
    {"# comment", ""},
    {";comment", ""},
    {"\"\"", ""},
    {"''", ""},
    {"\"\" # comment", ""},
    {"\"a\"", "a"},
    {"'a'", "a"},
    {"\" a \"", " a "},
    {"\" \"", " "},
    {"\"a#b;c\" ; comment", "a#b;c"},
    {"'say \"a\"'#comment", "say \"a\""},
    {"\"it's\"", "it's"},
    {"\"a\\\"", "a\\"},
    {"a\\b", "a\\b"},
    {"[x]", "[x]"},
    {"=", "="},
    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
};

START_TEST(a_value_is_what_is_written)
{
    ck_assert_str_eq(value(values[_i].text), values[_i].value);
}
END_TEST

static const struct {
    const char *text;
    const char *problem; /* of line 2, without its place; [s] is line 1 */
} broken[] = {
    {"word", "'word': no '=' (key = value)"},
    {"x", "'x': no '=' (key = value)"},
    {"= v", "'': nothing before the '=' "},
    {"=", "'': nothing before the '=' "},
    {"a:b = 1", "'a:b': a ':' in a key "},
    {"a b = 1", "'a b': not a key "},
    {"a[0] = 1", "'a[0]': not a key "},
    {"\"a\" = 1", "'\"a\"': not a key "},
    {"\xc3\xbc = 1", "'\\xc3\\xbc': not a key "},
    {"k234567890123456789012345678901234567890123456789012345678901234x = 1",
     "'k234567890123456789012345678901234567890123456789012345678901234...': a key that is too "},
    {"k = a \\", "the line ends in a backslash (a line is not continued)"},
    {"k = \\", "the line ends in a backslash "},
    {"# comment \\", "the line ends in a backslash "},
    {"\\", "the line ends in a backslash "},
    {"k = a#b", "[s] k: a '#' or ';' inside the value "},
    {"k = a;b", "[s] k: a '#' or ';' inside the value "},
    {"k = \"a", "[s] k: the closing quote is missing"},
    {"k = 'a\"", "[s] k: the closing quote is missing"},
    {"k = \"", "[s] k: the closing quote is missing"},
    {"k = \"a\" b", "[s] k: there is something behind the closing quote "},
    {"k = \"a\"\"", "[s] k: there is something behind the closing quote "},
    {"k = \"a\"=", "[s] k: there is something behind the closing quote "},
    {"k = a\"b\"", "[s] k: a quote inside the value "},
    {"k = it's", "[s] k: a quote inside the value "},
    {"[]", "'[]': a section without a name "},
    {"[ ]", "'[ ]': a section without a name "},
    {"[a", "'[a' has no closing ']'"},
    {"[", "'[' has no closing ']'"},
    {"[a] b", "'b' behind the closing ']' "},
    {"[a] # comment", "'# comment' behind the closing ']' "},
    {"[a]]", "']' behind the closing ']' "},
    {"[[a]]", "']' behind the closing ']' "},
    {"[[a]", "'[[a': not the name of a section "},
    {"[a:b]", "'[a:b': a ':' in a section's name "},
    {"[a  b]", "'[a  b': not the name of a section "},
    {"[a b c]", "'[a b c': not the name of a section "},
    {"[a\tb]", "'[a\\x09b': not the name of a section "},
    {"[a=b]", "'[a=b': not the name of a section "},
    {"[S]", "[s] is a second time here (the first is on line 1)"},
    {"[ s ]", "[s] is a second time here (the first is on line 1)"},
};

START_TEST(a_broken_line_is_told_and_the_lines_around_it_are_read)
{
    char file[256], expected[512];

    snprintf(file, sizeof(file), "[s]\n%s\n[after]\nk = v\n", broken[_i].text);
    snprintf(expected, sizeof(expected), "t.ini:2: %s", broken[_i].problem);
    ck_assert_int_eq(load(file, strlen(file)), 0);
    ck_assert_msg(strncmp(problems, expected, strlen(expected)) == 0, "%s", problems);
    ck_assert_ptr_eq(strchr(problems, '\n'), problems + strlen(problems) - 1);
    ck_assert_uint_eq(ini->n_sections, 2);
    ck_assert_str_eq(ini->sections[1].entries[0].value, "v");
}
END_TEST

START_TEST(a_duplicate_key_names_both_lines_and_the_first_counts)
{
    static const char text[] = "[s]\nk = 1\n[t]\nk = 2\nx = 3\nK = 4\n";

    ck_assert_int_eq(load(text, strlen(text)), 0);
    ck_assert_str_eq(problems, "t.ini:6: [t] k: is a second time here (the first is on line 4)\n");
    ck_assert_str_eq(ini_find(&ini->sections[1], "k")->value, "2");
}
END_TEST

START_TEST(a_key_with_a_broken_value_is_there_but_refused)
{
    static const char text[] = "[s]\nk = \"1\n";

    ck_assert_int_eq(load(text, strlen(text)), 0);
    ck_assert_uint_eq(ini->sections[0].n_entries, 1);
    ck_assert(ini->sections[0].entries[0].refused);
}
END_TEST

START_TEST(a_key_before_any_section_is_told)
{
    static const char text[] = "\nk = 1\n[s]\n";

    ck_assert_int_eq(load(text, strlen(text)), 0);
    ck_assert_str_eq(problems,
                     "t.ini:2: 'k' is in no section (a line [KIND] or [KIND NAME] first)\n");
}
END_TEST

START_TEST(keys_of_a_refused_section_are_not_told_on_their_own)
{
    static const char text[] = "[s]\n[a\nk = 1\nk = 2\nword\n[t]\nk = 3\n";

    ck_assert_int_eq(load(text, strlen(text)), 0);
    ck_assert_str_eq(problems, "t.ini:2: '[a' has no closing ']'\n"
                               "t.ini:5: 'word': no '=' (key = value)\n");
    ck_assert_uint_eq(ini->n_sections, 2);
    ck_assert_uint_eq(ini->n_refused, 1);
    ck_assert_uint_eq(ini->sections[0].n_entries, 0);
    ck_assert_str_eq(ini->sections[1].entries[0].value, "3");
}
END_TEST

/* [s], a line of ${len} characters that begins with ${head}, and one more line. */
static int load_long(const char *head, size_t len)
{
    size_t size = 4 + len + sizeof("\nz = 1\n") - 1;
    char *file = malloc(size + 1);
    int rc;

    ck_assert_ptr_nonnull(file);
    memset(file, 'x', size);
    memcpy(file, "[s]\n", 4);
    memcpy(file + 4, head, strlen(head));
    strcpy(file + 4 + len, "\nz = 1\n");
    rc = load(file, size);
    free(file);
    return rc;
}

START_TEST(a_line_has_at_most_1000_characters)
{
    ck_assert_int_eq(load_long("# ", 1000), 0);
    ck_assert_str_eq(problems, "");
    ini_free(ini);
    free(problems);
    ck_assert_int_eq(load_long("# ", 1001), 0);
    ck_assert_str_eq(problems, "t.ini:2: the line has 1001 characters (at most 1000)\n");
    ck_assert_str_eq(ini->sections[0].entries[0].key, "z");
}
END_TEST

START_TEST(a_line_of_a_megabyte_is_one_short_problem)
{
    ck_assert_int_eq(load_long("k = ", 1 << 20), 0);
    ck_assert_str_eq(problems, "t.ini:2: the line has 1048576 characters (at most 1000)\n");
    ck_assert_str_eq(ini->sections[0].entries[0].key, "z");
}
END_TEST

START_TEST(a_value_has_at_most_900_characters)
{
    ck_assert_int_eq(load_long("k = ", 904), 0);
    ck_assert_str_eq(problems, "");
    ini_free(ini);
    free(problems);
    ck_assert_int_eq(load_long("k = ", 905), 0);
    ck_assert_str_eq(problems, "t.ini:2: [s] k: the value is too long (at most 900 characters)\n");
}
END_TEST

#define BYTES(s) s, sizeof(s) - 1

static const struct {
    const char *bytes;
    size_t len;
    const char *problem;
} no_texts[] = {
    {BYTES("\xef\xbb\xbf[s]\nk = v\n"),
     "t.ini:1: the file begins with a byte order mark (save it without)\n"},
    {BYTES("[s]\r\nk = v\r\n"),
     "t.ini:1: the line ends in CR LF (lines end in LF; sed -i 's/\\r$//' converts)\n"},
    {BYTES("[s]\nk = v\r\n"),
     "t.ini:2: the line ends in CR LF (lines end in LF; sed -i 's/\\r$//' converts)\n"},
    {BYTES("[s]\nk = v\rx"), "t.ini:2: byte \\x0d: this is not a text file\n"},
    {BYTES("[s]\nk = v\r"), "t.ini:2: byte \\x0d: this is not a text file\n"},
    {BYTES("[s]\n\n\0k = v\n"), "t.ini:3: byte \\x00: this is not a text file\n"},
    {BYTES("\x7f"
           "ELF\2\1\1\0\0"),
     "t.ini:1: byte \\x7f: this is not a text file\n"},
    {BYTES("\xff\xfe[\0s\0]\0"), "t.ini:1: byte \\x00: this is not a text file\n"},
    {BYTES("[s]\nk = \x1b[31m\n"), "t.ini:2: byte \\x1b: this is not a text file\n"},
    {BYTES("[s]\nk = a\vb\n"), "t.ini:2: byte \\x0b: this is not a text file\n"},
};

START_TEST(what_is_no_text_is_refused_as_a_whole)
{
    ck_assert_int_eq(load(no_texts[_i].bytes, no_texts[_i].len), -EINVAL);
    ck_assert_str_eq(problems, no_texts[_i].problem);
}
END_TEST

START_TEST(a_directory_is_refused)
{
    ck_assert_int_eq(load_file("/"), -EISDIR);
    ck_assert_str_eq(problems, "/:0: is a directory (a file is needed)\n");
}
END_TEST

START_TEST(a_missing_file_is_refused)
{
    ck_assert_int_eq(load_file("nosuch.ini"), -ENOENT);
    ck_assert_str_eq(problems, "nosuch.ini:0: cannot be opened: No such file or directory\n");
}
END_TEST

/* Tests run as root, for whom every file is readable; a link to itself is not. */
START_TEST(an_unreadable_file_is_refused)
{
    ck_assert_int_eq(symlink("loop.ini", "loop.ini"), 0);
    ck_assert_int_eq(load_file("loop.ini"), -ELOOP);
    ck_assert_str_eq(problems, "loop.ini:0: cannot be opened: Too many levels of symbolic links\n");
}
END_TEST

START_TEST(a_fifo_without_a_writer_is_refused_at_once)
{
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(load_file("fifo"), -EINVAL);
    ck_assert_str_eq(problems, "fifo:0: is not a regular file\n");
}
END_TEST

START_TEST(a_device_is_refused)
{
    ck_assert_int_eq(load_file("/dev/zero"), -EINVAL);
    ck_assert_str_eq(problems, "/dev/zero:0: is not a regular file\n");
}
END_TEST

START_TEST(a_socket_is_refused)
{
    const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    ck_assert_int_eq(load_file("socket"), -ENXIO);
    close(fd);
}
END_TEST

START_TEST(a_file_has_at_most_4_mib)
{
    text_file_write("t.ini", "", 0);
    ck_assert_int_eq(truncate("t.ini", INI_FILE_BYTES + 1), 0);
    ck_assert_int_eq(load_file("t.ini"), -EFBIG);
    ck_assert_str_eq(problems, "t.ini:0: is too large (at most 4 MiB)\n");
}
END_TEST

/* ${n} lines of ${format}, which takes the number of the line, after a section. */
static int load_many(const char *format, unsigned n)
{
    FILE *f = fopen("t.ini", "w");

    ck_assert_ptr_nonnull(f);
    fputs("[s]\n", f);
    for (unsigned i = 0; i < n; i++)
        fprintf(f, format, i);
    ck_assert_int_eq(fclose(f), 0);
    return load_file("t.ini");
}

START_TEST(too_many_entries_are_refused)
{
    ck_assert_int_eq(load_many("k%u=\n", INI_MAX_ENTRIES + 1), -EINVAL);
    ck_assert_str_eq(problems, "t.ini:32770: too many lines 'key = value' (at most 32768)\n");
}
END_TEST

START_TEST(too_many_sections_are_refused)
{
    ck_assert_int_eq(load_many("[s%u]\n", INI_MAX_SECTIONS), -EINVAL);
    ck_assert_str_eq(problems, "t.ini:8193: too many sections (at most 8192)\n");
}
END_TEST

START_TEST(many_entries_are_read)
{
    ck_assert_int_eq(load_many("k%u=v\n", 5000), 0);
    ck_assert_str_eq(problems, "");
    ck_assert_uint_eq(ini->sections[0].n_entries, 5000);
}
END_TEST

START_TEST(of_very_many_problems_the_first_are_told)
{
    unsigned lines = 0;

    ck_assert_int_eq(load_many("word%u\n", 100000), 0);
    for (const char *p = problems; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    ck_assert_uint_eq(lines, REPORT_KEPT + 1);
    ck_assert_ptr_nonnull(strstr(problems, "t.ini:0: 99800 more problems\n"));
}
END_TEST

static void add_files(TCase *tc)
{
    tcase_add_test(tc, a_directory_is_refused);
    tcase_add_test(tc, a_missing_file_is_refused);
    tcase_add_test(tc, an_unreadable_file_is_refused);
    tcase_add_test(tc, a_fifo_without_a_writer_is_refused_at_once);
    tcase_add_test(tc, a_device_is_refused);
    tcase_add_test(tc, a_socket_is_refused);
    tcase_add_test(tc, a_file_has_at_most_4_mib);
    tcase_add_loop_test(tc, what_is_no_text_is_refused_as_a_whole, 0, ARRAY_LEN(no_texts));
}

static void add_lines(TCase *tc)
{
    tcase_add_test(tc, sections_and_keys_come_in_the_order_of_the_file);
    tcase_add_test(tc, an_empty_file_has_no_sections);
    tcase_add_loop_test(tc, a_value_is_what_is_written, 0, ARRAY_LEN(values));
    tcase_add_loop_test(tc, a_broken_line_is_told_and_the_lines_around_it_are_read, 0,
                        ARRAY_LEN(broken));
    tcase_add_test(tc, a_duplicate_key_names_both_lines_and_the_first_counts);
    tcase_add_test(tc, a_key_with_a_broken_value_is_there_but_refused);
    tcase_add_test(tc, a_key_before_any_section_is_told);
    tcase_add_test(tc, keys_of_a_refused_section_are_not_told_on_their_own);
    tcase_add_test(tc, a_line_has_at_most_1000_characters);
    tcase_add_test(tc, a_line_of_a_megabyte_is_one_short_problem);
    tcase_add_test(tc, a_value_has_at_most_900_characters);
    tcase_add_test(tc, too_many_entries_are_refused);
    tcase_add_test(tc, too_many_sections_are_refused);
    tcase_add_test(tc, many_entries_are_read);
    tcase_add_test(tc, of_very_many_problems_the_first_are_told);
}

int main(void)
{
    Suite *suite = suite_create("daemon/ini");
    TCase *files = tcase_create("files");
    TCase *lines = tcase_create("lines");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(files, text_file_enter, teardown);
    add_files(files);
    suite_add_tcase(suite, files);
    tcase_add_checked_fixture(lines, text_file_enter, teardown);
    tcase_set_timeout(lines, 60);
    add_lines(lines);
    suite_add_tcase(suite, lines);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
