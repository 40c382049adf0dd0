/*
 * handover/session_message: what was sent is received, and a receiver can drop all that came with a
 * message.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "handover/session_message.h"
#include "support/process.h"
#include "support/suite.h"

static int ends[2];
static uint8_t buffer[SESSION_MESSAGE_INLINE_BYTES];

static void setup(void)
{
    ck_assert_int_eq(session_message_open(ends), 0);
}

static void teardown(void)
{
    close(ends[0]);
    close(ends[1]);
}

GROUP(message, setup, teardown);

/* Send ${n} bytes with two descriptors, and receive them. */
static void pass(struct session_message_body *body, size_t n)
{
    const struct session_message m = {.type = SESSION_MESSAGE_TAKEN, .number = 7};
    struct session_message got;
    uint8_t *data = calloc(1, n);

    *body = (struct session_message_body){
        .data = data, .n = n, .fds = {STDIN_FILENO, STDOUT_FILENO}, .n_fds = 2};
    ck_assert_int_eq(session_message_send(ends[0], &m, body), 0);
    free(data);
    ck_assert_int_eq(session_message_receive(ends[1], &got, body, buffer), 0);
    ck_assert_uint_eq(got.number, 7);
    ck_assert_uint_eq(body->n, n);
    ck_assert_uint_eq(body->n_fds, 2);
}

TEST(message, dropping_one_closes_its_descriptors)
{
    unsigned before = process_descriptors();
    struct session_message_body body;

    pass(&body, 100);
    ck_assert_ptr_eq(body.data, buffer);
    ck_assert_uint_eq(process_descriptors(), before + 2);
    session_message_drop(&body, buffer);
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST(message, dropping_a_long_one_frees_what_its_memory_file_held)
{
    unsigned before = process_descriptors();
    struct session_message_body body;

    pass(&body, SESSION_MESSAGE_INLINE_BYTES + 1);
    ck_assert_ptr_ne(body.data, buffer);
    session_message_drop(&body, buffer); /* the sanitizer reports what is not freed */
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST(message, what_a_process_sent_before_its_end_is_received_though_it_left_messages_unread)
{
    const struct session_message taken = {.type = SESSION_MESSAGE_TAKEN};
    struct session_message got;
    struct session_message_body body;

    ck_assert_int_eq(session_message_send(ends[0], &taken, NULL), 0);
    ck_assert_int_eq(session_message_send(ends[1], &taken, NULL), 0);
    ck_assert_int_eq(session_message_send(ends[1], &taken, NULL), 0);
    close(ends[1]);
    ends[1] = -1;
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(session_message_receive(ends[0], &got, &body, buffer), 0);
    ck_assert_int_eq(session_message_receive(ends[0], &got, &body, buffer), -EPIPE);
}
