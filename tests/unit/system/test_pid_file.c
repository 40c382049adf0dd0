/* system/pid_file: who may have the file, and what stays of it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/pid_file.h"
#include "support/log_lines.h"
#include "support/rounds.h"
#include "support/suite.h"

static char dir[] = "/tmp/reactord-test-pid-XXXXXX";
static char path[64], other[64];

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/reactord.pid", dir);
    snprintf(other, sizeof(other), "%s/other", dir);
    log_lines_capture(LOG_LEVEL_DEBUG);
}

static void teardown(void)
{
    unlink(path);
    unlink(other);
    rmdir(dir);
}

static void write_file(const char *name, const char *content)
{
    FILE *file = fopen(name, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void assert_content(const char *name, const char *expected)
{
    char content[128];
    FILE *file = fopen(name, "r");
    size_t n;

    ck_assert_ptr_nonnull(file);
    n = fread(content, 1, sizeof(content) - 1, file);
    content[n] = '\0';
    fclose(file);
    ck_assert_str_eq(content, expected);
}

static void assert_holds_our_pid(void)
{
    char expected[32];

    snprintf(expected, sizeof(expected), "%ld\n", (long)getpid());
    assert_content(path, expected);
}

static bool exists(const char *name)
{
    return access(name, F_OK) == 0;
}

GROUP(pid_file, setup, teardown);

TEST(pid_file, file_has_our_process_id_until_it_is_removed)
{
    struct pid_file *pf;
    struct stat st;

    ck_assert_int_eq(pid_file_create(&pf, path, NULL), 0);
    assert_holds_our_pid();
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600); /* whoever can open it can lock it */
    pid_file_remove(pf);
    ck_assert(!exists(path));
}

TEST(pid_file, second_daemon_reports_the_running_process)
{
    struct pid_file *pf, *second;
    char expected[128];

    ck_assert_int_eq(pid_file_create(&pf, path, NULL), 0);
    ck_assert_int_eq(pid_file_create(&second, path, NULL), -EBUSY);
    snprintf(expected, sizeof(expected), "pid file %s: already running as pid %ld", path,
             (long)getpid());
    ck_assert_str_eq(log_lines_last(), expected);
    assert_holds_our_pid();
    pid_file_remove(pf);
}

TEST(pid_file, file_that_cannot_be_written_does_not_stay)
{
    struct rlimit limit;
    struct pid_file *pf;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(pid_file_create(&pf, path, NULL), -EFBIG);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert(!exists(path));
}

/* Of a process that runs, but holds no lock; empty. */
static const char *const left_behind[] = {"1\n", ""};

TEST_EACH(pid_file, stale_or_empty_file_is_taken_over, 2)
{
    struct pid_file *pf;

    write_file(path, left_behind[_i]);
    ck_assert_int_eq(pid_file_create(&pf, path, NULL), 0);
    assert_holds_our_pid();
    pid_file_remove(pf);
}

TEST(pid_file, file_taken_over_cannot_be_locked_by_other_users)
{
    struct pid_file *pf;
    struct stat st;

    write_file(path, "1\n");
    ck_assert_int_eq(chmod(path, 0644), 0); /* as it used to be */
    ck_assert_int_eq(pid_file_create(&pf, path, NULL), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    pid_file_remove(pf);
}

TEST(pid_file, lock_ends_with_the_process_that_held_it)
{
    struct pid_file *pf;
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(pid_file_create(&pf, path, NULL) == 0 ? 0
                                                    : 1); /* as a crash would: nothing is removed */
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(exists(path));
    ck_assert_int_eq(pid_file_create(&pf, path, NULL), 0);
    assert_holds_our_pid();
    pid_file_remove(pf);
}

TEST(pid_file, a_file_that_is_no_pid_file_is_left_alone)
{
    static const char *const contents[] = {
        "[reactord]\nuser = nobody\n",
        "12 34\n",
        "-1\n",
        "99999999999\n",
        "0000000000000000000000000000000000000000000000001\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        struct pid_file *pf;

        write_file(path, contents[i]);
        ck_assert_int_eq(pid_file_create(&pf, path, NULL), -EINVAL);
        assert_content(path, contents[i]);
    }
}

TEST(pid_file, a_symbolic_link_is_not_followed)
{
    struct pid_file *pf;

    write_file(other, "");
    ck_assert_int_eq(symlink(other, path), 0);
    ck_assert_int_eq(pid_file_create(&pf, path, NULL), -ELOOP);
    assert_content(other, "");
}

TEST(pid_file, a_fifo_is_refused_without_waiting)
{
    struct pid_file *pf;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pid_file_create(&pf, path, NULL), -EINVAL);
}

