/* daemon/log_target: that lines arrive where they should, and what happens when they cannot. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/log_target.h"
#include "daemon/privileges.h"
#include "support/journal.h"
#include "support/log_lines.h"
#include "support/suite.h"

#define STAMP "^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "

static char dir[] = "/tmp/reactord-test-log-XXXXXX";
static char path[64], rotated[64];
static struct log_target *target;

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/reactord.log", dir);
    snprintf(rotated, sizeof(rotated), "%s/reactord.log.1", dir);
    signal(SIGPIPE, SIG_IGN);
    unsetenv("JOURNAL_STREAM");
}

static void teardown(void)
{
    log_target_close(target);
    unlink(path);
    unlink(rotated);
    rmdir(dir);
}

static void open_target(const char *where)
{
    ck_assert_int_eq(log_target_open(&target, where, NULL), 0);
    log_set_sink(log_target_sink(target));
}

/* Up to a static buffer full of what ${fd} gives. */
static char *text_of(int fd)
{
    static char text[1 << 16];
    ssize_t n = read(fd, text, sizeof(text) - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static char *file_text(const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    char *text = text_of(fd);

    ck_assert_int_ge(fd, 0);
    close(fd);
    return text;
}

/* Put a pipe at stderr; returns its end to read from. */
static int pipe_at_stderr(void)
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[1]);
    return fds[0];
}

GROUP(file, setup, teardown);

TEST(file, new_file_is_private)
{
    struct stat st;

    umask(0);
    open_target(path);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
}

TEST(file, lines_are_appended_to_an_existing_file)
{
    open_target(path);
    log_info("first");
    log_target_close(target);
    open_target(path);
    log_info("second");
    log_lines_expect(file_text(path), "main: first\n.*main: second\n$");
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
    open_target(path);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many, marks), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    fd = open(path, O_RDONLY | O_CLOEXEC);
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
    open_target(path);
    log_info("old");
    ck_assert_int_eq(rename(path, rotated), 0);
    log_info("still old");
    ck_assert_int_eq(log_target_reopen(target), 0);
    log_info("new");
    log_lines_expect(file_text(rotated), "main: old\n.*main: still old\n$");
    log_lines_expect(file_text(path), STAMP "reactord\\[[0-9]+\\] info main: new\n$");
}

