#include "balance/retry_budget.h"

#include "base/clock.h"

#define RETRY_BUDGET_ONE  100
#define RETRY_BUDGET_FULL ((uint64_t)RETRY_BUDGET_RESERVE * RETRY_BUDGET_ONE)

static const struct token_bucket_conf retry_budget_min_rate = {
    .tokens = RETRY_BUDGET_MIN_RATE, .period_ns = NS_PER_S, .burst = RETRY_BUDGET_MIN_RATE};

void retry_budget_init(struct retry_budget *b, unsigned percent)
{
    *b = (struct retry_budget){.percent = percent};
}

void retry_budget_set(struct retry_budget *b, unsigned percent)
{
    atomic_store_explicit(&b->percent, percent, memory_order_relaxed);
}

static unsigned retry_budget_percent(const struct retry_budget *b)
{
    return atomic_load_explicit(&b->percent, memory_order_relaxed);
}

void retry_budget_add(struct retry_budget *b)
{
    uint64_t reserve = atomic_load_explicit(&b->reserve, memory_order_relaxed), more;
    unsigned percent = retry_budget_percent(b);

    do {
        more = reserve + percent;
        more = more < RETRY_BUDGET_FULL ? more : RETRY_BUDGET_FULL;
        if (more == reserve)
            return;
    } while (!atomic_compare_exchange_weak_explicit(&b->reserve, &reserve, more,
                                                    memory_order_relaxed, memory_order_relaxed));
}

static bool retry_budget_take_reserve(struct retry_budget *b)
{
    uint64_t reserve = atomic_load_explicit(&b->reserve, memory_order_relaxed);

    do
        if (reserve < RETRY_BUDGET_ONE)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&b->reserve, &reserve, reserve - RETRY_BUDGET_ONE,
                                                  memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool retry_budget_take(struct retry_budget *b, int64_t now_ns)
{
    bool taken = retry_budget_percent(b) > 0 &&
                 (retry_budget_take_reserve(b) ||
                  token_bucket_take(&b->min_rate, &retry_budget_min_rate, 1, now_ns));

    atomic_fetch_add_explicit(taken ? &b->retries : &b->refused, 1, memory_order_relaxed);
    return taken;
}