TEST(pid_file, missing_directory_is_an_error_with_the_path)
{
    struct pid_file *pf;

    ck_assert_int_eq(pid_file_create(&pf, "/nonexistent/reactord.pid", NULL), -ENOENT);
    ck_assert_str_eq(log_lines_last(),
                     "pid file /nonexistent/reactord.pid: No such file or directory");
}

TEST(pid_file, file_replaced_by_another_is_not_removed)
{
    struct pid_file *pf;

    ck_assert_int_eq(pid_file_create(&pf, path, NULL), 0);
    write_file(other, "1\n");
    ck_assert_int_eq(rename(other, path), 0);
    pid_file_remove(pf);
    assert_content(path, "1\n");
}

TEST(pid_file, in_a_directory_without_write_permission_the_file_is_emptied)
{
    struct pid_file *pf;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(pid_file_create(&pf, path, NULL), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    pid_file_remove(pf);
    ck_assert_int_eq(seteuid(0), 0);
    assert_content(path, "");
}

#define ROUNDS 3000

/* Whoever has the file finds its own process id there, whatever others just removed. */
static void have_and_leave(void)
{
    struct pid_file *pf;

    EACH_ROUND(i, ROUNDS)
    {
        int rc = pid_file_create(&pf, path, NULL);

        if (rc == -EBUSY || rc == -EAGAIN)
            continue;
        ck_assert_int_eq(rc, 0);
        assert_holds_our_pid();
        pid_file_remove(pf);
    }
}

TEST(pid_file, file_names_its_owner_while_processes_compete_for_it)
{
    pid_t children[3];
    int status;

    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        if (children[i] == 0) {
            have_and_leave();
            _exit(0);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ck_assert(!exists(path));
}

TEST(pid_file, removing_null_is_allowed)
{
    pid_file_remove(NULL);
}

/* ---- another process takes over ---- */

/* As that process has it: its own descriptor of the open file. */
static struct pid_file *adopt(const struct pid_file *from)
{
    struct pid_file *pf;

    ck_assert_int_eq(pid_file_adopt(&pf, path, dup(pid_file_descriptor(from))), 0);
    return pf;
}

TEST(pid_file, adopted_file_is_not_ours_until_it_is_claimed)
{
    struct pid_file *old, *new;

    ck_assert_int_eq(pid_file_create(&old, path, NULL), 0);
    new = adopt(old);
    ck_assert(pid_file_is_adopted(new) && !pid_file_is_adopted(old));
    pid_file_remove(new);
    assert_holds_our_pid();
    pid_file_remove(old);
    ck_assert(!exists(path));
}

TEST(pid_file, file_given_away_names_the_successor_and_stays)
{
    struct pid_file *old, *new;

    ck_assert_int_eq(pid_file_create(&old, path, NULL), 0);
    new = adopt(old);
    pid_file_give(old, 4711);
    assert_content(path, "4711\n");
    pid_file_remove(old);
    assert_content(path, "4711\n");
    pid_file_claim(new);
    assert_holds_our_pid();
    pid_file_remove(new);
    ck_assert(!exists(path));
}

TEST(pid_file, file_not_adopted_by_the_successor_is_removed)
{
    struct pid_file *old;

    ck_assert_int_eq(pid_file_create(&old, path, NULL), 0);
    pid_file_give(old, 0);
    ck_assert(!exists(path));
    pid_file_remove(old);
}

TEST(pid_file, file_given_away_is_free_when_the_successor_has_ended)
{
    struct pid_file *old, *new, *next;

    ck_assert_int_eq(pid_file_create(&old, path, NULL), 0);
    new = adopt(old);
    pid_file_give(old, 4711);
    ck_assert_int_eq(pid_file_create(&next, path, NULL), -EBUSY);
    pid_file_claim(new);
    pid_file_remove(new);
    ck_assert_int_eq(pid_file_create(&next, path, NULL), 0);
    pid_file_remove(old);
    assert_holds_our_pid();
    pid_file_remove(next);
}

TEST(pid_file, another_file_at_the_path_is_not_adopted)
{
    struct pid_file *old, *new;

    ck_assert_int_eq(pid_file_create(&old, path, NULL), 0);
    ck_assert_int_eq(rename(path, other), 0);
    write_file(path, "1\n");
    ck_assert_int_eq(pid_file_adopt(&new, path, pid_file_descriptor(old)), -ESTALE);
    pid_file_remove(old);
    assert_content(path, "1\n");
}

TEST(pid_file, without_a_file_there_is_nothing_to_give_or_claim)
{
    pid_file_give(NULL, 1);
    pid_file_claim(NULL);
    ck_assert(!pid_file_is_adopted(NULL));
    ck_assert_int_eq(pid_file_descriptor(NULL), -1);
}
