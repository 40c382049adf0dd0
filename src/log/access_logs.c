/*
 * log/access_logs: see access_logs.h.
 *
 * Only main changes the list of entries. It takes the lock for each change and each step through
 * the list, but opens and writes files without the lock.
 */
#include "log/access_logs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event_fd.h"
#include "base/list.h"
#include "base/log.h"
#include "log/log_target.h"
#include "engine/lock.h"
#include "server/server_conf.h"
#include "stats/access_log.h"
#include "stats/figure.h"
#include "stats/figure_log.h"

#define ACCESS_LOGS_FINISH_NS (2 * NS_PER_S)

/* For unused logs: interval of checks; time for a log's thread to end. */
#define ACCESS_LOGS_LOOK_NS (1 * NS_PER_S)
#define ACCESS_LOGS_JOIN_NS (100 * NS_PER_MS)

/*
 * Pool numbers of the logs' threads. Lower numbers belong to boss, workers, executor, control
 * loop and lookups; six digits fit a thread name.
 */
#define ACCESS_LOGS_FIRST_POOL 6
#define ACCESS_LOGS_LAST_POOL  999999

struct access_logs_entry {
    struct list link;
    struct log_target *target;
    struct access_log *log;
    bool wanted;          /* configured; guarded by the lock */
    bool hangs;           /* access_log_finish() has failed; guarded by the lock */
    int64_t unused_at_ns; /* when main found it unused; 0: in use */
    char where[];
};

struct access_logs {
    const struct privileges *user;
    struct lock lock; /* guards `entries` */
    struct list entries;
    unsigned pool; /* pool number of the next log's thread */
    int unused_fd;
};

/* Logs of a new configuration, held (access_log_hold()) until commit or cancel. */
struct access_logs_change {
    struct access_logs *logs;
    size_t buffer_bytes;
    struct list opened;
    unsigned n; /* number of `entries`, which include those in `opened` */
    struct access_logs_entry *entries[];
};

static ssize_t access_logs_entry_write(void *cookie, const char *lines, size_t len)
{
    struct access_logs_entry *entry = cookie;

    return log_target_put_lines(entry->target, lines, len);
}

static bool access_logs_entry_rotate(void *cookie, bool cut)
{
    return log_target_take(((const struct access_logs_entry *)cookie)->target, cut);
}

static bool access_logs_entry_recovered(void *cookie)
{
    return log_target_recovered(((const struct access_logs_entry *)cookie)->target);
}

static int access_logs_entry_open(struct access_logs_entry **out, struct access_logs *logs,
                                  const char *where, size_t buffer_bytes)
{
    struct access_logs_entry *entry = calloc(1, sizeof(*entry) + strlen(where) + 1);
    const struct access_log_conf conf = {.name = entry ? entry->where : NULL,
                                         .sink = {.write = access_logs_entry_write,
                                                  .rotate = access_logs_entry_rotate,
                                                  .recovered = access_logs_entry_recovered,
                                                  .cookie = entry},
                                         .pool = logs->pool,
                                         .max_bytes = buffer_bytes};
    int rc;

    if (!entry)
        return -ENOMEM;
    list_init(&entry->link);
    strcpy(entry->where, where);
    rc = log_target_open(&entry->target, where, logs->user);
    if (rc < 0)
        goto err_free;
    rc = access_log_create(&entry->log, &conf);
    if (rc < 0)
        goto err_close;
    if (log_target_error(entry->target) < 0)
        log_warning("access log %s: does not answer: %s; lines are dropped until it does",
                    log_target_describe(where), strerror(-log_target_error(entry->target)));
    logs->pool = logs->pool < ACCESS_LOGS_LAST_POOL ? logs->pool + 1 : ACCESS_LOGS_FIRST_POOL;
    *out = entry;
    return 0;
err_close:
    log_target_close(entry->target);
err_free:
    log_error("access log %s: cannot be opened: %s", log_target_describe(where), strerror(-rc));
    free(entry);
    return rc;
}

static void access_logs_entry_close(struct access_logs_entry *entry)
{
    access_log_destroy(entry->log);
    log_target_close(entry->target);
    free(entry);
}

/* Return the entry after ${entry}, or the first for NULL; NULL: none is left. */
static struct access_logs_entry *access_logs_next(struct access_logs *logs,
                                                  struct access_logs_entry *entry)
{
    struct list *next;

    lock_take(&logs->lock);
    next = entry ? entry->link.next : logs->entries.next;
    lock_release(&logs->lock);
    return next == &logs->entries ? NULL : LIST_ENTRY(next, struct access_logs_entry, link);
}

/* Find the log at ${where} and hold it; NULL: it is not open, or its thread hangs. */
static struct access_logs_entry *access_logs_hold_open(struct access_logs *logs, const char *where)
{
    struct access_logs_entry *found = NULL;

