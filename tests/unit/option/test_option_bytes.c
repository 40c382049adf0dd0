/* option/option_bytes: text with escapes, to the byte. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "check/check.h"
#include "option/option.h"
#include "option/option_bytes.h"
#include "support/suite.h"

static struct check_bytes field;
static struct arena *arena;
static struct option_value v;

static const struct option row = {
    .key = "check_send", .kind = &option_bytes, .flags = OPTION_EMPTY, .max = 8};

static void setup(void)
{
    ck_assert_int_eq(arena_create(&arena), 0);
}

static void teardown(void)
{
    arena_release(arena);
}

static int try(const char *text)
{
    field = (struct check_bytes){NULL, 0};
    v = (struct option_value){.key = row.key, .text = text, .conf = &field, .arena = arena};
    return option_set(&row, &v);
}

static void expect(const char *text, const char *bytes, size_t len)
{
    ck_assert_msg(try(text) == 0, "%s: %s", text, v.problem);
    ck_assert_uint_eq(field.len, len);
    ck_assert_mem_eq(field.data, bytes, len);
}

GROUP(bytes, setup, teardown);

TEST(bytes, text_is_itself)
{
    expect("PING", "PING", 4);
    expect("a b;#'\"", "a b;#'\"", 7);
    expect("\xc3\xa9", "\xc3\xa9", 2);
}

TEST(bytes, escape_sequence_is_one_byte)
{
    expect("PING\\r\\n", "PING\r\n", 6);
    expect("\\t\\\\n", "\t\\n", 3);
    expect("\\0x\\00",
           "\0x\0"
           "0",
           4);
    expect("\\x00\\xff\\xFf\\x0aa",
           "\x00\xff\xff\x0a"
           "a",
           5);
    expect("\\x20\\x5c\\x3b", " \\;", 3);
}

TEST(bytes, empty_text_is_no_bytes)
{
    ck_assert_int_eq(try(""), 0);
    ck_assert_uint_eq(field.len, 0);
}

TEST(bytes, the_limit_counts_bytes_and_not_characters)
{
    expect("\\x01\\x02\\x03\\x04\\x05\\x06\\x07\\x08", "\1\2\3\4\5\6\7\10", 8);
    expect("12345678", "12345678", 8);
    ck_assert_int_eq(try("123456789"), -EINVAL);
    ck_assert_str_eq(v.problem, "the value stands for 9 bytes");
}

#define ESCAPES " is no escape (\\r, \\n, \\t, \\0, \\\\ and \\xNN are)"

static const struct {
    const char *text;
    const char *problem;
} bad[] = {
    {"\\", "incomplete escape: a backslash at the end"},
    {"a\\\\\\", "incomplete escape: a backslash at the end"},
    {"\\q", "'\\q'" ESCAPES},
    {"a\\R", "'\\R'" ESCAPES},
    {"\\x", "'\\x'" ESCAPES},
    {"\\x1", "'\\x1'" ESCAPES},
    {"\\x1g2", "'\\x1g'" ESCAPES},
    {"\\xg1", "'\\xg1'" ESCAPES},
    {"\\X41", "'\\X'" ESCAPES},
    {"\\\n", "'\\\\x0a'" ESCAPES},
    {"\\101", "'\\1'" ESCAPES},
};

TEST_EACH(bytes, invalid_escape_is_refused_and_sets_nothing, ARRAY_LEN(bad))
{
    ck_assert_int_eq(try(bad[_i].text), -EINVAL);
    ck_assert_str_eq(v.problem, bad[_i].problem);
    ck_assert_ptr_null(field.data);
    ck_assert_uint_eq(field.len, 0);
}
