/* system/signals: what comes is read, in order of number, and nothing is interrupted by it. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/signals.h"
#include "support/suite.h"

static const struct {
    int number;
    const char *name;
} answered[] = {
    {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
    {SIGHUP, "SIGHUP"},   {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},
};

static int fd;

static void setup(void)
{
    ck_assert_int_eq(signals_open(&fd), 0);
}

static void teardown(void)
{
    close(fd);
}

GROUP(signals, setup, teardown);

TEST_EACH(signals, a_signal_is_read_with_its_sender, ARRAY_LEN(answered))
{
    struct signal_notice notice;

    ck_assert_int_eq(kill(getpid(), answered[_i].number), 0);
    ck_assert_int_eq(signals_read(fd, &notice), 0);
    ck_assert_int_eq(notice.number, answered[_i].number);
    ck_assert_int_eq(notice.pid, getpid());
    ck_assert_uint_eq(notice.uid, getuid());
    ck_assert_int_eq(signals_read(fd, &notice), -EAGAIN);
}

TEST_EACH(signals, a_signal_has_its_name, ARRAY_LEN(answered))
{
    ck_assert_str_eq(signals_name(answered[_i].number), answered[_i].name);
}

TEST(signals, sigrtmin_is_read_with_its_name)
{
    struct signal_notice notice;

    ck_assert_int_eq(kill(getpid(), SIGRTMIN), 0);
    ck_assert_int_eq(signals_read(fd, &notice), 0);
    ck_assert_int_eq(notice.number, SIGRTMIN);
    ck_assert_str_eq(signals_name(notice.number), "SIGRTMIN");
    ck_assert_str_eq(signals_name(SIGRTMIN + 1), "signal");
}

TEST(signals, signal_sent_twice_may_be_read_once)
{
    struct signal_notice notice;

    ck_assert_int_eq(kill(getpid(), SIGUSR2), 0);
    ck_assert_int_eq(kill(getpid(), SIGUSR2), 0);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(signals_read(fd, &notice), 0);
    ck_assert_int_eq(notice.number, SIGUSR2); /* Linux gives the lowest number first */
    ck_assert_int_eq(signals_read(fd, &notice), 0);
    ck_assert_int_eq(notice.number, SIGTERM);
    ck_assert_int_eq(signals_read(fd, &notice), -EAGAIN);
}

TEST(signals, broken_pipe_is_an_error_number)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    ck_assert_int_eq(write(ends[1], "x", 1), -1);
    ck_assert_int_eq(errno, EPIPE);
    close(ends[1]);
}

TEST(signals, unhandled_signal_keeps_its_action)
{
    int status;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        raise(SIGVTALRM);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM);
}
