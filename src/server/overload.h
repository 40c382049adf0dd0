/*
 * server/overload: overload protection: limits buffered bytes (max_buffered) and memory in use
 * (max_memory).
 *
 * An episode begins at three quarters of max_buffered (net/memory_account), for bytes in flight,
 * and ends at half. Meanwhile no client is accepted (limits/connection_limit), channels read
 * little, and connections are closed slowly.
 *
 * Memory in use (mallinfo2, plus pipes) is sampled. Of the limit less the usage without clients,
 * three quarters begin an episode and five eighths end it. Between samples buffers may grow only by
 * the room left.
 *
 * Victims: connections with buffered bytes, longest without progress first (water marks make sizes
 * alike). If that cannot free enough memory, the idlest of all. Optional parts (a mirror) go first.
 * Each worker picks among its own sessions; one token bucket paces all.
 */
#ifndef SERVER_OVERLOAD_H
#define SERVER_OVERLOAD_H

#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

struct memory_account;
struct overload;
struct connection_limit;
struct threads;

struct overload_conf {
    uint64_t max_buffered_bytes; /* 0: no limit */
    uint64_t max_memory_bytes;   /* 0: no limit */
    struct token_bucket_conf
        shedding; /* connections closed per second; none: only stop accepting */
};

/* Interval of memory samples; longer if sampling is slow. */
#define OVERLOAD_SAMPLE_NS INT64_C(100000000)

/*
 * overload_create(out, conf, threads, room):
 * Prepare overload protection; ${out} is NULL without limits.
 *
 * Thread: main, before the workers are created
 * Owns:   ${threads} and ${room} are borrowed
 * Errors: 0; -ENOMEM
 */
int overload_create(struct overload **out, const struct overload_conf *conf,
                    const struct threads *threads, struct connection_limit *room) NODISCARD;

/*
 * overload_start(ov):
 * With max_memory: measure the usage without clients, then sample the usage periodically. NULL is
 * allowed; failures are logged.
 *
 * Thread: main, before the first client
 * Errors: 0; -ERANGE (over half of the limit is in use already); as loop_submit_after()
 */
int overload_start(struct overload *ov) NODISCARD;

/*
 * overload_buffered(ov):
 * The workers' memory account; NULL if ${ov} is.
 *
 * Thread: any
 */
struct memory_account *overload_buffered(struct overload *ov);

/*
 * overload_log_stats(ov):
 * Log its counters; NULL is allowed.
 *
 * Thread: any
 */
void overload_log_stats(const struct overload *ov);

/*
 * overload_destroy(ov):
 * Free ${ov} or NULL.
 *
 * Thread: main, while no loop runs
 */
void overload_destroy(struct overload *ov);

#endif
