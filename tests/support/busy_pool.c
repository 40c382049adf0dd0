#include "support/busy_pool.h"

#include <check.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"

static atomic_uint running;
static atomic_bool leave;
static struct tls_job jobs[BUSY_POOL_JOBS];
static unsigned n_jobs;

static void busy_pool_run(struct tls_job *job)
{
    (void)job;
    atomic_fetch_add(&running, 1);
    UNTIL(atomic_load(&leave));
}

static void busy_pool_give_back(struct tls_job *job, bool wakes)
{
    (void)job;
    (void)wakes;
}

static void busy_pool_drop(struct tls_job *job)
{
    (void)job;
}

static const struct tls_job_type busy_pool_job = {
    .name = "test", .run = busy_pool_run, .give_back = busy_pool_give_back, .drop = busy_pool_drop};

void busy_pool_queue(struct tls_handshakes *pool, bool first)
{
    struct tls_job *job = &jobs[n_jobs++];

    ck_assert_uint_le(n_jobs, BUSY_POOL_JOBS);
    *job = (struct tls_job){.type = &busy_pool_job};
    ck_assert_int_eq(tls_handshakes_submit(pool, job, CLOCK_NEVER, first), 0);
}

void busy_pool_begin(struct tls_handshakes *pool)
{
    atomic_store(&running, 0);
    atomic_store(&leave, false);
    n_jobs = 0;
    busy_pool_queue(pool, true);
    UNTIL(atomic_load(&running) == 1);
}

void busy_pool_end(void)
{
    atomic_store(&leave, true);
}

void busy_pool_wait_run(void)
{
    UNTIL(atomic_load(&running) > 1);
}

uint64_t busy_pool_pending(struct tls_handshakes *pool)
{
    struct tls_handshakes_stats stats;

    tls_handshakes_stats(pool, &stats);
    return stats.steps_pending;
}
