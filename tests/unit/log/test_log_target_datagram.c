/*
 * log/log_target: lines to syslog and the journal. The test poses as their daemon, in a mount
 * namespace of its own; where that is not permitted the cases do nothing.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "log/log_target.h"
#include "support/journal.h"
#include "support/log_lines.h"
#include "support/suite.h"

static struct log_target *target;

static void teardown(void)
{
    log_target_close(target);
}

static void open_target(const char *where)
{
    ck_assert_int_eq(log_target_open(&target, where, NULL), 0);
    log_set_sink(log_target_sink(target));
}

/* The next datagram, "" for none. */
static const char *text_of(int fd)
{
    static char text[1 << 13];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

/*
 * Listen at ${socket_path}, under ${mount_point}. Returns the socket, or -1 where that is not
 * permitted.
 */
static int pose_as_log_daemon(const char *socket_path, const char *dir_path,
                              const char *mount_point)
{
    const struct timeval patience = {.tv_sec = 2};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", mount_point, "tmpfs", 0, NULL) < 0)
        return -1;
    if (strcmp(dir_path, mount_point) != 0) {
        ck_assert_int_eq(mkdir("/run/systemd", 0755), 0);
        ck_assert_int_eq(mkdir(dir_path, 0755), 0);
    }
    strcpy(address.sun_path, socket_path);
    unlink(socket_path);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

GROUP(datagram, NULL, teardown);

TEST(datagram, the_journal_gets_each_line_as_a_datagram_of_fields)
{
    int fd = pose_as_log_daemon("/run/systemd/journal/socket", "/run/systemd/journal", "/run");

    if (fd < 0)
        return;
    open_target("journal");
    log_warning("text");
    log_lines_expect(text_of(fd), "^PRIORITY=4\n.*\nMESSAGE=text\n$");
}

TEST(datagram, syslog_gets_each_line_as_a_datagram)
{
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev");

    if (fd < 0)
        return;
    open_target("syslog");
    log_notice("text");
    log_notice("more");
    log_lines_expect(text_of(fd), "^<29>.* main: text$");
    log_lines_expect(text_of(fd), "^<29>.* main: more$");
}

TEST(datagram, each_whole_line_is_a_message_and_is_not_escaped_again)
{
    static const char lines[] = "{\"a\":\"\\u0001\"}\nsecond\n";
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev");

    if (fd < 0)
        return;
    open_target("syslog");
    ck_assert_int_eq(log_target_put_lines(target, lines, sizeof(lines) - 1), sizeof(lines) - 1);
    log_lines_expect(text_of(fd), "^<30>.* reactord\\[[0-9]+\\]: \\{\"a\":\"\\\\u0001\"\\}$");
    log_lines_expect(text_of(fd), "^<30>.*: second$");
}

TEST(datagram, whole_lines_refused_by_the_log_daemon_stay_with_the_caller)
{
    char lines[100 * 8 + 1] = "";
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev");
    ssize_t n = 0;
    unsigned taken = 0;

    if (fd < 0)
        return;
    open_target("syslog");
    for (unsigned i = 0; i < 100; i++)
        strcat(lines, "line 77\n");
    while ((n = log_target_put_lines(target, lines, sizeof(lines) - 1)) > 0) {
        ck_assert_int_eq(n % 8, 0);
        taken += (unsigned)n / 8;
    }
    ck_assert_int_eq(n, -EAGAIN);
    for (; taken > 0; taken--)
        log_lines_expect(text_of(fd), ": line 77$");
}

TEST(datagram, whole_lines_for_the_journal_are_fields)
{
    int fd = pose_as_log_daemon("/run/systemd/journal/socket", "/run/systemd/journal", "/run");

    if (fd < 0)
        return;
    open_target("journal");
    ck_assert_int_eq(log_target_put_lines(target, "text\n", 5), 5);
    log_lines_expect(text_of(fd), "^PRIORITY=6\n.*\nMESSAGE=text\n$");
}

TEST(datagram, restarted_log_daemon_is_found_again)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev");

    if (fd < 0)
        return;
    open_target("syslog");
    close(fd);
    log_info("lost");
    unlink("/dev/log");
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    log_info("found");
    log_lines_expect(text_of(fd), "main: found$");
    log_lines_expect(text_of(fd), "main: log: lines dropped: 1$");
}

/* A syslogd in the place of ${fd} that takes connections, as syslog-ng does. */
static int listen_for_syslog(int fd)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};

    close(fd);
    unlink("/dev/log");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    return fd;
}

/* The next message of a stream: up to its NUL. */
static const char *message_of(int fd)
{
    static char text[1 << 13];
    size_t n = 0;

    do
        ck_assert_int_eq(recv(fd, &text[n], 1, 0), 1);
    while (text[n++] != '\0');
    return text;
}

