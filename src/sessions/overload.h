/*
 * sessions/overload: overload protection: limits buffered bytes (max_buffered) and memory in use
 * (max_memory).
 *
 * An overload episode begins at three quarters of max_buffered (net/memory_account) and ends at
 * half; the last quarter is for bytes in flight. During an episode no client is accepted
 * (limits/connection_limit), channels read little, and connections are closed slowly.
 *
 * Memory in use (mallinfo2, plus pipes) is sampled. Clients may use max_memory less the memory in
 * use before the first client. An episode also begins at three quarters of this, and ends at five
 * eighths. Between samples, growth of buffers and of the TLS library counts too: they cannot grow
 * past these three quarters.
 *
 * The victims are connections with buffered bytes, longest without progress first. If these cannot
 * free enough memory, all connections are victims, longest idle first. If a connection has an
 * optional part (a mirror), that part is closed first. Workers close connections in proportion to
 * their sessions; one token bucket paces all workers.
 */
#ifndef SESSIONS_OVERLOAD_H
#define SESSIONS_OVERLOAD_H

#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

struct connection_limit;
struct figure_visitor;
struct loop;
struct loop_group;
struct memory_account;
struct overload;

struct overload_conf {
    uint64_t max_buffered_bytes;       /* 0: no limit */
    uint64_t max_memory_bytes;         /* 0: no limit */
    struct token_bucket_conf shedding; /* connections closed per second; 0: only stop accepting */
};

/* Interval of memory samples; longer if sampling is slow. */
#define OVERLOAD_SAMPLE_NS INT64_C(100000000)

/*
 * overload_create(out, conf, control, workers, connection_limit):
 * Prepare overload protection; ${out} is NULL if no limit is configured.
 *
 * Thread: main, before the workers are created
 * Owns:   ${connection_limit} and the loops must live until no loop runs
 * Errors: 0; -ENOMEM
 */
int overload_create(struct overload **out, const struct overload_conf *conf, struct loop *control,
                    struct loop_group *workers,
                    struct connection_limit *connection_limit) NODISCARD;

/*
 * overload_start(ov):
 * With max_memory: measure the memory in use without clients, then sample memory periodically. NULL
 * is allowed; failures are logged.
 *
 * Thread: main, before the first client
 * Errors: 0; -ERANGE (over half of max_memory is in use already); as loop_submit_after()
 */
int overload_start(struct overload *ov) NODISCARD;

/* overload_buffered(ov): return the workers' memory account; NULL if ${ov} is NULL. */
struct memory_account *overload_buffered(struct overload *ov);

/*
 * overload_figures(ov, v) / overload_heap_figures(v):
 * Visit the figures of ${ov}; NULL is allowed / visit those of the heap, which takes 1 ms with
 * 10,000 connections and locks each arena.
 */
void overload_figures(const struct overload *ov, struct figure_visitor *v);
void overload_heap_figures(struct figure_visitor *v);

/* overload_destroy(ov): free ${ov}; NULL is allowed. Thread: main, while no loop runs */
void overload_destroy(struct overload *ov);

#endif
