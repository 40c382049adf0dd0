/*
 * base/buffer: bytes in their order, memory only while there are some, and no change when there is
 * none to be had.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "support/suite.h"

static struct buffer b;

static void setup(void)
{
    buffer_init(&b);
}

static void teardown(void)
{
    buffer_clear(&b);
}

static void append(const char *text)
{
    ck_assert_int_eq(buffer_append(&b, text, strlen(text)), 0);
    ck_assert(buffer_ok(&b));
}

static void expect(const char *text)
{
    ck_assert(buffer_ok(&b));
    ck_assert_uint_eq(buffer_bytes(&b), strlen(text));
    ck_assert_mem_eq(buffer_front(&b), text, strlen(text));
}

GROUP(buffer, setup, teardown);

TEST(buffer, a_new_buffer_is_empty_and_owns_no_memory)
{
    ck_assert(buffer_ok(&b));
    ck_assert_uint_eq(buffer_bytes(&b), 0);
    ck_assert_ptr_null(b.data);
}

TEST(buffer, bytes_are_read_in_the_order_they_were_appended)
{
    append("one ");
    append("two ");
    append("three");
    expect("one two three");
}

TEST(buffer, consumed_bytes_leave_the_rest_in_front)
{
    append("one two");
    buffer_consume(&b, 4);
    expect("two");
    append(" three");
    expect("two three");
}

TEST(buffer, consuming_the_last_byte_frees_the_memory)
{
    append("one");
    buffer_consume(&b, 2);
    ck_assert_ptr_nonnull(b.data);
    buffer_consume(&b, 1);
    ck_assert(buffer_ok(&b));
    ck_assert_uint_eq(buffer_bytes(&b), 0);
    ck_assert_ptr_null(b.data);
}

TEST(buffer, appending_no_bytes_takes_no_memory)
{
    ck_assert_int_eq(buffer_append(&b, "", 0), 0);
    ck_assert_ptr_null(b.data);
}

TEST(buffer, consuming_no_bytes_of_an_empty_buffer_is_allowed)
{
    buffer_consume(&b, 0);
    ck_assert(buffer_ok(&b));
}

TEST(buffer, a_cleared_buffer_can_be_used_again)
{
    append("one");
    buffer_clear(&b);
    ck_assert_ptr_null(b.data);
    append("two");
    expect("two");
}

TEST(buffer, consumed_space_is_used_before_memory_is_allocated)
{
    char chunk[1024] = {0};
    size_t cap;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(buffer_append(&b, chunk, sizeof(chunk)), 0);
    cap = b.cap;
    for (int i = 0; i < 1000; i++) { /* never more than 3 KiB inside */
        buffer_consume(&b, 2 * sizeof(chunk));
        for (int j = 0; j < 2; j++)
            ck_assert_int_eq(buffer_append(&b, chunk, sizeof(chunk)), 0);
        ck_assert(buffer_ok(&b));
    }
    ck_assert_uint_eq(b.cap, cap);
}

TEST(buffer, a_size_that_overflows_is_refused_and_changes_nothing)
{
    append("one");
    ck_assert_int_eq(buffer_append(&b, "x", SIZE_MAX), -ENOMEM);
    expect("one");
    ck_assert_int_eq(buffer_append(&b, "x", SIZE_MAX / 2 + 1), -ENOMEM);
    expect("one");
}

TEST_ABORTS(buffer, consuming_more_than_the_buffer_holds_is_a_bug)
{
    append("one");
    buffer_consume(&b, 4);
}

/* A place for as many bytes as the model below ever holds. */
#define MODEL_BYTES (1 << 20)

TEST(buffer, any_mix_of_appends_and_consumes_keeps_the_bytes)
{
    uint8_t *model = malloc(MODEL_BYTES), chunk[5000];
    size_t head = 0, tail = 0;

    srand(7);
    while (tail < MODEL_BYTES - sizeof(chunk)) {
        size_t len = (size_t)rand() % sizeof(chunk);

        for (size_t i = 0; i < len; i++)
            chunk[i] = model[tail + i] = (uint8_t)rand();
        ck_assert_int_eq(buffer_append(&b, chunk, len), 0);
        tail += len;
        len = (size_t)rand() % (tail - head + 1);
        buffer_consume(&b, len);
        head += len;
        ck_assert(buffer_ok(&b));
        ck_assert_uint_eq(buffer_bytes(&b), tail - head);
        if (tail > head)
            ck_assert_mem_eq(buffer_front(&b), model + head, tail - head);
    }
    free(model);
}
