#include "server/descriptors.h"

#include <errno.h>

#include "base/log.h"
#include "check/checker.h"
#include "net/descriptor_budget.h"

#define DESCRIPTORS_SPARE      4
#define DESCRIPTORS_PER_LOOKUP 3
#define DESCRIPTORS_PER_WORKER 2

/* Checks get at most 1 / DESCRIPTORS_CHECKS_PART of the descriptors. */
#define DESCRIPTORS_CHECKS_PART 16

/* 1 / DESCRIPTORS_RESERVE_PART of the clients' descriptors is never lent. */
#define DESCRIPTORS_RESERVE_PART 16

unsigned descriptors_checks_max(void)
{
    unsigned max = descriptor_budget_limit() / DESCRIPTORS_CHECKS_PART;

    return max < CHECKER_UNDER_WAY ? max : CHECKER_UNDER_WAY;
}

static unsigned descriptors_of(const struct descriptors_aside *aside)
{
    return DESCRIPTORS_PER_LOOKUP * aside->lookups + aside->checks +
           DESCRIPTORS_PER_WORKER * aside->workers + aside->others;
}

int descriptors_set_limit(struct descriptor_budget *d, const struct descriptors_aside *aside,
                          unsigned each)
{
    unsigned n = descriptors_of(aside);
    unsigned counted = atomic_load_explicit(&d->used, memory_order_relaxed) - n;
    unsigned limit = descriptor_budget_limit();
    unsigned open = descriptor_budget_open() - counted + DESCRIPTORS_SPARE;

    d->max = limit > open ? limit - open : 0;
    d->reserve = d->max > n ? (d->max - n) / DESCRIPTORS_RESERVE_PART : 0;
    if (descriptor_budget_left(d, each))
        return 0;
    log_error("limit of open files: %u: at least %u are needed: %u for the process, %u set aside "
              "(lookups, checks, workers, [admin], an upgrade), %u for one client: raise the limit "
              "(LimitNOFILE= of the unit, ulimit -n)",
              limit, open + counted + n + each, open + counted, n, each);
    return -EMFILE;
}

static unsigned descriptors_more(const struct descriptors_aside *from,
                                 const struct descriptors_aside *to)
{
    unsigned before = descriptors_of(from), after = descriptors_of(to);

    return after > before ? after - before : 0;
}

int descriptors_prepare(struct descriptor_budget *d, const struct descriptors_aside *from,
                        const struct descriptors_aside *to)
{
    unsigned n = descriptors_more(from, to);

    if (n > 0 && !descriptor_budget_left(d, n))
        return -EMFILE;
    descriptor_budget_count(d, n);
    return 0;
}

void descriptors_commit(struct descriptor_budget *d, const struct descriptors_aside *from,
                        const struct descriptors_aside *to)
{
    descriptor_budget_release(d, descriptors_more(to, from));
}

void descriptors_cancel(struct descriptor_budget *d, const struct descriptors_aside *from,
                        const struct descriptors_aside *to)
{
    descriptor_budget_release(d, descriptors_more(from, to));
}
