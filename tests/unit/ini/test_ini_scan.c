/* ini/ini_scan: what a line can be, what is refused, and that iniparser agrees with the rest. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ini/diagnostics.h"
#include "ini/ini.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

static const char *value(const char *written)
{
    char text[2048];

    snprintf(text, sizeof(text), "[s]\nk = %s\n", written);
    ck_assert_int_eq(config_file_scan_text(text), 0);
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_uint_eq(config_file.ini->sections[0].n_entries, 1);
    return config_file.ini->sections[0].entries[0].value;
}

GROUP(lines, text_file_enter, config_file_leave);

TEST(lines, sections_and_keys_are_read_in_the_order_of_the_file)
{
    static const char text[] = "# comment\n\n[B]\nZ=1\n  a\t=\t2  \n;[c]\n[A x]\n z.Y-_9 = 3";

    ck_assert_int_eq(config_file_scan_text(text), 0);
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_uint_eq(config_file.ini->n_sections, 2);
    ck_assert_str_eq(config_file.ini->sections[0].name, "b");
    ck_assert_uint_eq(config_file.ini->sections[0].line, 3);
    ck_assert_uint_eq(config_file.ini->sections[0].n_entries, 2);
    ck_assert_str_eq(config_file.ini->sections[0].entries[0].key, "z");
    ck_assert_str_eq(config_file.ini->sections[0].entries[1].key, "a");
    ck_assert_str_eq(config_file.ini->sections[0].entries[1].value, "2");
    ck_assert_uint_eq(config_file.ini->sections[0].entries[1].line, 5);
    ck_assert_str_eq(config_file.ini->sections[1].name, "a x");
    ck_assert_str_eq(config_file.ini->sections[1].entries[0].key, "z.y-_9");
    ck_assert_uint_eq(config_file.ini->sections[1].entries[0].line, 8);
    ck_assert_ptr_eq(ini_find(&config_file.ini->sections[0], "a"),
                     &config_file.ini->sections[0].entries[1]);
    ck_assert_ptr_null(ini_find(&config_file.ini->sections[0], "z.y-_9"));
}

TEST(lines, an_empty_file_has_no_sections)
{
    ck_assert_int_eq(config_file_scan_bytes("", 0), 0);
    ck_assert_uint_eq(config_file.ini->n_sections, 0);
    ck_assert_str_eq(config_file.problems, "");
}

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
    {"a:\"b c\" d", "a:\"b c\" d"},
    {"a:\"it's\" # comment", "a:\"it's\""},
    {"[x]", "[x]"},
    {"=", "="},
    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
};

TEST_EACH(lines, value_is_read_as_written, ARRAY_LEN(values))
{
    ck_assert_str_eq(value(values[_i].text), values[_i].value);
}

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
    {"k = \"a\" b", "[s] k: text follows the closing quote "},
    {"k = \"a\"\"", "[s] k: text follows the closing quote "},
    {"k = \"a\"=", "[s] k: text follows the closing quote "},
    {"k = a\"b\"", "[s] k: a quote inside the value "},
    {"k = a:\"b\"c", "[s] k: a quote inside the value "},
    {"k = a:\"b", "[s] k: a quote inside the value "},
    {"k = a:'b'", "[s] k: a quote inside the value "},
    {"k = it's", "[s] k: a quote inside the value "},
    {"[]", "'[]': a section without a name "},
    {"[ ]", "'[ ]': a section without a name "},
    {"[a", "'[a' has no closing ']'"},
    {"[", "'[' has no closing ']'"},
    {"[a] b", "'b' follows the closing ']' "},
    {"[a] # comment", "'# comment' follows the closing ']' "},
    {"[a]]", "']' follows the closing ']' "},
    {"[[a]]", "']' follows the closing ']' "},
    {"[[a]", "'[[a]': not the name of a section "},
    {"[a:b]", "'[a:b]': a ':' in a section's name "},
    {"[a  b]", "'[a  b]': not the name of a section "},
    {"[a b c]", "'[a b c]': not the name of a section "},
    {"[a\tb]", "'[a\\x09b]': not the name of a section "},
    {"[a=b]", "'[a=b]': not the name of a section "},
    {"[S]", "[s] is defined twice (first on line 1)"},
    {"[ s ]", "[s] is defined twice (first on line 1)"},
};

TEST_EACH(lines, malformed_line_is_reported_and_the_lines_around_it_are_read, ARRAY_LEN(broken))
{
    char text[256], expected[512];

    snprintf(text, sizeof(text), "[s]\n%s\n[after]\nk = v\n", broken[_i].text);
    snprintf(expected, sizeof(expected), "t.ini:2: %s", broken[_i].problem);
    ck_assert_int_eq(config_file_scan_text(text), 0);
    ck_assert_msg(strncmp(config_file.problems, expected, strlen(expected)) == 0, "%s",
                  config_file.problems);
    ck_assert_ptr_eq(strchr(config_file.problems, '\n'),
                     config_file.problems + strlen(config_file.problems) - 1);
    ck_assert_uint_eq(config_file.ini->n_sections, 2);
    ck_assert_str_eq(config_file.ini->sections[1].entries[0].value, "v");
}

TEST(lines, a_duplicate_key_names_both_lines_and_the_first_counts)
{
    static const char text[] = "[s]\nk = 1\n[t]\nk = 2\nx = 3\nK = 4\n";

    ck_assert_int_eq(config_file_scan_text(text), 0);
    ck_assert_str_eq(config_file.problems, "t.ini:6: [t] k: is set twice (first on line 4)\n");
    ck_assert_str_eq(ini_find(&config_file.ini->sections[1], "k")->value, "2");
}

TEST(lines, key_with_a_malformed_value_is_kept_and_refused)
{
    static const char text[] = "[s]\nk = \"1\n";

    ck_assert_int_eq(config_file_scan_text(text), 0);
    ck_assert_uint_eq(config_file.ini->sections[0].n_entries, 1);
    ck_assert(config_file.ini->sections[0].entries[0].refused);
}

TEST(lines, key_before_any_section_is_reported)
{
    static const char text[] = "\nk = 1\n[s]\n";

    ck_assert_int_eq(config_file_scan_text(text), 0);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:2: 'k' is in no section (a line [KIND] or [KIND NAME] first)\n");
}

TEST(lines, keys_of_a_refused_section_are_not_reported)
{
    static const char text[] = "[s]\n[a\nk = 1\nk = 2\nword\n[t]\nk = 3\n";

    ck_assert_int_eq(config_file_scan_text(text), 0);
    ck_assert_str_eq(config_file.problems, "t.ini:2: '[a' has no closing ']'\n"
                                           "t.ini:5: 'word': no '=' (key = value)\n");
    ck_assert_uint_eq(config_file.ini->n_sections, 2);
    ck_assert_uint_eq(config_file.ini->n_refused, 1);
    ck_assert_uint_eq(config_file.ini->sections[0].n_entries, 0);
    ck_assert_str_eq(config_file.ini->sections[1].entries[0].value, "3");
}

/* [s], a line of ${len} characters that begins with ${head}, and one more line. */
static int load_long(const char *head, size_t len)
{
    size_t size = 4 + len + sizeof("\nz = 1\n") - 1;
    char *text = malloc(size + 1);
    int rc;

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', size);
    memcpy(text, "[s]\n", 4);
    memcpy(text + 4, head, strlen(head));
    strcpy(text + 4 + len, "\nz = 1\n");
    rc = config_file_scan_bytes(text, size);
    free(text);
    return rc;
}

