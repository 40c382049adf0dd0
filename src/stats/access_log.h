/*
 * stats/access_log: asynchronous access log.
 *
 *   any thread --access_log_put()--> bounded queue --writer thread, in batches--> sink
 *
 * A loop never blocks: it pushes a line on a lock-free queue and, if needed, schedules the writer
 * in 10 ms.
 *
 * When the queue is full or the sink fails, lines are dropped and counted. The first loss is
 * logged, and after a second without one, the end of the losses, if the sink has recovered.
 *
 * note: scheduled. A producer sets `scheduled` when it schedules the writer; the writer clears it
 * before it reads the queue. Both are exchanges: either the producer schedules the writer again, or
 * the running writer sees the new line.
 */
#ifndef STATS_ACCESS_LOG_H
#define STATS_ACCESS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"

struct access_log;

struct access_sink {
    /*
     * Write some or all of the ${len} bytes of ${lines}, which end with a whole line. The next call
     * begins with the bytes not taken.
     * Thread: the writer, or access_log_finish()
     * Errors: bytes taken, > 0; -EAGAIN (retry later); -errno (drop these lines)
     */
    ssize_t (*write)(void *cookie, const char *lines, size_t len);
    /*
     * Switch to the new file if a rotation has opened one; true: switched, and the next call of
     * write() begins with a whole line. ${cut}: end the line that the old file has only in part.
     * NULL: there is no rotation.
     * Thread: as write()
     */
    bool (*rotate)(void *cookie, bool cut);
    /*
     * After losses: can the sink take lines again? NULL: if it has lost none for a second.
     * Thread: as write()
     */
    bool (*recovered)(void *cookie);
    void *cookie;
};

struct access_log_conf {
    const char *name;
    struct access_sink sink;
    unsigned pool;    /* number in the thread's name, `alog-POOL-1` */
    size_t max_bytes; /* limit of queued lines, at least 64 KiB */
};

struct access_log_stats {
    uint64_t lines;   /* lines that the sink took */
    uint64_t dropped; /* lines lost: queue full, no memory, or sink failed */
    size_t waiting_bytes;
};

/*
 * access_log_create(out, conf):
 * Create a log; its thread starts with the first line.
 *
 * Thread: main
 * Owns:   pointers in ${conf} must outlive the log
 * Errors: 0; -ENOMEM
 */
int access_log_create(struct access_log **out, const struct access_log_conf *conf) NODISCARD;

/*
 * access_log_hold(al) / access_log_release(al):
 * Add a user and return ${al} / remove a user, which must not use ${al} any more. NULL is ignored.
 */
struct access_log *access_log_hold(struct access_log *al);
void access_log_release(struct access_log *al);

/* access_log_used(al): has ${al} users? */
bool access_log_used(const struct access_log *al);

/* access_log_set_max_bytes(al, max_bytes): change conf.max_bytes. Queued lines stay. */
void access_log_set_max_bytes(struct access_log *al, size_t max_bytes);

/* access_log_number(al): return the number of the next connection, from 1. */
uint64_t access_log_number(struct access_log *al);

/*
 * access_log_put(al, line, len):
 * Queue a copy of ${line}, which ends in a newline. Without space or memory, drop and count it.
 */
void access_log_put(struct access_log *al, const char *line, size_t len);

/* access_log_wake(al): let the writer call sink.rotate() soon, also without lines. */
void access_log_wake(struct access_log *al);

/*
 * access_log_finish(al, until_ns):
 * End the thread and write the queue until ${until_ns}; drop, count and log the rest. Call once,
 * before access_log_destroy().
 *
 * Thread: main, after the last access_log_put()
 * Errors: 0; -ETIMEDOUT (the sink blocks: do not destroy the log)
 */
int access_log_finish(struct access_log *al, int64_t until_ns) NODISCARD;

/* access_log_stats(al, out): read the statistics of ${al}. */
void access_log_stats(const struct access_log *al, struct access_log_stats *out);

/*
 * access_log_destroy(al):
 * Free ${al}, which may be NULL.
 *
 * Thread: main, after access_log_finish(), or if no line was ever put
 */
void access_log_destroy(struct access_log *al);

#endif