    lock_take(&logs->lock);
    list_for_each (node, &logs->entries) {
        struct access_logs_entry *entry = LIST_ENTRY(node, struct access_logs_entry, link);

        if (!entry->hangs && strcmp(entry->where, where) == 0)
            found = entry;
    }
    if (found)
        access_log_hold(found->log);
    lock_release(&logs->lock);
    return found;
}

int access_logs_create(struct access_logs **out, const struct privileges *user)
{
    struct access_logs *logs = calloc(1, sizeof(*logs));
    int rc;

    if (!logs)
        return -ENOMEM;
    logs->unused_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (logs->unused_fd < 0) {
        rc = -errno;
        free(logs);
        return rc;
    }
    logs->user = user;
    logs->pool = ACCESS_LOGS_FIRST_POOL;
    list_init(&logs->entries);
    lock_init(&logs->lock);
    *out = logs;
    return 0;
}

static struct access_logs_entry *access_logs_change_entry(const struct access_logs_change *change,
                                                          const char *where)
{
    for (unsigned i = 0; i < change->n; i++)
        if (strcmp(change->entries[i]->where, where) == 0)
            return change->entries[i];
    return NULL;
}

struct access_log *access_logs_change_find(void *change, const char *where)
{
    const struct access_logs_entry *entry = access_logs_change_entry(change, where);

    return entry ? entry->log : NULL;
}

static int access_logs_change_add(struct access_logs_change *change, const char *where)
{
    struct access_logs_entry *entry = access_logs_hold_open(change->logs, where);
    int rc;

    if (!entry) {
        rc = access_logs_entry_open(&entry, change->logs, where, change->buffer_bytes);
        if (rc < 0)
            return rc;
        access_log_hold(entry->log);
        list_append(&change->opened, &entry->link);
    }
    change->entries[change->n++] = entry;
    return 0;
}

int access_logs_prepare(struct access_logs *logs, const struct server_conf *conf,
                        size_t buffer_bytes, struct access_logs_change **out)
{
    const struct listener_log_conf *log;
    struct access_logs_change *change = calloc(
        1, sizeof(*change) + conf->n_listeners * SERVICE_ACCESS_LOGS * sizeof(change->entries[0]));
    int rc = 0;

    if (!change)
        return -ENOMEM;
    change->logs = logs;
    change->buffer_bytes = buffer_bytes;
    list_init(&change->opened);
    for (unsigned i = 0; i < conf->n_listeners; i++)
        for (unsigned j = 0; rc == 0 && (log = listener_conf_log(&conf->listeners[i], j)); j++)
            if (!access_logs_change_entry(change, log->where))
                rc = access_logs_change_add(change, log->where);
    if (rc < 0) {
        access_logs_cancel(change);
        return rc;
    }
    *out = change;
    return 0;
}

/* Mark the logs of ${change} as wanted, and no others. True if other logs are open. */
static bool access_logs_replace(struct access_logs *logs, struct access_logs_change *change)
{
    bool unwanted = false;

    lock_take(&logs->lock);
    list_append_all(&logs->entries, &change->opened);
    list_for_each (node, &logs->entries)
        LIST_ENTRY(node, struct access_logs_entry, link)->wanted = false;
    for (unsigned i = 0; i < change->n; i++)
        change->entries[i]->wanted = true;
    list_for_each (node, &logs->entries)
        unwanted = unwanted || !LIST_ENTRY(node, struct access_logs_entry, link)->wanted;
    lock_release(&logs->lock);
    return unwanted;
}

void access_logs_commit(struct access_logs_change *change)
{
    struct access_logs *logs = change->logs;

    if (access_logs_replace(logs, change))
        (void)event_fd_signal(logs->unused_fd);
    for (unsigned i = 0; i < change->n; i++) {
        access_log_set_max_bytes(change->entries[i]->log, change->buffer_bytes);
        access_log_release(change->entries[i]->log);
    }
    free(change);
}

void access_logs_cancel(struct access_logs_change *change)
{
    if (!change)
        return;
    for (unsigned i = 0; i < change->n; i++)
        access_log_release(change->entries[i]->log);
    list_for_each_safe (node, &change->opened)
        access_logs_entry_close(LIST_ENTRY(node, struct access_logs_entry, link));
    free(change);
}

int access_logs_fd(const struct access_logs *logs)
{
    return logs ? logs->unused_fd : -1;
}

/* Is it time to close the unused ${entry}? False: its thread may still write queued lines. */
static bool access_logs_is_due(struct access_logs_entry *entry, int64_t now_ns)
{
    struct access_log_stats s;

    if (entry->unused_at_ns == 0)
        entry->unused_at_ns = now_ns;
    access_log_stats(entry->log, &s);
    return s.waiting_bytes == 0 || now_ns - entry->unused_at_ns >= ACCESS_LOGS_FINISH_NS;
}

/*
 * If ${entry} is to be closed now, remove it from the list and return true. Set ${unwanted} if it
 * is to be closed later.
 */
