/* daemon/hand_over: packets of text with a state, between two processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/hand_over.h"
#include "support/process.h"
#include "support/suite.h"

static int ends[2];
static unsigned before;

static void setup(void)
{
    before = process_descriptors();
    ck_assert_int_eq(hand_over_open(ends), 0);
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(hand_over, setup, teardown);

TEST(hand_over, messages_keep_their_bounds)
{
    char text[HAND_OVER_TEXT_BYTES];
    int state_fd;

    ck_assert_int_eq(hand_over_send(ends[0], "one", -1), 0);
    ck_assert_int_eq(hand_over_send(ends[0], "two words", -1), 0);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_str_eq(text, "one");
    ck_assert_int_eq(state_fd, -1);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_str_eq(text, "two words");
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), -EAGAIN);
}

TEST(hand_over, a_long_text_is_cut)
{
    char text[HAND_OVER_TEXT_BYTES], longer[2 * HAND_OVER_TEXT_BYTES];
    int state_fd;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ck_assert_int_eq(hand_over_send(ends[0], longer, -1), 0);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_uint_eq(strlen(text), HAND_OVER_TEXT_BYTES - 1);
}

TEST(hand_over, a_state_goes_with_a_message)
{
    static const char state[] = "listen echo sessions_total=1\n";
    char text[HAND_OVER_TEXT_BYTES], *copy;
    int fd, state_fd;

    ck_assert_int_eq(hand_over_write_state(&fd, state, strlen(state)), 0);
    ck_assert_int_eq(hand_over_send(ends[0], "state", fd), 0);
    close(fd);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_int_ge(state_fd, 0);
    ck_assert_int_eq(fcntl(state_fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(hand_over_read_state(&copy, state_fd), 0);
    ck_assert_str_eq(copy, state);
    free(copy);
    close(state_fd);
}

TEST(hand_over, an_empty_state_is_a_state)
{
    char *copy;
    int fd;

    ck_assert_int_eq(hand_over_write_state(&fd, "", 0), 0);
    ck_assert_int_eq(hand_over_read_state(&copy, fd), 0);
    ck_assert_str_eq(copy, "");
    free(copy);
    close(fd);
}

TEST(hand_over, what_is_no_file_is_no_state)
{
    char *copy;

    ck_assert_int_eq(hand_over_read_state(&copy, ends[0]), -EINVAL);
    ck_assert_int_eq(hand_over_read_state(&copy, -1), -EINVAL);
}

TEST(hand_over, the_end_of_the_other_is_seen_after_its_messages)
{
    char text[HAND_OVER_TEXT_BYTES];
    int state_fd;

    ck_assert_int_eq(hand_over_send(ends[0], "last", -1), 0);
    close(ends[0]);
    ends[0] = -1;
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), -EPIPE);
    ck_assert_int_eq(hand_over_send(ends[1], "nobody reads this", -1), -EPIPE);
}

TEST(hand_over, a_full_queue_is_no_reason_to_wait)
{
    int rc;

    while ((rc = hand_over_send(ends[0], "state", -1)) == 0)
        ;
    ck_assert_int_eq(rc, -EAGAIN);
}

TEST(hand_over, the_first_word_counts)
{
    ck_assert_str_eq(hand_over_is("ready pid_file", "ready"), "pid_file");
    ck_assert_str_eq(hand_over_is("ready", "ready"), "");
    ck_assert_ptr_null(hand_over_is("readying", "ready"));
    ck_assert_ptr_null(hand_over_is("rea", "ready"));
    ck_assert_ptr_null(hand_over_is("", "ready"));
}

TEST(hand_over, its_own_descriptors_are_known_by_name)
{
    ck_assert(hand_over_is_own(HAND_OVER_NAME));
    ck_assert(hand_over_is_own(HAND_OVER_PID_FILE));
    ck_assert(!hand_over_is_own(HAND_OVER_LISTEN));
    ck_assert(!hand_over_is_own("reactord.socket"));
}
