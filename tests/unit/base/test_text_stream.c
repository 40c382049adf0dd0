/* base/text_stream: a text is whole or an error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"
#include "support/suite.h"

static char *text;
static size_t len;

static void setup(void)
{
    text = NULL;
}

static void teardown(void)
{
    free(text);
}

GROUP(text_stream, setup, teardown);

TEST(text_stream, closed_stream_has_the_text_written)
{
    FILE *f = open_memstream(&text, &len);

    ck_assert_ptr_nonnull(f);
    fputs("hello", f);
    ck_assert_int_eq(text_stream_close(f, &text), 0);
    ck_assert_str_eq(text, "hello");
    ck_assert_uint_eq(len, 5);
}

/* As if the memory had run out with the last bytes: this stream loses them, too. */
TEST(text_stream, stream_with_a_missing_part_has_no_text)
{
    FILE *f = fopen("/dev/full", "w");

    ck_assert_ptr_nonnull(f);
    fputs("hello", f);
    text = strdup("hel");
    ck_assert_int_eq(text_stream_close(f, &text), -ENOMEM);
    ck_assert_ptr_null(text);
}

/* glibc leaves NULL where it had no memory for the first bytes, and fclose() succeeds. */
TEST(text_stream, stream_without_a_buffer_is_out_of_memory)
{
    FILE *f = fopen("/dev/null", "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(text_stream_close(f, &text), -ENOMEM);
}
