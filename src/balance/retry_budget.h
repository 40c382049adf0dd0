/*
 * balance/retry_budget: limit retries to a share of sessions, against retry storms.
 *
 * Each session adds `percent` hundredths of a retry to the reserve (RETRY_BUDGET_RESERVE retries at
 * most). While it is empty, RETRY_BUDGET_MIN_RATE retries per second are allowed. Atomics are
 * relaxed: they guard no other data.
 */
#ifndef BALANCE_RETRY_BUDGET_H
#define BALANCE_RETRY_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

#define RETRY_BUDGET_RESERVE  1000
#define RETRY_BUDGET_MIN_RATE 10

struct retry_budget {
    atomic_uint percent;      /* retries per 100 sessions; 0: no retries */
    _Atomic uint64_t reserve; /* hundredths of a retry */
    struct token_bucket min_rate;
    _Atomic uint64_t retries;
    _Atomic uint64_t refused;
};

/*
 * retry_budget_init(b, percent):
 * Initialize ${b} with an empty reserve.
 *
 * Thread: any, before ${b} is shared
 */
void retry_budget_init(struct retry_budget *b, unsigned percent);

/*
 * retry_budget_set(b, percent) / retry_budget_add(b):
 * Set ${percent} and keep the reserve / add a session's share to the reserve. A full reserve is not
 * written.
 */
void retry_budget_set(struct retry_budget *b, unsigned percent);
void retry_budget_add(struct retry_budget *b);

/*
 * retry_budget_take(b, now_ns):
 * Take one retry from the budget; false: exhausted.
 *
 * Source: Finagle, RetryBudget (com.twitter.finagle.service)
 */
bool retry_budget_take(struct retry_budget *b, int64_t now_ns) NODISCARD;

#endif