TEST(datagram, stream_syslog_gets_each_line_with_a_nul)
{
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev"), connection;

    if (fd < 0)
        return;
    fd = listen_for_syslog(fd);
    open_target("syslog");
    connection = accept(fd, NULL, NULL);
    log_notice("text");
    ck_assert_int_eq(log_target_put_lines(target, "one\ntwo\n", 8), 8);
    log_lines_expect(message_of(connection), "^<29>.* main: text$");
    log_lines_expect(message_of(connection), "^<30>.*: one$");
    log_lines_expect(message_of(connection), "^<30>.*: two$");
}

TEST(datagram, restarted_stream_syslog_is_found_again)
{
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev"), connection;

    if (fd < 0)
        return;
    fd = listen_for_syslog(fd);
    open_target("syslog");
    close(accept(fd, NULL, NULL));
    close(fd);
    log_info("lost");
    fd = listen_for_syslog(-1);
    log_info("found");
    connection = accept(fd, NULL, NULL);
    log_lines_expect(message_of(connection), "main: found$");
    log_lines_expect(message_of(connection), "main: log: lines dropped: 1$");
}

TEST(datagram, stream_syslog_that_does_not_read_gets_whole_messages_later)
{
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev"), connection;
    const char *text;

    if (fd < 0)
        return;
    fd = listen_for_syslog(fd);
    open_target("syslog");
    connection = accept(fd, NULL, NULL);
    for (int i = 0; i < 10000; i++)
        log_info("line %d of ten thousand", i);
    for (int i = 0; i < 100; i++)
        log_lines_expect(message_of(connection), ": line [0-9]+ of ten thousand$");
    log_info("later");
    do
        text = message_of(connection);
    while (!strstr(text, ": later"));
    log_lines_expect(message_of(connection), "main: log: lines dropped: [0-9]+$");
}

#define LONG_BYTES 600000 /* more than a socket takes */

/* Two lines: "one", and a long one. */
static const char *one_and_long_line(void)
{
    static char lines[4 + LONG_BYTES + 1] = "one\n";

    memset(lines + 4, 'x', LONG_BYTES);
    lines[4 + LONG_BYTES] = '\n';
    return lines;
}

/* Read what is there; it must end with an x. */
static void hear_part(int fd)
{
    static char text[1 << 16];
    ssize_t n, last = 0;

    while ((n = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
        last = n;
    ck_assert_int_gt(last, 0);
    ck_assert_int_eq(text[last - 1], 'x');
}

TEST(datagram, message_partly_taken_by_syslog_is_terminated_before_the_next)
{
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev"), connection;
    const char *lines = one_and_long_line();

    if (fd < 0)
        return;
    fd = listen_for_syslog(fd);
    open_target("syslog");
    connection = accept(fd, NULL, NULL);
    ck_assert_int_eq(log_target_put_lines(target, lines, 4 + LONG_BYTES + 1), 4);
    ck_assert_int_eq(log_target_put_lines(target, lines, 4), -EAGAIN);
    log_lines_expect(message_of(connection), "^<30>.*: one$");
    hear_part(connection);
    ck_assert_int_eq(log_target_put_lines(target, lines, 4), 4);
    ck_assert_str_eq(message_of(connection), "\n");
    log_lines_expect(message_of(connection), "^<30>.*: one$");
    ck_assert_int_eq(log_target_put_lines(target, lines, 4), 4);
    log_lines_expect(message_of(connection), "^<30>.*: one$");
}

TEST(datagram, line_partly_taken_by_the_journal_is_terminated_before_the_next)
{
    const char *lines = one_and_long_line();
    int journal = journal_at_stderr();

    open_target("stderr");
    ck_assert_int_eq(log_target_put_lines(target, lines, 4), 4);
    ck_assert_str_eq(text_of(journal), "<6>one\n");
    ck_assert_int_eq(log_target_put_lines(target, lines + 4, LONG_BYTES + 1), -EAGAIN);
    ck_assert_int_eq(log_target_put_lines(target, lines, 4), -EAGAIN);
    hear_part(journal);
    ck_assert_int_eq(log_target_put_lines(target, lines, 4), 4);
    ck_assert_str_eq(text_of(journal), "\n<6>one\n");
}

TEST(datagram, log_daemon_that_does_not_read_does_not_block)
{
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev");

    if (fd < 0)
        return;
    open_target("syslog");
    for (int i = 0; i < 10000; i++)
        log_info("line %d of ten thousand", i);
}

TEST(datagram, missing_log_daemon_is_an_error)
{
    int fd = pose_as_log_daemon("/dev/log", "/dev", "/dev");

    if (fd < 0)
        return;
    unlink("/dev/log");
    ck_assert_int_eq(log_target_open(&target, "syslog", NULL), 0);
    ck_assert_int_eq(log_target_error(target), -ENOENT);
}
