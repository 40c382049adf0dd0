#include "support/sinks.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "stats/access_log.h"
#include "support/log_lines.h"
#include "support/until.h"

struct sinks sinks = {.taken = {.lock = PTHREAD_MUTEX_INITIALIZER}};

ssize_t sinks_write(void *cookie, const char *lines, size_t len)
{
    (void)cookie;
    while (atomic_load(&sinks.taken.hangs))
        PAUSE_MS(1);
    if (atomic_load(&sinks.taken.error) != 0)
        return atomic_load(&sinks.taken.error);
    pthread_mutex_lock(&sinks.taken.lock);
    if (sinks.taken.at_once > 0 && len > sinks.taken.at_once)
        len = sinks.taken.at_once;
    if (sinks.taken.len + len > sinks.taken.room) {
        sinks.taken.room = 2 * (sinks.taken.len + len);
        sinks.taken.text = realloc(sinks.taken.text, sinks.taken.room + 1);
        ck_assert_ptr_nonnull(sinks.taken.text);
    }
    memcpy(sinks.taken.text + sinks.taken.len, lines, len);
    sinks.taken.len += len;
    sinks.taken.text[sinks.taken.len] = '\0';
    sinks.taken.calls++;
    pthread_mutex_unlock(&sinks.taken.lock);
    return (ssize_t)len;
}

size_t sinks_len(void)
{
    size_t len;

    pthread_mutex_lock(&sinks.taken.lock);
    len = sinks.taken.len;
    pthread_mutex_unlock(&sinks.taken.lock);
    return len;
}

struct access_log_stats sinks_stats(void)
{
    struct access_log_stats s;

    access_log_stats(sinks.log, &s);
    return s;
}

void sinks_setup(void)
{
    const struct access_log_conf conf = {
        .name = "x", .sink = {.write = sinks_write}, .pool = 5, .max_bytes = BUFFER_BYTES};

    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(access_log_create(&sinks.log, &conf), 0);
}

void sinks_finish(void)
{
    ck_assert_int_eq(access_log_finish(sinks.log, clock_now_ns() + 10 * NS_PER_S), 0);
}

void sinks_teardown(void)
{
    access_log_destroy(sinks.log);
    free(sinks.taken.text);
}

void sinks_put(const char *line)
{
    access_log_put(sinks.log, line, strlen(line));
}
