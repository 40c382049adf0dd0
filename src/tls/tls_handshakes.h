/*
 * tls/tls_handshakes: thread pool for handshakes, so that established connections do not wait for
 * the arithmetic of new ones.
 *
 * A loop submits one step of a handshake: what the library does with the messages received so far.
 * run() works on state that no other thread touches meanwhile, and ends with a task for the
 * connection's loop. A session that ends during a step leaves this state to the thread.
 *
 * The queue is bounded by number (max_pending) and by age: a step that has not begun at its
 * deadline is dropped without arithmetic. Order: tls/tls_jobs.h. Threads start on demand.
 *
 * note: yield. Before each step the thread gives up the processor. A loop that wakes during a step
 * does not always preempt it, never under SCHED_BATCH (engine/affinity.h): without the yield it
 * would wait for a scheduler tick or the whole burst of handshakes; with it, for one step.
 *
 * Without threads each step runs on the loop that submits it, as a tail task, one in a turn.
 *
 * note: young. A thread costs up to eight context switches a handshake: the loop wakes for each
 * event, and preempts the thread. Threads protect established connections: a loop that has only
 * young sessions (netloop_is_young()) runs its steps itself, unless there are more threads than
 * loops, to use more processors.
 */
#ifndef TLS_TLS_HANDSHAKES_H
#define TLS_TLS_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "tls/tls_jobs.h"

struct figure_visitor;
struct tls_handshakes;

/*
 * Value of `threads`: one for each processor. Replace it by a number before tls_handshakes_start().
 */
#define TLS_HANDSHAKES_AUTO UINT32_MAX

#define TLS_HANDSHAKES_THREADS_MAX 256

struct tls_handshakes_conf {
    unsigned threads; /* 0: none, see above */
    unsigned nice;    /* added to the nice value of the process, 0 to 19 */
    unsigned max_pending;
    unsigned loops; /* number of loops that may run steps; see note: young */
};

struct tls_handshakes_stats {
    unsigned threads; /* started so far */
    uint64_t steps_run;
    uint64_t steps_on_loops; /* of these */
    uint64_t steps_dropped;  /* past their deadline, or at the end of the pool */
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
 * Queue a step of a handshake, its ${first} one or a further one. The caller has set job->on_loop.
 *
 * Thread: a loop; any if there are threads
 * Owns:   on 0 the pool runs or drops ${job}, once; on error the caller keeps it
 * Units:  ${deadline_ns}: clock_now_ns(), or CLOCK_NEVER
 * Errors: 0; -EBUSY (max_pending steps of its kind wait); -EAGAIN (no thread could start); -ENOMEM;
 *         -ESHUTDOWN (the pool was stopped, or the loop has ended)
 */
int tls_handshakes_submit(struct tls_handshakes *pool, struct tls_job *job, int64_t deadline_ns,
                          bool first) NODISCARD;

/*
 * tls_handshakes_stop(pool):
 * Refuse further steps, wait for those that run, and drop those that wait. Loops drop their own
 * steps: without threads they must have ended before.
 *
 * Thread: main
 */
void tls_handshakes_stop(struct tls_handshakes *pool);

/*
 * tls_handshakes_free(pool):
 * Stop and free ${pool}, which no thread uses any more, or NULL.
 *
 * Thread: main
 */
void tls_handshakes_free(struct tls_handshakes *pool);

/*
 * tls_handshakes_stats(pool, out) / tls_handshakes_figures(pool, v):
 * Read the figures of ${pool} / visit them.
 *
 * Thread: any
 */
void tls_handshakes_stats(struct tls_handshakes *pool, struct tls_handshakes_stats *out);
void tls_handshakes_figures(struct tls_handshakes *pool, struct figure_visitor *v);

#endif
