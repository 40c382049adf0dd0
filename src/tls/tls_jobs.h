/*
 * tls/tls_jobs: queue of handshake steps, in the order in which the threads take them.
 *
 * Further steps of handshakes under way come before first steps: they are few, mostly short, and
 * complete handshakes that have cost a signature already. Both kinds are FIFO at first. Once the
 * oldest step has waited for TLS_JOBS_YOUNG_NS, the youngest comes first: its client still waits,
 * where FIFO would serve only clients that are about to give up.
 */
#ifndef TLS_TLS_JOBS_H
#define TLS_TLS_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

struct loop;
struct tls_job;

struct tls_job_type {
    const char *name;
    void (*run)(struct tls_job *job);
    /* Called after run(): give ${job} back to its loop, and wake the loop if ${wakes}. */
    void (*give_back)(struct tls_job *job, bool wakes);
    /* Called instead of run() and give_back() if ${job} is late, or pool or loop has ended. */
    void (*drop)(struct tls_job *job);
};

/* Embedded in its owner, which sets `type` and `loop`. */
struct tls_job {
    const struct tls_job_type *type;
    struct list node;
    struct loop *loop;   /* the submitting loop */
    int64_t deadline_ns; /* dropped if it has not begun by then */
    int64_t submitted_ns;
    bool first;   /* first step of its handshake */
    bool on_loop; /* `loop` may run the job itself: see note: young in tls_handshakes.h */
};

struct tls_jobs {
    struct list first, further;
    unsigned n;
    int64_t taken_at_ns; /* last time a job was taken, or the first one queued */
};

#define TLS_JOBS_YOUNG_NS (1 * NS_PER_S)

/* If jobs wait, but none is taken for as long, the process did not run: see engine/heard.h. */
#define TLS_JOBS_ABSENCE_NS (1 * NS_PER_S)

/* tls_jobs_init(q): initialise ${q} as empty. Thread: owner */
void tls_jobs_init(struct tls_jobs *q);

/*
 * tls_jobs_add(q, job) / tls_jobs_take(q, now_ns):
 * Queue ${job}, with `first` and `submitted_ns` set / remove and return the next job, which may be
 * late; NULL: empty queue. An absence of the process postpones the deadlines of all jobs.
 *
 * Thread: owner
 */
void tls_jobs_add(struct tls_jobs *q, struct tls_job *job);
struct tls_job *tls_jobs_take(struct tls_jobs *q, int64_t now_ns);

/*
 * tls_jobs_oldest_at_ns(q):
 * Return when the oldest job was submitted; CLOCK_NEVER: empty queue.
 *
 * Thread: owner
 */
int64_t tls_jobs_oldest_at_ns(const struct tls_jobs *q);

/* tls_job_is_late(job, now_ns): has the deadline of ${job} passed? Thread: owner */
static inline bool tls_job_is_late(const struct tls_job *job, int64_t now_ns)
{
    return job->deadline_ns <= now_ns;
}

#endif
