/*
 * support/busy_pool: jobs that keep the thread of a pool of TLS handshakes busy until the test lets
 * go.
 */
#ifndef SUPPORT_BUSY_POOL_H
#define SUPPORT_BUSY_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct tls_handshakes;

/*
 * busy_pool_begin(pool) / busy_pool_end():
 * Occupy one thread of ${pool}; returns when it is busy / let all jobs go.
 *
 * Thread: the test's
 */
void busy_pool_begin(struct tls_handshakes *pool);
void busy_pool_end(void);

/*
 * busy_pool_queue(pool, first):
 * Queue a job behind those that run, as a ${first} step or a further one. Between
 * busy_pool_begin() and busy_pool_end() up to BUSY_POOL_JOBS.
 *
 * Thread: the test's
 */
#define BUSY_POOL_JOBS 4
void busy_pool_queue(struct tls_handshakes *pool, bool first);

/*
 * busy_pool_wait_run(): wait until a job runs that was queued since busy_pool_begin().
 * busy_pool_pending(pool): number of queued steps.
 *
 * Thread: the test's
 */
void busy_pool_wait_run(void);
uint64_t busy_pool_pending(struct tls_handshakes *pool);

#endif
