/* base/text: text that grows, and valid UTF-8. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "support/fault.h"
#include "support/suite.h"

static struct text text;

static void setup(void)
{
    text = (struct text){.bytes = NULL};
}

static void teardown(void)
{
    text_free(&text);
}

GROUP(text, setup, teardown);

TEST(text, added_texts_are_kept_in_order)
{
    text_puts(&text, "one ");
    text_add(&text, "two!", 3);
    text_printf(&text, " %d", 3);
    ck_assert_str_eq(text.bytes, "one two 3");
    ck_assert_uint_eq(text.n, strlen("one two 3"));
}

TEST(text, bytes_after_a_nul_are_kept)
{
    text_add(&text, "a\0b", 3);
    ck_assert_uint_eq(text.n, 3);
    ck_assert_int_eq(memcmp(text.bytes, "a\0b", 4), 0);
}

/* Each length around the first sizes: the NUL must fit as well. */
TEST(text, a_text_of_any_length_has_its_nul)
{
    for (size_t n = 0; n < 5000; n++) {
        text_printf(&text, "%c", 'a' + (int)(n % 26));
        ck_assert_uint_eq(text.n, n + 1);
        ck_assert_uint_eq(strlen(text.bytes), n + 1);
    }
}

TEST(text, formatted_text_may_be_longer_than_the_free_space)
{
    char long_word[3001];

    memset(long_word, 'x', sizeof(long_word) - 1);
    long_word[sizeof(long_word) - 1] = '\0';
    text_puts(&text, "a");
    text_printf(&text, "%s-%s", long_word, long_word);
    ck_assert_uint_eq(text.n, 1 + 2 * 3000 + 1);
    ck_assert_uint_eq(strlen(text.bytes), text.n);
}

TEST(text, nothing_is_added_after_an_allocation_that_failed)
{
    text_puts(&text, "a");
    fault_plan(FAULT_MEMORY, 0, FAULT_ALWAYS, ENOMEM);
    for (int i = 0; i < 3000; i++)
        text_puts(&text, "b");
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    ck_assert(text.failed);
    ck_assert_uint_lt(text.n, 3000);
    text_puts(&text, "c");
    ck_assert_ptr_null(strchr(text.bytes, 'c'));
}

static const struct {
    const char *string;
    unsigned bytes;
} characters[] = {
    {"", 0},
    {"a", 1},
    {"\x7f", 1},
    {"\x80", 0},
    {"\xc1\xbf", 0}, /* overlong */
    {"\xc2\x80", 2},
    {"\xc3", 0}, /* cut off */
    {"\xe0\x9f\xbf", 0},
    {"\xe0\xa0\x80", 3},
    {"\xed\x9f\xbf", 3},
    {"\xed\xa0\x80", 0}, /* a surrogate */
    {"\xef\xbf\xbd", 3},
    {"\xf0\x8f\xbf\xbf", 0},
    {"\xf0\x90\x80\x80", 4},
    {"\xf4\x8f\xbf\xbf", 4},
    {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
    {"\xf0\x90\x80", 0},
    {"\xff", 0},
};

TEST_EACH(text, a_character_is_valid_utf_8, sizeof(characters) / sizeof(characters[0]))
{
    ck_assert_uint_eq(text_character_bytes(characters[_i].string), characters[_i].bytes);
}
