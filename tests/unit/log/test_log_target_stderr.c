/* log/log_target: the log at stderr: pipes, files, sockets and the journal. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "log/log_target.h"
#include "support/journal.h"
#include "support/log_lines.h"
#include "support/log_targets.h"
#include "support/suite.h"

/* Put a pipe at stderr; returns its end to read from. */
static int pipe_at_stderr(void)
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[1]);
    return fds[0];
}

GROUP(stderr, log_targets_setup, log_targets_teardown);

TEST(stderr, closed_pipe_loses_only_the_line)
{
    int reader = pipe_at_stderr();

    log_targets_open_target("stderr");
    close(reader);
    log_info("lost");
}

TEST(stderr, full_pipe_drops_lines_and_logs_their_number_with_the_next)
{
    int reader = pipe_at_stderr();

    log_targets_open_target("stderr");
    ck_assert_int_ge(fcntl(reader, F_SETPIPE_SZ, PIPE_BUF), PIPE_BUF);
    for (int i = 0; i < 1000; i++) /* waiting would end in the time limit of this test */
        log_info("line %d of a thousand", i);
    (void)log_targets_text_of(reader);
    log_info("through again");
    log_lines_expect(log_targets_text_of(reader),
                     "info main: through again\n.* warning main: log: lines dropped: [0-9]+\n$");
}

TEST(stderr, whole_lines_are_written_to_a_pipe_as_far_as_it_has_capacity)
{
    static char lines[3 * PIPE_BUF];
    int reader = pipe_at_stderr();
    size_t len = 0;
    ssize_t n;

    log_targets_open_target("stderr");
    while (len < 2 * PIPE_BUF)
        len += (size_t)sprintf(lines + len, "line %zu\n", len);
    ck_assert_int_ge(fcntl(reader, F_SETPIPE_SZ, PIPE_BUF), PIPE_BUF);
    n = log_target_put_lines(log_targets.target, lines, len);
    ck_assert_int_gt(n, PIPE_BUF / 2);
    ck_assert_int_le(n, PIPE_BUF);
    ck_assert_int_eq(lines[n - 1], '\n');
    ck_assert_int_eq(log_target_put_lines(log_targets.target, lines + n, len - (size_t)n), -EAGAIN);
    (void)log_targets_text_of(reader);
    ck_assert_int_gt(log_target_put_lines(log_targets.target, lines + n, len - (size_t)n), 0);
    close(reader);
    ck_assert_int_eq(log_target_put_lines(log_targets.target, lines, 8), -EPIPE);
}

TEST(stderr, write_of_whole_lines_to_a_full_disk_returns_its_error)
{
    log_targets_open_target("/dev/full");
    ck_assert_int_eq(log_target_put_lines(log_targets.target, "text\n", 5), -ENOSPC);
}

TEST(stderr, whole_lines_are_written_to_a_file_in_one_call)
{
    static char lines[32 * 1024];

    memset(lines, '\n', sizeof(lines));
    log_targets_open_target(log_targets.path);
    ck_assert_int_eq(log_target_put_lines(log_targets.target, lines, sizeof(lines)), sizeof(lines));
}

TEST(stderr, flags_of_a_shared_stderr_are_unchanged)
{
    int reader = pipe_at_stderr();

    log_targets_open_target("stderr");
    log_info("text");
    log_lines_expect(log_targets_text_of(reader), STAMP "reactord\\[[0-9]+\\] info main: text\n$");
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
    close(reader);
}

/* Regression: it was opened anew to append, and the others then wrote over what we had written. */
TEST(stderr, file_at_stderr_is_appended_behind_other_writers)
{
    int fd = open(log_targets.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    close(fd);
    dprintf(STDERR_FILENO, "before\n");
    log_targets_open_target("stderr");
    log_info("text");
    dprintf(STDERR_FILENO, "after\n");
    log_lines_expect(log_targets_file_text(log_targets.path),
                     "^before\n2.* info main: text\nafter\n$");
}

TEST(stderr, stderr_connected_to_the_journal_gets_a_priority_and_no_time)
{
    int journal = journal_at_stderr();

    log_targets_open_target("stderr");
    log_error("text");
    ck_assert_str_eq(log_targets_text_of(journal), "<3>main: text\n");
    log_info("text");
    ck_assert_str_eq(log_targets_text_of(journal), "<6>main: text\n");
    close(journal);
}

TEST(stderr, stderr_not_connected_to_the_journal_gets_the_time)
{
    int reader = pipe_at_stderr();

    setenv("JOURNAL_STREAM", "8:12345", 1);
    log_targets_open_target("stderr");
    log_info("text");
    log_lines_expect(log_targets_text_of(reader), STAMP);
    close(reader);
}

TEST(stderr, full_socket_at_stderr_does_not_block)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[1]);
    log_targets_open_target("stderr");
    for (int i = 0; i < 10000; i++)
        log_info("line %d of ten thousand", i);
    close(fds[0]);
}
