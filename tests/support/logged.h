/*
 * support/logged: sessions with an access log, and its lines.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_LOGGED_H
#define SUPPORT_LOGGED_H

#include <pthread.h>

#include "support/host.h"
#include "upstream/upstream.h"

struct service_ops;

struct logged {
    struct host host;
    struct address address[2];
    struct upstream_server_conf servers[2];
    struct upstream_conf conf;
    struct upstream *upstream;
    int listening;
    struct service_access_log logs[SERVICE_ACCESS_LOGS];
    /* What was written. */
    pthread_mutex_t lock;
    char text[1 << 16];
};

extern struct logged logged;

unsigned logged_lines(void);

/* Add another log, whose lines are kept with those of the first. */
void logged_add_log(const char *format);

void logged_open_host(const struct service_ops *ops, const char *format);

void logged_open_proxy(const char *format);

void logged_teardown(void);

void logged_expect(const char *wanted);

#endif
