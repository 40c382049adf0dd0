/* upgrade/hand_over: packets of text with a state, between two processes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "upgrade/hand_over.h"
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

TEST(hand_over, message_boundaries_are_preserved)
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

TEST(hand_over, long_text_is_truncated)
{
    char text[HAND_OVER_TEXT_BYTES], longer[2 * HAND_OVER_TEXT_BYTES];
    int state_fd;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ck_assert_int_eq(hand_over_send(ends[0], longer, -1), 0);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_uint_eq(strlen(text), HAND_OVER_TEXT_BYTES - 1);
}

TEST(hand_over, text_is_sent_truncated_to_the_maximum)
{
    char longer[2 * HAND_OVER_TEXT_BYTES];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ck_assert_int_eq(hand_over_send(ends[0], longer, -1), 0);
    ck_assert_int_eq(recv(ends[1], longer, sizeof(longer), 0), HAND_OVER_TEXT_BYTES - 1);
}

/* From a process of another version. */
TEST(hand_over, message_that_is_too_long_does_not_overflow_the_text)
{
    char longer[2 * HAND_OVER_TEXT_BYTES], text[HAND_OVER_TEXT_BYTES + 1];
    int state_fd;

    memset(longer, 'x', sizeof(longer));
    memset(text, '?', sizeof(text));
    ck_assert_int_eq(send(ends[0], longer, sizeof(longer), 0), sizeof(longer));
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_uint_eq(strlen(text), HAND_OVER_TEXT_BYTES - 1);
    ck_assert_int_eq(text[HAND_OVER_TEXT_BYTES], '?');
}

TEST(hand_over, short_message_is_terminated_at_its_end)
{
    char text[HAND_OVER_TEXT_BYTES];
    int state_fd;

    memset(text, '?', sizeof(text));
    ck_assert_int_eq(send(ends[0], "short", 2, 0), 2);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_str_eq(text, "sh");
}

TEST(hand_over, message_with_two_descriptors_is_taken_without_any_and_leaks_none)
{
    char control[CMSG_SPACE(2 * sizeof(int))] = {0}, text[HAND_OVER_TEXT_BYTES];
    struct iovec data = {.iov_base = "state", .iov_len = 5};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    unsigned opened = process_descriptors();
    int state_fd;

    header->cmsg_len = CMSG_LEN(sizeof(ends));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(header), ends, sizeof(ends));
    ck_assert_int_eq(sendmsg(ends[0], &message, 0), 5);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), 0);
    ck_assert_int_eq(state_fd, -1);
    ck_assert_uint_eq(process_descriptors(), opened);
}

TEST(hand_over, empty_message_is_the_end_and_its_descriptor_is_closed)
{
    char text[HAND_OVER_TEXT_BYTES];
    unsigned opened = process_descriptors();
    int state_fd;

    ck_assert_int_eq(hand_over_send(ends[0], "", ends[0]), 0);
    ck_assert_int_eq(hand_over_receive(ends[1], text, &state_fd), -EPIPE);
    ck_assert_int_eq(state_fd, -1);
    ck_assert_uint_eq(process_descriptors(), opened);
}

TEST(hand_over, state_descriptor_is_passed_with_a_message)
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

TEST(hand_over, state_may_be_written_by_a_stream_and_have_any_bytes)
{
    unsigned opened = process_descriptors();
    char *copy;
    size_t n;
    FILE *f;
    int fd;

    ck_assert_int_eq(hand_over_create_state(&fd, &f), 0);
    ck_assert_uint_eq(fwrite("a\0b", 1, 3, f), 3);
    ck_assert_int_eq(hand_over_finish_state(fd, f), 0);
    ck_assert_int_eq(hand_over_read_bytes(&copy, &n, fd), 0);
    ck_assert_uint_eq(n, 3);
    ck_assert_mem_eq(copy, "a\0b", 4);
    free(copy);
    close(fd);
    ck_assert_uint_eq(process_descriptors(), opened);
}

TEST(hand_over, empty_state_is_valid)
{
    char *copy;
    int fd;

    ck_assert_int_eq(hand_over_write_state(&fd, "", 0), 0);
    ck_assert_int_eq(hand_over_read_state(&copy, fd), 0);
    ck_assert_str_eq(copy, "");
    free(copy);
    close(fd);
}

TEST(hand_over, state_that_is_no_file_is_refused)
{
    char *copy;

    ck_assert_int_eq(hand_over_read_state(&copy, ends[0]), -EINVAL);
    ck_assert_int_eq(hand_over_read_state(&copy, -1), -EINVAL);
}

#define STATE_MAX (128 << 20)

TEST(hand_over, state_is_read_up_to_its_maximum_and_refused_beyond)
{
    char *copy;
    int fd;

    ck_assert_int_eq(hand_over_write_state(&fd, "text", 4), 0);
    ck_assert_int_eq(ftruncate(fd, STATE_MAX + 1), 0);
    ck_assert_int_eq(hand_over_read_state(&copy, fd), -EINVAL);
    ck_assert_int_eq(ftruncate(fd, STATE_MAX), 0);
    ck_assert_int_eq(hand_over_read_state(&copy, fd), 0);
    ck_assert_str_eq(copy, "text");
    ck_assert_int_eq(copy[STATE_MAX], '\0');
    free(copy);
    close(fd);
}

/* Files of sysfs are shorter than they say. */
TEST(hand_over, a_state_that_ends_before_its_size_is_refused)
{
    int fd = open("/sys/kernel/uevent_seqnum", O_RDONLY | O_CLOEXEC);
    char *copy;

    if (fd < 0)
        return;
    ck_assert_int_eq(hand_over_read_state(&copy, fd), -EINVAL);
    close(fd);
}

TEST(hand_over, a_state_that_cannot_be_read_is_refused_with_the_reason)
{
    int fd = open("/dev/shm", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    char *copy;

    if (fd < 0)
        return;
    ck_assert_int_eq(write(fd, "text", 4), 4);
    ck_assert_int_eq(hand_over_read_state(&copy, fd), -EBADF);
    close(fd);
}

TEST(hand_over, state_that_cannot_be_written_completely_is_not_handed_over)
{
    static const char state[] = "listen echo sessions_total=1\n";
    struct rlimit limit;
    int fd = -1;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = sizeof(state) / 2;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(hand_over_write_state(&fd, state, strlen(state)), -EFBIG);
    ck_assert_int_eq(fd, -1);
}

TEST(hand_over, end_of_file_of_the_peer_is_seen_after_its_messages)
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

TEST(hand_over, full_queue_does_not_block)
{
    int rc;

    while ((rc = hand_over_send(ends[0], "state", -1)) == 0)
        ;
    ck_assert_int_eq(rc, -EAGAIN);
}

TEST(hand_over, message_is_recognised_by_its_first_word)
{
    ck_assert_str_eq(hand_over_is("ready pid_file", "ready"), "pid_file");
    ck_assert_str_eq(hand_over_is("ready", "ready"), "");
    ck_assert_ptr_null(hand_over_is("readying", "ready"));
    ck_assert_ptr_null(hand_over_is("rea", "ready"));
    ck_assert_ptr_null(hand_over_is("", "ready"));
}

TEST(hand_over, descriptors_of_the_hand_over_are_recognised_by_name)
{
    ck_assert(hand_over_is_own(HAND_OVER_NAME));
    ck_assert(hand_over_is_own(HAND_OVER_PID_FILE));
    ck_assert(!hand_over_is_own(HAND_OVER_LISTEN));
    ck_assert(!hand_over_is_own("reactord.socket"));
}
