/*
 * support/sinks: an access log whose sink takes, loses or holds what it is given.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_SINKS_H
#define SUPPORT_SINKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "stats/access_log.h"

struct access_log;

#define BUFFER_BYTES (128 << 10)

struct sinks {
    /* A sink that keeps what it takes, and fails as it is told. */
    struct {
        pthread_mutex_t lock;
        char *text;
        size_t len, room;
        unsigned calls;
        size_t at_once;
        atomic_int error;
        atomic_bool hangs;
    } taken;
    struct access_log *log;
};

extern struct sinks sinks;

ssize_t sinks_write(void *cookie, const char *lines, size_t len);

size_t sinks_len(void);

struct access_log_stats sinks_stats(void);

void sinks_setup(void);

void sinks_finish(void);

void sinks_teardown(void);

void sinks_put(const char *line);

#endif
