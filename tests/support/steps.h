/*
 * support/steps: steps of handshakes that note when they ran, were dropped or given back.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_STEPS_H
#define SUPPORT_STEPS_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tls/tls_handshakes.h"

struct tls_handshakes;

#define MANY 40

struct step {
    struct tls_job job;
    unsigned order; /* in which it was run or dropped; from 1 */
    uint64_t turn;  /* of its loop */
    atomic_uint run, dropped, given_back;
    bool woke; /* its loop, when it was given back */
    char thread[16];
    int nice;
    sem_t *gate;              /* run() waits for it; NULL: does not wait */
    struct step *then;        /* run() submits it as a further step; NULL: none */
    struct tls_handshakes *p; /* for `then` */
};

struct steps {
    struct tls_handshakes *pool;
    struct step steps[MANY], blocker;
    sem_t gate;
};

extern struct steps steps;

void steps_setup(void);

void steps_start(unsigned threads, unsigned max_pending);

struct tls_handshakes_stats steps_stats(void);

void steps_submit(struct step *s, int64_t deadline_ns, bool first);

/* Keep the only thread busy until sem_post(&gate). */
void steps_block(void);

void steps_expect_once(const struct step *s, bool runs);

#endif