TEST(file, a_reopening_that_fails_keeps_the_old_file)
{
    open_target(path);
    ck_assert_int_eq(rename(path, rotated), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(log_target_reopen(target), -EISDIR);
    ck_assert_int_eq(rmdir(path), 0);
    log_info("text");
    log_lines_expect(file_text(rotated), "main: text\n$");
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

    open_target(path);
    ck_assert_int_eq(pthread_create(&thread, NULL, log_until_rotated, &written), 0);
    for (int i = 0; i < 50; i++) {
        usleep(200);
        ck_assert_int_eq(log_target_reopen(target), 0);
    }
    atomic_store(&rotation_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    FILE *file = fopen(path, "r");
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
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(log_target_open(&target, path, &nobody), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 65534);
}

TEST(file, existing_file_keeps_its_owner)
{
    struct stat st;

    if (geteuid() != 0)
        return;
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(log_target_open(&target, path, &nobody), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 0);
}

TEST(file, link_of_the_user_is_refused_at_reopening)
{
    char precious[80];
    struct stat st;

    if (geteuid() != 0)
        return;
    snprintf(precious, sizeof(precious), "%s.precious", dir);
    close(open(precious, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(chown(dir, 65534, 65534), 0);
    ck_assert_int_eq(log_target_open(&target, path, &nobody), 0);
    ck_assert_int_eq(rename(path, rotated), 0);
    ck_assert_int_eq(symlink(precious, path), 0);
    ck_assert_int_eq(log_target_reopen(target), -EACCES);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(link(precious, path), 0);
    ck_assert_int_eq(log_target_reopen(target), -EACCES);
    ck_assert_int_eq(stat(precious, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    unlink(precious);
}

TEST(file, a_path_that_cannot_be_opened_is_an_error)
{
    struct log_target *none;

    ck_assert_int_eq(log_target_open(&none, "/nonexistent/reactord.log", NULL), -ENOENT);
    ck_assert_int_eq(log_target_open(&none, dir, NULL), -EISDIR);
}

TEST(file, fifo_without_a_reader_is_an_error_and_does_not_block)
{
    struct log_target *none;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(log_target_open(&none, path, NULL), -ENXIO);
}

TEST(file, full_disk_loses_only_the_line)
{
    open_target("/dev/full");
    log_info("lost");
    log_info("lost");
}

static off_t file_bytes(void)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
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
    open_target(path);
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
    log_lines_expect(file_text(path), "main: line 1\n"
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
    log_lines_expect(file_text(path), "main: line 2\n"
                                      "[^\n]{10}\n"
                                      "[^\n]* main: line 3\n"
                                      "[^\n]* warning main: log: lines dropped: 3\n"
                                      "[^\n]* main: line 4\n$");
}

GROUP(stderr, setup, teardown);

TEST(stderr, closed_pipe_loses_only_the_line)
{
    int reader = pipe_at_stderr();

    open_target("stderr");
    close(reader);
    log_info("lost");
}

TEST(stderr, full_pipe_drops_lines_and_logs_their_number_with_the_next)
{
    int reader = pipe_at_stderr();

    open_target("stderr");
    ck_assert_int_ge(fcntl(reader, F_SETPIPE_SZ, PIPE_BUF), PIPE_BUF);
    for (int i = 0; i < 1000; i++) /* waiting would end in the time limit of this test */
        log_info("line %d of a thousand", i);
    (void)text_of(reader);
    log_info("through again");
    log_lines_expect(text_of(reader),
                     "info main: through again\n.* warning main: log: lines dropped: [0-9]+\n$");
}

TEST(stderr, whole_lines_are_written_to_a_pipe_as_far_as_it_has_capacity)
{
    static char lines[3 * PIPE_BUF];
    int reader = pipe_at_stderr();
    size_t len = 0;
    ssize_t n;

    open_target("stderr");
    while (len < 2 * PIPE_BUF)
        len += (size_t)sprintf(lines + len, "line %zu\n", len);
    ck_assert_int_ge(fcntl(reader, F_SETPIPE_SZ, PIPE_BUF), PIPE_BUF);
    n = log_target_put_lines(target, lines, len);
    ck_assert_int_gt(n, PIPE_BUF / 2);
    ck_assert_int_le(n, PIPE_BUF);
    ck_assert_int_eq(lines[n - 1], '\n');
    ck_assert_int_eq(log_target_put_lines(target, lines + n, len - (size_t)n), -EAGAIN);
    (void)text_of(reader);
    ck_assert_int_gt(log_target_put_lines(target, lines + n, len - (size_t)n), 0);
    close(reader);
    ck_assert_int_eq(log_target_put_lines(target, lines, 8), -EPIPE);
}

TEST(stderr, write_of_whole_lines_to_a_full_disk_returns_its_error)
{
    open_target("/dev/full");
    ck_assert_int_eq(log_target_put_lines(target, "text\n", 5), -ENOSPC);
}

TEST(stderr, whole_lines_are_written_to_a_file_in_one_call)
{
    static char lines[32 * 1024];

    memset(lines, '\n', sizeof(lines));
    open_target(path);
    ck_assert_int_eq(log_target_put_lines(target, lines, sizeof(lines)), sizeof(lines));
}

TEST(stderr, flags_of_a_shared_stderr_are_unchanged)
{
    int reader = pipe_at_stderr();

    open_target("stderr");
    log_info("text");
    log_lines_expect(text_of(reader), STAMP "reactord\\[[0-9]+\\] info main: text\n$");
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
    close(reader);
}

/* Regression: it was opened anew to append, and the others then wrote over what we had written. */
TEST(stderr, file_at_stderr_is_appended_behind_other_writers)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    close(fd);
    dprintf(STDERR_FILENO, "before\n");
    open_target("stderr");
    log_info("text");
    dprintf(STDERR_FILENO, "after\n");
    log_lines_expect(file_text(path), "^before\n2.* info main: text\nafter\n$");
}

TEST(stderr, stderr_connected_to_the_journal_gets_a_priority_and_no_time)
{
    int journal = journal_at_stderr();

    open_target("stderr");
    log_error("text");
    ck_assert_str_eq(text_of(journal), "<3>main: text\n");
    log_info("text");
    ck_assert_str_eq(text_of(journal), "<6>main: text\n");
    close(journal);
}

TEST(stderr, stderr_not_connected_to_the_journal_gets_the_time)
{
    int reader = pipe_at_stderr();

    setenv("JOURNAL_STREAM", "8:12345", 1);
    open_target("stderr");
    log_info("text");
    log_lines_expect(text_of(reader), STAMP);
    close(reader);
}

TEST(stderr, full_socket_at_stderr_does_not_block)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[1]);
    open_target("stderr");
    for (int i = 0; i < 10000; i++)
        log_info("line %d of ten thousand", i);
    close(fds[0]);
}
