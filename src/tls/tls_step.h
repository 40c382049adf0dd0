/*
 * tls/tls_step: runs the steps of a handshake, mostly off the connection's loop.
 *
 *   loop: tls_step_submit -> thread: the library -> loop: done()
 *
 * From a successful tls_step_submit() to done() the step owns the stream. If the connection ends
 * meanwhile, its handler abandons step and stream: tls_step_abandon().
 */
#ifndef TLS_TLS_STEP_H
#define TLS_TLS_STEP_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/must.h"
#include "engine/task.h"
#include "tls/tls_jobs.h"
#include "tls/tls_stream.h"

struct loop;
struct tls_handshakes;

struct tls_step {
    struct tls_job job;
    struct task arrival;
    struct tls_stream *stream; /* owned from tls_step_submit() to done() */
    struct buffer in;          /* records for the stream; in done(): those left unread */
    struct buffer out;         /* records to send */
    enum tls_stream_result result;
    int error;                           /* 0; -ETIMEDOUT (dropped); -ENOMEM */
    void (*done)(struct tls_step *step); /* on the loop, unless abandoned or the loop has ended */
    void *cookie;
    atomic_bool is_abandoned; /* set on the loop; relaxed: a late reader wastes a step */
};

/*
 * tls_step_create(out, loop, done, cookie):
 * Create the object for all steps of one handshake.
 *
 * Thread: loop
 * Owns:   the caller owns ${out}
 * Errors: 0; -ENOMEM
 */
int tls_step_create(struct tls_step **out, struct loop *loop, void (*done)(struct tls_step *step),
                    void *cookie) NODISCARD;

/*
 * tls_step_submit(step, pool, deadline_ns, first):
 * Give step->in to step->stream on a thread of ${pool}, then call done() on the loop.
 *
 * Thread: loop
 * Owns:   on 0 the pool owns the step, with its stream, until done(); if done() is not called, both
 *         are freed
 * Errors: as tls_handshakes_submit()
 */
int tls_step_submit(struct tls_step *step, struct tls_handshakes *pool, int64_t deadline_ns,
                    bool first) NODISCARD;

/*
 * tls_step_run_here(step):
 * As tls_step_submit(), but run the step and call done() inside this call: for steps without
 * public-key arithmetic.
 *
 * Thread: loop
 */
void tls_step_run_here(struct tls_step *step);

/*
 * tls_step_abandon(step):
 * Give up a submitted step before done(), which is then not called. The step frees itself and its
 * stream; a step that still waits does not run.
 *
 * Thread: loop
 */
void tls_step_abandon(struct tls_step *step);

/* tls_step_free(step): free ${step}, but not its stream; NULL is allowed. Thread: owner */
void tls_step_free(struct tls_step *step);

#endif
