/* system/launch: what a program gets, how its end is told, and that none stays behind. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/must.h"
#include "system/launch.h"
#include "support/fault.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/until.h"

static int out[2]; /* what the program writes to descriptor 3 */
static unsigned before;
static sigset_t mask;
static char text[LAUNCH_RESULT_BYTES];

static void setup(void)
{
    before = process_descriptors();
    ck_assert_int_eq(pipe(out), 0);
    sigemptyset(&mask);
}

static void teardown(void)
{
    close(out[0]);
    if (out[1] >= 0)
        close(out[1]);
    ck_assert_uint_eq(process_descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    ck_assert_int_eq(errno, ECHILD);
}

static int start_at(struct launch *l, const char *path, const char *script)
{
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    struct launch_descriptor list[] = {{.fd = out[1], .name = "first"},
                                       {.fd = out[0], .name = "second"}};
    struct launch_conf conf = {
        .path = path, .argv = argv, .mask = &mask, .descriptors = list, .n = 2};

    return launch_start(l, &conf);
}

static struct launch start(const char *script)
{
    struct launch l;

    ck_assert_int_eq(start_at(&l, "/bin/sh", script), 0);
    return l;
}

static const char *result(struct launch *l)
{
    struct pollfd ready = {.fd = l->report_fd, .events = POLLIN};

    ck_assert_int_eq(poll(&ready, 1, UNTIL_LIMIT_NS / 1000000), 1);
    return launch_result(l, text, sizeof(text));
}

/* All that the program has written to descriptor 3, when it has ended. */
static const char *written(struct launch *l)
{
    static char bytes[1024];
    ssize_t n;

    ck_assert_str_eq(result(l), "exited with status 0");
    launch_close(l);
    n = read(out[0], bytes, sizeof(bytes) - 1);
    ck_assert_int_ge(n, 0);
    bytes[n] = '\0';
    return bytes;
}

GROUP(launch, setup, teardown);

TEST(launch, a_program_gets_its_descriptors_by_number_and_name)
{
    struct launch l;
    char expected[64];

    setenv("LISTEN_FDS", "9", 1);
    setenv("LISTEN_PID", "1", 1);
    setenv("WATCHDOG_USEC", "1000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    l = start("echo $LISTEN_FDS $LISTEN_FDNAMES $((LISTEN_PID - $$)) $((WATCHDOG_PID - $$)) "
              "$$ $WATCHDOG_USEC >&3");
    snprintf(expected, sizeof(expected), "2 first:second 0 0 %ld 1000\n", (long)l.pid);
    ck_assert_str_eq(written(&l), expected);
}

TEST(launch, program_gets_no_watchdog_variables_without_a_watchdog)
{
    struct launch l;

    unsetenv("WATCHDOG_USEC");
    setenv("WATCHDOG_PID", "1", 1);
    l = start("echo \"<$WATCHDOG_PID>\" >&3");
    ck_assert_str_eq(written(&l), "<>\n");
}

TEST(launch, program_gets_no_other_descriptors)
{
    struct launch l;
    int other = dup(out[0]); /* without FD_CLOEXEC */

    l = start("exec ls /proc/self/fd >&3"); /* 5 is the directory */
    ck_assert_str_eq(written(&l), "0\n1\n2\n3\n4\n5\n");
    close(other);
}

/* Without 32 and 33, which are the C library's, and may be ignored by what started the test. */
static uint64_t usual_signals(const char **line)
{
    char *end;
    uint64_t signals = strtoull(*line, &end, 16);

    *line = end;
    return signals & ~(UINT64_C(3) << 31);
}

TEST(launch, program_gets_default_signal_actions_and_mask)
{
    static const char pipe_is_default[] =
        "while read key value; do case $key in SigIgn:|SigBlk:) echo $value >&3;; esac; done "
        "< /proc/$$/status";
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
    sigset_t blocked, old;
    const char *signals;
    struct launch l;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, &old), 0);
    for (int number = 1; number < SIGRTMIN; number++)
        (void)sigaction(number, &usual, NULL); /* the test may be started without some */
    ck_assert_int_eq(sigaction(SIGPIPE, &ignore, NULL), 0);
    ck_assert_int_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
    l = start(pipe_is_default);
    signals = written(&l);
    ck_assert_uint_eq(usual_signals(&signals), 0);
    ck_assert_uint_eq(usual_signals(&signals), 0);
    ck_assert_int_eq(sigaction(SIGPIPE, &usual, NULL), 0);
    ck_assert_int_eq(sigaction(SIGXFSZ, &usual, NULL), 0);
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

static const struct {
    const char *path;
    const char *script;
    const char *result;
} results[] = {
    {"/bin/sh", "exit 0", "exited with status 0"},
    {"/bin/sh", "exit 7", "exited with status 7"},
    {"/bin/sh", "kill -SEGV $$", "killed by signal 11 (Segmentation fault)"},
    {"/nowhere/sh", "", "cannot be executed: No such file or directory"},
    {"/etc/passwd", "", "cannot be executed: Permission denied"},
    {"/", "", "cannot be executed: Permission denied"},
};

TEST_EACH(launch, end_of_the_program_is_reported, ARRAY_LEN(results))
{
    struct launch l;

    ck_assert_int_eq(start_at(&l, results[_i].path, results[_i].script), 0);
    ck_assert_str_eq(result(&l), results[_i].result);
    launch_close(&l);
}

TEST(launch, a_program_that_runs_is_killed)
{
    struct launch l = start("exec sleep 600");

    ck_assert_str_eq(launch_result(&l, text, sizeof(text)), "runs");
    launch_kill(&l);
    ck_assert_str_eq(result(&l), "killed by signal 9 (Killed)");
    launch_close(&l);
}

TEST(launch, released_program_keeps_running)
{
    struct launch l = start("exec sleep 600");
    pid_t pid = l.pid;

    launch_close(&l);
    ck_assert_int_eq(kill(pid, 0), 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
}

static int attempt(void *cookie)
{
    struct launch l;
    int rc = start_at(&l, "/bin/sh", "exit 0");

    (void)cookie;
    if (rc == 0)
        launch_close(&l);
    return rc;
}

TEST(launch, without_memory_no_program_is_started)
{
    ck_assert_uint_ge(fault_each_allocation(attempt, NULL), 2);
}

TEST(launch, without_descriptors_no_program_is_started)
{
    struct launch l;

    process_allow_descriptors(1);
    ck_assert_int_eq(start_at(&l, "/bin/sh", "exit 0"), -EMFILE);
    process_allow_any_descriptors();
}
