/* log/log_target: the log in a file, its rotation, and a full disk. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "log/log_target.h"
#include "system/privileges.h"
#include "support/log_lines.h"
#include "support/log_targets.h"
#include "support/suite.h"

GROUP(file, log_targets_setup, log_targets_teardown);

TEST(file, new_file_is_private)
{
    struct stat st;

    umask(0);
    log_targets_open_target(log_targets.path);
    ck_assert_int_eq(stat(log_targets.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
}

TEST(file, lines_are_appended_to_an_existing_file)
{
    log_targets_open_target(log_targets.path);
    log_info("first");
    log_target_close(log_targets.target);
    log_targets_open_target(log_targets.path);
    log_info("second");
    log_lines_expect(log_targets_file_text(log_targets.path), "main: first\n.*main: second\n$");
}

#define THREADS 4
#define LINES   500

static void *log_many(void *arg)
{
    for (int i = 0; i < LINES; i++)
        log_info("%s", (const char *)arg);
    return NULL;
}

TEST(file, lines_of_many_threads_never_mix)
{
    static char text[THREADS * LINES * 256];
    pthread_t threads[THREADS];
    char marks[101];
    int lines = 0, fd;
    ssize_t n;

    memset(marks, 'm', sizeof(marks) - 1);
    marks[sizeof(marks) - 1] = '\0';
    log_targets_open_target(log_targets.path);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many, marks), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    fd = open(log_targets.path, O_RDONLY | O_CLOEXEC);
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    ck_assert_int_gt(n, 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        ck_assert_str_eq(strrchr(line, ' ') + 1, marks);
        lines++;
    }
    ck_assert_int_eq(lines, THREADS * LINES);
}

TEST(file, after_a_rotation_reopening_starts_a_new_file)
{
    log_targets_open_target(log_targets.path);
    log_info("old");
    ck_assert_int_eq(rename(log_targets.path, log_targets.rotated), 0);
    log_info("still old");
    ck_assert_int_eq(log_target_reopen(log_targets.target), 0);
    log_info("new");
    log_lines_expect(log_targets_file_text(log_targets.rotated), "main: old\n.*main: still old\n$");
    log_lines_expect(log_targets_file_text(log_targets.path),
                     STAMP "reactord\\[[0-9]+\\] info main: new\n$");
}

TEST(file, a_reopening_that_fails_keeps_the_old_file)
{
    log_targets_open_target(log_targets.path);
    ck_assert_int_eq(rename(log_targets.path, log_targets.rotated), 0);
    ck_assert_int_eq(mkdir(log_targets.path, 0700), 0);
    ck_assert_int_eq(log_target_reopen(log_targets.target), -EISDIR);
    ck_assert_int_eq(rmdir(log_targets.path), 0);
    log_info("text");
    log_lines_expect(log_targets_file_text(log_targets.rotated), "main: text\n$");
}

static atomic_bool rotation_over;

static void *log_until_rotated(void *arg)
{
    unsigned *written = arg;

    while (!atomic_load(&rotation_over)) {
        log_info("x");
        (*written)++;
    }
    return NULL;
}

TEST(file, no_line_is_lost_while_other_threads_log_and_the_file_is_reopened)
{
    unsigned written = 0, found = 0;
    pthread_t thread;
    int c;

    log_targets_open_target(log_targets.path);
    ck_assert_int_eq(pthread_create(&thread, NULL, log_until_rotated, &written), 0);
    for (int i = 0; i < 50; i++) {
        usleep(200);
        ck_assert_int_eq(log_target_reopen(log_targets.target), 0);
    }
    atomic_store(&rotation_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    FILE *file = fopen(log_targets.path, "r");
    ck_assert_ptr_nonnull(file);
    while ((c = getc(file)) != EOF)
        found += c == '\n';
    fclose(file);
    ck_assert_uint_eq(found, written);
}

static const struct privileges nobody = {.change = true, .uid = 65534, .gid = 65534};

TEST(file, file_we_created_is_given_to_the_user_we_become)
{
    struct stat st;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chmod(log_targets.dir, 0755), 0);
    ck_assert_int_eq(log_target_open(&log_targets.target, log_targets.path, &nobody), 0);
    ck_assert_int_eq(stat(log_targets.path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 65534);
}

TEST(file, existing_file_keeps_its_owner)
{
    struct stat st;

    if (geteuid() != 0)
        return;
    close(open(log_targets.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(chmod(log_targets.dir, 0755), 0);
    ck_assert_int_eq(log_target_open(&log_targets.target, log_targets.path, &nobody), 0);
    ck_assert_int_eq(stat(log_targets.path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 0);
}

TEST(file, link_of_the_user_is_refused_at_reopening)
{
    char precious[80];
    struct stat st;

    if (geteuid() != 0)
        return;
    snprintf(precious, sizeof(precious), "%s.precious", log_targets.dir);
    close(open(precious, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(chown(log_targets.dir, 65534, 65534), 0);
    ck_assert_int_eq(log_target_open(&log_targets.target, log_targets.path, &nobody), 0);
    ck_assert_int_eq(rename(log_targets.path, log_targets.rotated), 0);
    ck_assert_int_eq(symlink(precious, log_targets.path), 0);
    ck_assert_int_eq(log_target_reopen(log_targets.target), -EACCES);
    ck_assert_int_eq(unlink(log_targets.path), 0);
    ck_assert_int_eq(link(precious, log_targets.path), 0);
    ck_assert_int_eq(log_target_reopen(log_targets.target), -EACCES);
    ck_assert_int_eq(stat(precious, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    unlink(precious);
}

TEST(file, a_path_that_cannot_be_opened_is_an_error)
{
    struct log_target *none;

    ck_assert_int_eq(log_target_open(&none, "/nonexistent/reactord.log", NULL), -ENOENT);
    ck_assert_int_eq(log_target_open(&none, log_targets.dir, NULL), -EISDIR);
}

TEST(file, fifo_without_a_reader_is_an_error_and_does_not_block)
{
    struct log_target *none;

    ck_assert_int_eq(mkfifo(log_targets.path, 0600), 0);
    ck_assert_int_eq(log_target_open(&none, log_targets.path, NULL), -ENXIO);
}

TEST(file, full_disk_loses_only_the_line)
{
    log_targets_open_target("/dev/full");
    log_info("lost");
    log_info("lost");
}

static off_t file_bytes(void)
{
    struct stat st;

    ck_assert_int_eq(stat(log_targets.path, &st), 0);
    return st.st_size;
}

/* The disk has space for that many more bytes; RLIM_INFINITY: for all. */
static void leave_room(rlim_t bytes)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : (rlim_t)file_bytes() + bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Log a line of known length on a disk that fills up as its caller says; returns the length. */
static off_t open_on_small_disk(void)
{
    signal(SIGXFSZ, SIG_IGN);
    log_targets_open_target(log_targets.path);
    log_info("line 1");
    return file_bytes();
}

