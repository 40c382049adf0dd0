/*
 * stats/access_log: the lines of an access log on their way from the loops to wherever they are
 * kept.
 *
 *   any thread --access_log_put()--> lines in memory, so many bytes --the log's own thread, in
 *   batches--> the sink
 *
 * A loop never waits for it: it allocates the line, pushes it on a lock-free queue and at most
 * schedules the writer. The writer runs 10 ms after the first line that came since it ran last, so
 * that it costs little however many lines there are. What the sink does not take yet is tried
 * again; it may also block, which holds up that one thread and no other log.
 *
 * When there is no room lines are dropped, and likewise when the sink fails; both are counted, and
 * said once an episode: when it begins, and when lines have been taken for a second without loss.
 *
 * note: scheduled. `scheduled` is set by whoever schedules the writer, and the writer takes it back
 * before it looks at the queue. Both are exchanges, so that a producer either finds it taken back
 * and schedules the writer anew, or its line, pushed before, is seen by that run.
 */
#ifndef STATS_ACCESS_LOG_H
#define STATS_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"

struct access_log;

/* Where lines end up. */
struct access_sink {
    /*
     * Take what of the ${len} bytes of whole lines can be taken now; the rest comes again, first.
     * On the thread of the log, or in access_log_finish().
     * Errors: bytes taken, > 0; -EAGAIN (later); -errno (these lines cannot be taken: they are
     *         dropped)
     */
    ssize_t (*write)(void *cookie, const char *lines, size_t len);
    void *cookie;
};

struct access_log_conf {
    const char *name; /* for logs */
    struct access_sink sink;
    unsigned pool;    /* its thread is called `alog-POOL-1` */
    size_t max_bytes; /* of lines that wait, 64 KiB at least */
};

struct access_log_stats {
    uint64_t lines;   /* that the sink took */
    uint64_t dropped; /* for want of room, or because the sink failed */
    size_t waiting_bytes;
};

/*
 * access_log_create(out, conf):
 * A log without lines; its thread starts with the first.
 *
 * Thread: main
 * Owns:   the caller owns ${out}; what ${conf} points at is borrowed
 * Errors: 0; -ENOMEM
 */
int access_log_create(struct access_log **out, const struct access_log_conf *conf) NODISCARD;

/*
 * access_log_number(al):
 * The number of another connection in this log, from 1.
 *
 * Thread: any
 */
uint64_t access_log_number(struct access_log *al);

/*
 * access_log_put(al, line, len):
 * Add ${line}, which ends in a newline. Without room, or memory, it is dropped and counted.
 *
 * Thread: any
 * Owns:   nothing; ${line} is copied
 * Units:  bytes
 */
void access_log_put(struct access_log *al, const char *line, size_t len);

/*
 * access_log_finish(al, until_ns):
 * End its thread and write what waits; what the sink has not taken by then is dropped and counted.
 * How many lines were lost is logged. Call it once, before access_log_destroy().
 *
 * Thread: main, when nobody puts lines any more
 * Units:  ${until_ns} an instant
 * Errors: 0; -ETIMEDOUT (the sink blocks: the log can not be destroyed)
 */
int access_log_finish(struct access_log *al, int64_t until_ns) NODISCARD;

/*
 * access_log_stats(al, out):
 * A reading of its counters.
 *
 * Thread: any
 */
void access_log_stats(const struct access_log *al, struct access_log_stats *out);

/*
 * access_log_destroy(al):
 * Free it with the lines that still wait; NULL is allowed.
 *
 * Thread: main, after access_log_finish(), or if no line ever came
 */
void access_log_destroy(struct access_log *al);

#endif
