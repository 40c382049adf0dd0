/*
 * stats/access_log: asynchronous access log.
 *
 *   any thread --access_log_put()--> bounded queue --writer thread, in batches--> sink
 *
 * A loop never blocks: it pushes a line on a lock-free queue and, if needed, schedules the writer
 * in 10 ms. The writer retries lines that the sink does not take. A blocked sink delays only its
 * own log.
 *
 * Lines are dropped when the queue is full or the sink fails; counted, and logged at the first and
 * after a second without loss.
 *
 * note: scheduled. A producer sets `scheduled` with the writer; the writer clears it before it
 * reads the queue. Both are exchanges: a producer schedules again, or this run sees its line.
 */
#ifndef STATS_ACCESS_LOG_H
#define STATS_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"

struct access_log;

struct access_sink {
    /*
     * Write some of ${len} bytes of whole lines; the rest is offered again, first.
     * Thread: the log's, or access_log_finish()
     * Errors: bytes taken, > 0; -EAGAIN (retry later); -errno (drop these lines)
     */
    ssize_t (*write)(void *cookie, const char *lines, size_t len);
    void *cookie;
};

struct access_log_conf {
    const char *name;
    struct access_sink sink;
    unsigned pool;    /* of the thread `alog-POOL-1` */
    size_t max_bytes; /* of queued lines, at least 64 KiB */
};

struct access_log_stats {
    uint64_t lines;   /* taken by the sink */
    uint64_t dropped; /* queue full, or sink failed */
    size_t waiting_bytes;
};

/*
 * access_log_create(out, conf):
 * Create an empty log; its thread starts with the first line.
 *
 * Thread: main
 * Owns:   pointers in ${conf} are borrowed
 * Errors: 0; -ENOMEM
 */
int access_log_create(struct access_log **out, const struct access_log_conf *conf) NODISCARD;

/*
 * access_log_number(al):
 * Return the number of the next connection, from 1.
 *
 * Thread: any
 */
uint64_t access_log_number(struct access_log *al);

/*
 * access_log_put(al, line, len):
 * Queue a copy of ${line}, which ends in a newline; drop and count it without space.
 *
 * Thread: any
 */
void access_log_put(struct access_log *al, const char *line, size_t len);

/*
 * access_log_finish(al, until_ns):
 * End the thread and write the queue until ${until_ns}; drop, count and log the rest. Call once,
 * before access_log_destroy().
 *
 * Thread: main, after the last access_log_put()
 * Errors: 0; -ETIMEDOUT (the sink blocks: do not destroy the log)
 */
int access_log_finish(struct access_log *al, int64_t until_ns) NODISCARD;

/*
 * access_log_stats(al, out):
 * Read the counters.
 *
 * Thread: any
 */
void access_log_stats(const struct access_log *al, struct access_log_stats *out);

/*
 * access_log_destroy(al):
 * Free ${al} or NULL.
 *
 * Thread: main, after access_log_finish(), or if no line ever came
 */
void access_log_destroy(struct access_log *al);

#endif
