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

START_TEST(a_new_buffer_is_empty_and_owns_no_memory)
{
    ck_assert(buffer_ok(&b));
    ck_assert_uint_eq(buffer_bytes(&b), 0);
    ck_assert_ptr_null(b.data);
}
END_TEST

START_TEST(bytes_come_out_in_the_order_they_went_in)
{
    append("one ");
    append("two ");
    append("three");
    expect("one two three");
}
END_TEST

START_TEST(consumed_bytes_leave_the_rest_in_front)
{
    append("one two");
    buffer_consume(&b, 4);
    expect("two");
    append(" three");
    expect("two three");
}
END_TEST

START_TEST(the_last_byte_takes_the_memory_with_it)
{
    append("one");
    buffer_consume(&b, 2);
    ck_assert_ptr_nonnull(b.data);
    buffer_consume(&b, 1);
    ck_assert(buffer_ok(&b));
    ck_assert_uint_eq(buffer_bytes(&b), 0);
    ck_assert_ptr_null(b.data);
}
END_TEST

START_TEST(appending_nothing_takes_no_memory)
{
    ck_assert_int_eq(buffer_append(&b, "", 0), 0);
    ck_assert_ptr_null(b.data);
}
END_TEST

START_TEST(consuming_nothing_of_nothing_is_allowed)
{
    buffer_consume(&b, 0);
    ck_assert(buffer_ok(&b));
}
END_TEST

START_TEST(a_cleared_buffer_can_be_used_again)
{
    append("one");
    buffer_clear(&b);
    ck_assert_ptr_null(b.data);
    append("two");
    expect("two");
}
END_TEST

START_TEST(room_won_at_the_front_is_used_before_more_is_taken)
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
END_TEST

START_TEST(a_size_that_overflows_is_refused_and_changes_nothing)
{
    append("one");
    ck_assert_int_eq(buffer_append(&b, "x", SIZE_MAX), -ENOMEM);
    expect("one");
    ck_assert_int_eq(buffer_append(&b, "x", SIZE_MAX / 2 + 1), -ENOMEM);
    expect("one");
}
END_TEST

START_TEST(consuming_more_than_there_is_is_a_bug)
{
    append("one");
    buffer_consume(&b, 4);
}
END_TEST

/* A place for as many bytes as the model below ever holds. */
#define MODEL_BYTES (1 << 20)

START_TEST(any_mix_of_appends_and_consumes_keeps_the_bytes)
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
END_TEST

int main(void)
{
    Suite *suite = suite_create("base/buffer");
    TCase *tc = suite_group(suite, "buffer");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_new_buffer_is_empty_and_owns_no_memory);
    tcase_add_test(tc, bytes_come_out_in_the_order_they_went_in);
    tcase_add_test(tc, consumed_bytes_leave_the_rest_in_front);
    tcase_add_test(tc, the_last_byte_takes_the_memory_with_it);
    tcase_add_test(tc, appending_nothing_takes_no_memory);
    tcase_add_test(tc, consuming_nothing_of_nothing_is_allowed);
    tcase_add_test(tc, a_cleared_buffer_can_be_used_again);
    tcase_add_test(tc, room_won_at_the_front_is_used_before_more_is_taken);
    tcase_add_test(tc, a_size_that_overflows_is_refused_and_changes_nothing);
    tcase_add_test(tc, any_mix_of_appends_and_consumes_keeps_the_bytes);
    tcase_add_test_raise_signal(tc, consuming_more_than_there_is_is_a_bug, SIGABRT);
    return suite_run(suite);
}