TEST(file, truncated_line_is_terminated_before_the_next_and_counted_as_dropped)
{
    off_t line_bytes = open_on_small_disk();

    leave_room((rlim_t)line_bytes - 3);
    log_info("line 2");
    for (int i = 0; i < 4; i++)
        log_info("lost");
    leave_room(RLIM_INFINITY);
    log_info("line 3");
    log_info("line 4");
    log_lines_expect(log_targets_file_text(log_targets.path),
                     "main: line 1\n"
                     "[^\n]* main: line\n"
                     "[^\n]* main: line 3\n"
                     "[^\n]* warning main: log: lines dropped: 5\n"
                     "[^\n]* main: line 4\n$");
}

/* Space for the line, but not for the one that tells. */
TEST(file, number_of_dropped_lines_is_logged_when_the_disk_has_space_again)
{
    off_t line_bytes = open_on_small_disk();

    leave_room(0);
    for (int i = 0; i < 3; i++)
        log_info("lost");
    leave_room((rlim_t)line_bytes + 10);
    log_info("line 2");
    leave_room(RLIM_INFINITY);
    log_info("line 3");
    log_info("line 4");
    log_lines_expect(log_targets_file_text(log_targets.path),
                     "main: line 2\n"
                     "[^\n]{10}\n"
                     "[^\n]* main: line 3\n"
                     "[^\n]* warning main: log: lines dropped: 3\n"
                     "[^\n]* main: line 4\n$");
}
