/*
 * sessions/overload_internal: shared by overload*.c.
 *
 * note: samples. Between samples, growth of buffers and of the TLS library counts as memory.
 * `surplus_bytes` is the excess of memory at the last sample, less what closed connections have
 * freed since.
 */
#ifndef SESSIONS_OVERLOAD_INTERNAL_H
#define SESSIONS_OVERLOAD_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/task.h"
#include "engine/timer.h"
#include "engine/visit.h"
#include "limits/token_bucket.h"
#include "net/memory_account.h"
#include "sessions/overload.h"
#include "sessions/session_idlest.h"
#include "tls/tls_memory.h"

struct connection_limit;
struct loop;
struct loop_group;

/* A worker's part of a round, see overload_begin_round(); set before its visit begins. */
struct overload_part {
    struct overload *overload;
    struct visit visit;
    struct visit_part visited;
    unsigned weight; /* number of sessions; control loop only */
    int64_t bytes;   /* the worker's share of the excess */
    unsigned tokens; /* the worker's share of the tokens of `pace` */
    struct session_idlest victims;
    bool had_many; /* found the maximum number of victims of a round */
    atomic_bool busy;
    atomic_bool had_few; /* the worker's sessions held less than `bytes` */
};

struct overload {
    struct memory_account buffered;
    struct overload_conf conf;
    int64_t high_bytes; /* an episode begins above so many buffered bytes, and ends at low_bytes */
    int64_t low_bytes;
    /* memory in use without clients; overload_start() sets this and the next two */
    int64_t idle_memory_bytes;
    int64_t high_memory_bytes;
    int64_t low_memory_bytes;
    struct timer sample;
    _Atomic int64_t memory_bytes;  /* memory in use at the last sample, with pipes */
    _Atomic int64_t held_bytes;    /* buffered at the last sample */
    _Atomic int64_t tls_bytes;     /* memory of the TLS library at the last sample */
    _Atomic int64_t session_bytes; /* estimated memory of a session, without buffers */
    _Atomic int64_t surplus_bytes;
    struct connection_limit *connection_limit;
    struct loop *control;
    struct timer tick;
    atomic_bool ticking; /* see note: tick */
    _Atomic int64_t began_at_ns;
    struct token_bucket pace;
    unsigned round; /* number of rounds so far; this and the next: control loop only */
    unsigned ticks_waited;
    _Atomic uint64_t episodes;
    _Atomic uint64_t closed; /* connections closed in all episodes */
    uint64_t closed_before;  /* `closed` at the begin of this episode; control loop only */
    struct loop_group *workers;
    struct overload_part parts[]; /* one for each of loop_group_max() loops */
};

/*
 * overload_bytes(ov) / overload_memory(ov) / overload_min(a, b):
 * Bytes buffered now / memory in use, estimated: see note: samples / the smaller of ${a} and ${b}.
 */
static inline int64_t overload_bytes(const struct overload *ov)
{
    return atomic_load_explicit(&ov->buffered.bytes, memory_order_relaxed);
}

static inline int64_t overload_memory(const struct overload *ov)
{
    return atomic_load_explicit(&ov->memory_bytes, memory_order_relaxed) + overload_bytes(ov) -
           atomic_load_explicit(&ov->held_bytes, memory_order_relaxed) + tls_memory_bytes() -
           atomic_load_explicit(&ov->tls_bytes, memory_order_relaxed);
}

static inline int64_t overload_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * overload_excess(ov) / overload_is_of_idle(ov):
 * Return the bytes to free; 0 or less: none / would freeing all buffers be too little?
 */
static inline int64_t overload_excess(const struct overload *ov)
{
    int64_t held = overload_bytes(ov) - ov->low_bytes;
    int64_t surplus = atomic_load_explicit(&ov->surplus_bytes, memory_order_relaxed);

    return held > surplus ? held : surplus;
}

static inline bool overload_is_of_idle(const struct overload *ov)
{
    return ov->conf.max_memory_bytes > 0 &&
           overload_memory(ov) - ov->low_memory_bytes > overload_bytes(ov);
}

/* overload_part_init(part, ov): initialize ${part} for one worker. Thread: main */
void overload_part_init(struct overload_part *part, struct overload *ov);

/*
 * overload_begin_round(ov):
 * Let the workers close connections. Each gets a share of the excess and of the tokens of `pace`,
 * by the number of its sessions. So all workers close connections of similar age. While a worker is
 * busy with the previous round, no round begins, for OVERLOAD_PATIENCE ticks at most.
 *
 * Thread: control loop
 */
void overload_begin_round(struct overload *ov);

#endif
