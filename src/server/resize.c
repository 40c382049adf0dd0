#include "server/resize.h"

#include <errno.h>

#include "net/descriptor_budget.h"
#include "sessions/session_spread.h"
#include "sessions/workers.h"
#include "spare/spares.h"

/* Descriptors of a loop: epoll, eventfd, timerfd; of a worker also a pipe. */
#define RESIZE_LOOP_DESCRIPTORS 3
#define RESIZE_PIPE_DESCRIPTORS 2

static unsigned resize_descriptors(const struct resize *r)
{
    unsigned boss = r->change.boss.end - r->change.boss.first;
    unsigned workers = r->change.workers.end - r->change.workers.first;

    return RESIZE_LOOP_DESCRIPTORS * (boss + workers) + RESIZE_PIPE_DESCRIPTORS * workers;
}

int resize_prepare(struct resize *r, unsigned boss, unsigned workers)
{
    int rc = threads_prepare(r->threads, boss, workers, &r->change);

    if (rc < 0)
        return rc;
    rc = workers_prepare(r->workers, &r->change.workers);
    if (rc < 0)
        goto err_threads;
    rc = spares_prepare(r->spares, &r->change.workers);
    if (rc < 0)
        goto err_workers;
    rc = descriptor_budget_left(r->descriptors, resize_descriptors(r)) ? 0 : -EMFILE;
    if (rc < 0)
        goto err_spares;
    descriptor_budget_count(r->descriptors, resize_descriptors(r));
    return 0;

err_spares:
    spares_cancel(r->spares, &r->change.workers);
err_workers:
    workers_cancel(r->workers, &r->change.workers);
err_threads:
    threads_cancel(&r->change);
    return rc;
}

void resize_commit(const struct resize *r)
{
    threads_commit(r->threads, &r->change);
    spares_refill(r->spares);
    session_spread_begin(r->spread);
}

void resize_cancel(const struct resize *r)
{
    descriptor_budget_release(r->descriptors, resize_descriptors(r));
    spares_cancel(r->spares, &r->change.workers);
    workers_cancel(r->workers, &r->change.workers);
    threads_cancel(&r->change);
}
