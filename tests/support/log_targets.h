/*
 * support/log_targets: a log target, and what is in its file.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_LOG_TARGETS_H
#define SUPPORT_LOG_TARGETS_H

#include "base/log.h"
#include "support/suite.h"

struct log_target;

#define STAMP "^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "

struct log_targets {
    char dir[sizeof("/tmp/reactord-test-log-XXXXXX")];
    char path[64], rotated[64];
    struct log_target *target;
};

extern struct log_targets log_targets;

void log_targets_setup(void);

void log_targets_teardown(void);

void log_targets_open_target(const char *where);

/* Up to a static buffer full of what ${fd} gives. */
char *log_targets_text_of(int fd);

char *log_targets_file_text(const char *name);

#endif
