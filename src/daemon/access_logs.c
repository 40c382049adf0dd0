/* daemon/access_logs: see access_logs.h. */
#include "daemon/access_logs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/log_target.h"
#include "server/server.h"
#include "stats/access_log.h"

#define ACCESS_LOGS_FINISH_NS (2 * NS_PER_S)

/* Lower numbers: boss, workers, executor, control loop. */
#define ACCESS_LOGS_FIRST_POOL 5

struct access_logs_entry {
    const char *where;
    struct log_target *target;
    struct access_log *log;
};

struct access_logs {
    unsigned n;
    struct access_logs_entry entries[];
};

static struct access_logs_entry *access_logs_entry_of(struct access_logs *logs, const char *where)
{
    for (unsigned i = 0; i < logs->n; i++)
        if (strcmp(logs->entries[i].where, where) == 0)
            return &logs->entries[i];
    return NULL;
}

static ssize_t access_logs_entry_write(void *cookie, const char *lines, size_t len)
{
    struct access_logs_entry *entry = cookie;

    return log_target_put_lines(entry->target, lines, len);
}

static int access_logs_add_entry(struct access_logs *logs, const char *where, size_t buffer_bytes,
                                 const struct privileges *user)
{
    struct access_logs_entry *entry = &logs->entries[logs->n];
    const struct access_log_conf conf = {
        .name = where,
        .sink = {.write = access_logs_entry_write, .cookie = entry},
        .pool = ACCESS_LOGS_FIRST_POOL + logs->n,
        .max_bytes = buffer_bytes};
    int rc = log_target_open(&entry->target, where, user);

    if (rc < 0) {
        log_error("access log %s: cannot be opened: %s", where, strerror(-rc));
        return rc;
    }
    rc = access_log_create(&entry->log, &conf);
    if (rc < 0) {
        log_target_close(entry->target);
        return rc;
    }
    entry->where = where;
    logs->n++;
    return 0;
}

int access_logs_open(struct access_logs **out, const struct server_conf *conf, size_t buffer_bytes,
                     const struct privileges *user)
{
    struct access_logs *logs =
        calloc(1, sizeof(*logs) + conf->n_listeners * sizeof(logs->entries[0]));

    if (!logs)
        return -ENOMEM;
    for (unsigned i = 0; i < conf->n_listeners; i++) {
        const char *where = conf->listeners[i].access_log.where;
        int rc;

        if (strcmp(where, "off") == 0 || access_logs_entry_of(logs, where))
            continue;
        rc = access_logs_add_entry(logs, where, buffer_bytes, user);
        if (rc < 0) {
            access_logs_close(logs);
            return rc;
        }
    }
    *out = logs;
    return 0;
}

struct access_log *access_logs_find(void *logs, const char *where)
{
    struct access_logs_entry *entry = access_logs_entry_of(logs, where);

    return entry ? entry->log : NULL;
}

void access_logs_reopen(struct access_logs *logs)
{
    for (unsigned i = 0; logs && i < logs->n; i++) {
        int rc = log_target_reopen(logs->entries[i].target);

        if (rc < 0)
            log_error("access log %s: cannot be reopened: %s; the old file stays in use",
                      logs->entries[i].where, strerror(-rc));
    }
}

void access_logs_log_stats(const struct access_logs *logs)
{
    for (unsigned i = 0; logs && i < logs->n; i++) {
        struct access_log_stats s;

        access_log_stats(logs->entries[i].log, &s);
        log_notice("stats access_log %s lines=%" PRIu64 " dropped=%" PRIu64 " waiting_bytes=%zu",
                   logs->entries[i].where, s.lines, s.dropped, s.waiting_bytes);
    }
}

int access_logs_finish(struct access_logs *logs)
{
    int64_t until_ns = clock_add_ns(clock_now_ns(), ACCESS_LOGS_FINISH_NS);
    int rc = 0;

    for (unsigned i = 0; i < logs->n; i++)
        if (access_log_finish(logs->entries[i].log, until_ns) < 0)
            rc = -ETIMEDOUT;
    return rc;
}

void access_logs_close(struct access_logs *logs)
{
    if (!logs)
        return;
    for (unsigned i = 0; i < logs->n; i++) {
        access_log_destroy(logs->entries[i].log);
        log_target_close(logs->entries[i].target);
    }
    free(logs);
}
