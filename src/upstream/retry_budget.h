/*
 * upstream/retry_budget: how many connection attempts may be retries, so that a storm of them does
 * not grow.
 *
 * Each session adds a share of a retry, up to a reserve of RETRY_BUDGET_RESERVE. Each retry takes
 * one. Without a reserve RETRY_BUDGET_MIN_RATE a second are allowed, so that an upstream with few
 * sessions can retry.
 *
 * All of it is atomics, relaxed: no other memory hangs on them.
 */
#ifndef UPSTREAM_RETRY_BUDGET_H
#define UPSTREAM_RETRY_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

#define RETRY_BUDGET_RESERVE  1000
#define RETRY_BUDGET_MIN_RATE 10

struct retry_budget {
    unsigned percent;         /* retries for 100 sessions; 0: none, ever */
    _Atomic uint64_t reserve; /* hundredths of a retry */
    struct token_bucket min_rate;
    _Atomic uint64_t retries;
    _Atomic uint64_t refused;
};

/*
 * retry_budget_init(b, percent):
 * An empty reserve.
 *
 * Thread: before start
 */
void retry_budget_init(struct retry_budget *b, unsigned percent);

/*
 * retry_budget_add(b):
 * Count a session. Reads only while the reserve is full.
 *
 * Thread: any
 */
void retry_budget_add(struct retry_budget *b);

/*
 * retry_budget_take(b, now_ns):
 * Count a retry. False, and counted as refused: the budget is used up.
 *
 * Thread: any
 * Errors: false
 * Source: Finagle, RetryBudget (com.twitter.finagle.service)
 */
bool retry_budget_take(struct retry_budget *b, int64_t now_ns) NODISCARD;

#endif