static bool access_logs_take_unused(struct access_logs *logs, struct access_logs_entry *entry,
                                    int64_t now_ns, bool *unwanted)
{
    bool take = false;

    lock_take(&logs->lock);
    if (entry->wanted) {
        entry->unused_at_ns = 0;
    } else if (!entry->hangs) {
        take = !access_log_used(entry->log) && access_logs_is_due(entry, now_ns);
        *unwanted = *unwanted || !take;
    }
    if (take)
        list_remove(&entry->link);
    lock_release(&logs->lock);
    return take;
}

/*
 * Close ${entry}. If its thread hangs, put ${entry} back into the list: access_logs_finish() then
 * fails.
 */
static void access_logs_close_taken(struct access_logs *logs, struct access_logs_entry *entry)
{
    if (access_log_finish(entry->log, clock_add_ns(clock_now_ns(), ACCESS_LOGS_JOIN_NS)) == 0) {
        log_info("access log %s: closed; no listener uses it", entry->where);
        access_logs_entry_close(entry);
        return;
    }
    lock_take(&logs->lock);
    entry->hangs = true;
    list_append(&logs->entries, &entry->link);
    lock_release(&logs->lock);
}

int64_t access_logs_close_unused(struct access_logs *logs)
{
    int64_t now_ns = clock_now_ns();
    struct access_logs_entry *entry, *next;
    bool unwanted = false;
    eventfd_t n;

    if (!logs)
        return CLOCK_NEVER;
    eventfd_read(logs->unused_fd, &n);
    for (entry = access_logs_next(logs, NULL); entry; entry = next) {
        next = access_logs_next(logs, entry);
        if (access_logs_take_unused(logs, entry, now_ns, &unwanted))
            access_logs_close_taken(logs, entry);
    }
    return unwanted ? clock_add_ns(now_ns, ACCESS_LOGS_LOOK_NS) : CLOCK_NEVER;
}

void access_logs_reopen(struct access_logs *logs)
{
    struct access_logs_entry *entry = NULL;

    while (logs && (entry = access_logs_next(logs, entry))) {
        int rc = log_target_offer(entry->target);

        if (rc < 0)
            log_error("access log %s: cannot be reopened: %s; the old file stays in use",
                      entry->where, strerror(-rc));
        else
            access_log_wake(entry->log);
    }
}

void access_logs_check_user(struct access_logs *logs)
{
    struct access_logs_entry *entry = NULL;

    while ((entry = access_logs_next(logs, entry))) {
        int rc = log_target_may_reopen(entry->target);

        if (rc < 0)
            log_warning("access log %s: cannot be reopened by uid %ld: %s", entry->where,
                        (long)geteuid(), strerror(-rc));
    }
}

static const struct figure access_logs_rows[] = {
    FIGURE_OF(struct access_log_stats, COUNTER, NUMBER, lines, "Lines that were written."),
    FIGURE_OF(struct access_log_stats, COUNTER, NUMBER, dropped, "Lines that were lost."),
    FIGURE_OF(struct access_log_stats, GAUGE, BYTES, waiting_bytes, "Bytes of lines that wait."),
};

static const struct figure_table access_logs_table = {
    FIGURE_TABLE(struct access_log_stats, access_logs_rows)};

static void access_logs_show(const struct access_logs_entry *entry, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_ACCESS_LOG, .name = entry->where};
    struct access_log_stats s;

    access_log_stats(entry->log, &s);
    figure_show(v, &access_logs_table, &object, &s);
}

/* Hold the lock during all visits: a visit makes no system call. */
void access_logs_figures(struct access_logs *logs, struct figure_visitor *v)
{
    if (!logs)
        return;
    lock_take(&logs->lock);
    list_for_each (node, &logs->entries) {
        const struct access_logs_entry *entry = LIST_ENTRY(node, struct access_logs_entry, link);

        if (entry->wanted)
            access_logs_show(entry, v);
    }
    lock_release(&logs->lock);
}

void access_logs_log_stats(struct access_logs *logs)
{
    struct access_logs_entry *entry = NULL;

    while (logs && (entry = access_logs_next(logs, entry)))
        access_logs_show(entry, figure_log());
}

int access_logs_finish(struct access_logs *logs)
{
    int64_t until_ns = clock_add_ns(clock_now_ns(), ACCESS_LOGS_FINISH_NS);
    int rc = 0;

    list_for_each (node, &logs->entries) {
        struct access_logs_entry *entry = LIST_ENTRY(node, struct access_logs_entry, link);

        if (entry->hangs || access_log_finish(entry->log, until_ns) < 0)
            rc = -ETIMEDOUT;
    }
    return rc;
}

void access_logs_close(struct access_logs *logs)
{
    if (!logs)
        return;
    list_for_each_safe (node, &logs->entries)
        access_logs_entry_close(LIST_ENTRY(node, struct access_logs_entry, link));
    close(logs->unused_fd);
    lock_close(&logs->lock);
    free(logs);
}
