/*
 * tls/tls_handshakes: thread pool for handshakes, so that established connections do not wait for
 * the arithmetic of new ones.
 *
 * A loop submits one step of a handshake: what the library does with the messages received so far.
 * A step's run() works on state that no other thread touches meanwhile. give_back() then submits a
 * task to the connection's loop.
 *
 * The queue is bounded by number (max_pending) and by age: a step that has not begun at its
 * deadline is dropped without arithmetic. Order: tls/tls_jobs.h. Threads start on demand.
 *
 * note: yield. Before each step the thread gives up the processor. A loop that wakes during a step
 * does not always preempt the thread, and never does under SCHED_BATCH (engine/affinity.h). Without
 * the yield that loop would wait for a scheduler tick or a whole burst of handshakes, not for one
 * step.
 *
 * Without threads each step runs on the loop that submits it, as a tail task, one per turn.
 *
 * note: young. A thread costs up to eight context switches per handshake: the loop wakes for each
 * event, and preempts the thread. A loop that has only young sessions (netloop_is_young())
 * therefore runs its steps itself. If there are more threads than loops, the threads run all steps,
 * to use more processors.
 */
#ifndef TLS_TLS_HANDSHAKES_H
#define TLS_TLS_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "tls/tls_jobs.h"

struct figure_visitor;
struct tls_handshakes;

/* Value of `threads`: one per processor. Replace it by a number before tls_handshakes_start(). */
#define TLS_HANDSHAKES_AUTO UINT32_MAX

#define TLS_HANDSHAKES_THREADS_MAX 256

struct tls_handshakes_conf {
    unsigned threads;     /* 0: the loops run all steps */
    unsigned nice;        /* 0 to 19, added to the nice value of the process */
    unsigned max_pending; /* limit, for first and for further steps each */
    unsigned loops;       /* number of loops that may run steps; see note: young */
};

struct tls_handshakes_stats {
    unsigned threads; /* started so far */
    uint64_t steps_run;
    uint64_t steps_on_loops; /* part of `steps_run` */
    uint64_t steps_dropped;  /* past their deadline, or when pool or loop ended */
    uint64_t steps_refused;
    uint64_t steps_pending;
    int64_t oldest_ns; /* age of the oldest pending step */
};

/*
 * tls_handshakes_start(conf, out):
 * Create the pool; its threads are called hs-1, hs-2 ...
 *
 * Thread: main
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM
 */
int tls_handshakes_start(const struct tls_handshakes_conf *conf,
                         struct tls_handshakes **out) NODISCARD;

/*
 * tls_handshakes_submit(pool, job, deadline_ns, first):
 * Queue a step of a handshake, its ${first} or a further one. The caller has set job->on_loop.
 *
 * Thread: a loop; any, if there are threads and job->on_loop is false
 * Owns:   on 0 the pool runs or drops ${job}, once; on error the caller keeps it
 * Units:  ${deadline_ns}: clock_now_ns(), or CLOCK_NEVER
 * Errors: 0; -EBUSY (max_pending steps of this kind wait); -EAGAIN (no thread could start);
 *         -ENOMEM; -ESHUTDOWN (the pool was stopped, or the loop has ended)
 */
int tls_handshakes_submit(struct tls_handshakes *pool, struct tls_job *job, int64_t deadline_ns,
                          bool first) NODISCARD;

/*
 * tls_handshakes_stop(pool):
 * Refuse new steps, wait until the running ones end, and drop the waiting ones. Each loop drops its
 * own steps when it ends.
 *
 * Thread: main
 */
void tls_handshakes_stop(struct tls_handshakes *pool);

/*
 * tls_handshakes_free(pool):
 * Stop and free ${pool} or NULL. All loops that ran its steps have ended.
 *
 * Thread: main
 */
void tls_handshakes_free(struct tls_handshakes *pool);

/*
 * tls_handshakes_stats(pool, out) / tls_handshakes_figures(pool, v):
 * Read the figures of ${pool} / show them to ${v}.
 */
void tls_handshakes_stats(struct tls_handshakes *pool, struct tls_handshakes_stats *out);
void tls_handshakes_figures(struct tls_handshakes *pool, struct figure_visitor *v);

#endif