TEST(lines, a_line_has_at_most_1000_characters)
{
    ck_assert_int_eq(load_long("# ", 1000), 0);
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_int_eq(load_long("# ", 1001), 0);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:2: the line has 1001 characters (at most 1000)\n");
    ck_assert_str_eq(config_file.ini->sections[0].entries[0].key, "z");
}

TEST(lines, line_of_a_megabyte_is_one_short_problem)
{
    ck_assert_int_eq(load_long("k = ", 1 << 20), 0);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:2: the line has 1048576 characters (at most 1000)\n");
    ck_assert_str_eq(config_file.ini->sections[0].entries[0].key, "z");
}

TEST(lines, a_value_may_be_as_long_as_a_line)
{
    ck_assert_int_eq(load_long("k=", 1000), 0);
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_uint_eq(strlen(config_file.ini->sections[0].entries[0].value), 998);
}

/* ${n} lines of ${format}, which takes the number of the line, after a section. */
static int load_many(const char *format, unsigned n)
{
    FILE *f = fopen("t.ini", "w");

    ck_assert_ptr_nonnull(f);
    fputs("[s]\n", f);
    for (unsigned i = 0; i < n; i++)
        fprintf(f, format, i);
    ck_assert_int_eq(fclose(f), 0);
    return config_file_scan("t.ini");
}

static const struct {
    const char *line;
    unsigned n;
    const char *problem;
} too_many[] = {
    {"k%u=\n", INI_MAX_ENTRIES + 1,
     "t.ini:524290: too many lines 'key = value' (at most 524288)\n"},
    {"[s%u]\n", INI_MAX_SECTIONS, "t.ini:8193: too many sections (at most 8192)\n"},
};

TEST_EACH(lines, too_many_entries_or_sections_are_refused, ARRAY_LEN(too_many))
{
    ck_assert_int_eq(load_many(too_many[_i].line, too_many[_i].n), -EINVAL);
    ck_assert_str_eq(config_file.problems, too_many[_i].problem);
}

TEST(lines, many_entries_are_read)
{
    ck_assert_int_eq(load_many("k%u=v\n", 5000), 0);
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_uint_eq(config_file.ini->sections[0].n_entries, 5000);
}

TEST(lines, first_of_very_many_problems_are_reported)
{
    unsigned lines = 0;

    ck_assert_int_eq(load_many("word%u\n", 100000), 0);
    for (const char *p = config_file.problems; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    ck_assert_uint_eq(lines, DIAGNOSTICS_KEPT + 1);
    ck_assert_ptr_nonnull(strstr(config_file.problems, "t.ini:0: 99800 more problems\n"));
}

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

TEST_EACH(lines, binary_or_crlf_file_is_refused_as_a_whole, ARRAY_LEN(no_texts))
{
    ck_assert_int_eq(config_file_scan_bytes(no_texts[_i].bytes, no_texts[_i].len), -EINVAL);
    ck_assert_str_eq(config_file.problems, no_texts[_i].problem);
}
