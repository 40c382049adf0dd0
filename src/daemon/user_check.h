/*
 * daemon/user_check: warns at start of files that only root can open.
 *
 * Root opened these at start, but a later reload, or reopening a log, would fail.
 */
#ifndef DAEMON_USER_CHECK_H
#define DAEMON_USER_CHECK_H

#include "base/must.h"

struct access_logs;
struct config;
struct log_target;
struct privileges;

struct user_check {
    const struct privileges *user;
    const struct config *config; /* in use */
    const char *config_path;
    const struct log_target *log;
    struct access_logs *access_logs;
};

/*
 * user_check(uc):
 * Read the configuration again, with all its files, and check that the logs can be reopened. No-op
 * if the user stays, or is root.
 *
 * Thread: main, after privileges_drop(), before any other thread
 */
void user_check(const struct user_check *uc);

#endif
