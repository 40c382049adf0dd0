#include "support/log_targets.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "log/log_target.h"

struct log_targets log_targets = {.dir = "/tmp/reactord-test-log-XXXXXX"};

void log_targets_setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(log_targets.dir));
    snprintf(log_targets.path, sizeof(log_targets.path), "%s/reactord.log", log_targets.dir);
    snprintf(log_targets.rotated, sizeof(log_targets.rotated), "%s/reactord.log.1",
             log_targets.dir);
    signal(SIGPIPE, SIG_IGN);
    unsetenv("JOURNAL_STREAM");
}

void log_targets_teardown(void)
{
    log_target_close(log_targets.target);
    unlink(log_targets.path);
    unlink(log_targets.rotated);
    rmdir(log_targets.dir);
}

void log_targets_open_target(const char *where)
{
    ck_assert_int_eq(log_target_open(&log_targets.target, where, NULL), 0);
    log_set_sink(log_target_sink(log_targets.target));
}

char *log_targets_text_of(int fd)
{
    static char text[1 << 16];
    ssize_t n = read(fd, text, sizeof(text) - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

char *log_targets_file_text(const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    char *text = log_targets_text_of(fd);

    ck_assert_int_ge(fd, 0);
    close(fd);
    return text;
}
