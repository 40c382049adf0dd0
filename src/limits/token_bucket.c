/* All accesses are relaxed: the state is one number and guards no other memory. */
#include "limits/token_bucket.h"

#include "base/clock.h"

/* Time for ${n} tokens, rounded up: the rate is never exceeded. */
static int64_t token_bucket_cost_ns(const struct token_bucket_conf *conf, uint64_t n)
{
    unsigned __int128 ns =
        ((unsigned __int128)n * (uint64_t)conf->period_ns + conf->tokens - 1) / conf->tokens;

    return ns < (unsigned __int128)CLOCK_NEVER ? (int64_t)ns : CLOCK_NEVER;
}

static int64_t token_bucket_after(int64_t full_at_ns, int64_t cost_ns, int64_t now_ns)
{
    return clock_add_ns(full_at_ns > now_ns ? full_at_ns : now_ns, cost_ns);
}

/* Time until a bucket that is full at ${next_ns} is no longer overdrawn. */
static int64_t token_bucket_debt_ns(const struct token_bucket_conf *conf, int64_t next_ns,
                                    int64_t now_ns)
{
    int64_t debt_ns = next_ns - clock_add_ns(now_ns, token_bucket_cost_ns(conf, conf->burst));

    return debt_ns > 0 ? debt_ns : 0;
}

bool token_bucket_take(struct token_bucket *b, const struct token_bucket_conf *conf, uint64_t n,
                       int64_t now_ns)
{
    int64_t cost_ns, limit_at_ns, next_ns;
    int64_t full_at_ns = atomic_load_explicit(&b->full_at_ns, memory_order_relaxed);

    if (conf->tokens == 0)
        return true;
    cost_ns = token_bucket_cost_ns(conf, n);
    limit_at_ns = clock_add_ns(now_ns, token_bucket_cost_ns(conf, conf->burst));
    do {
        next_ns = token_bucket_after(full_at_ns, cost_ns, now_ns);
        if (next_ns > limit_at_ns)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->full_at_ns, &full_at_ns, next_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

int64_t token_bucket_reserve(struct token_bucket *b, const struct token_bucket_conf *conf,
                             uint64_t n, int64_t now_ns)
{
    int64_t full_at_ns = atomic_load_explicit(&b->full_at_ns, memory_order_relaxed);
    int64_t cost_ns, next_ns;

    if (conf->tokens == 0)
        return 0;
    cost_ns = token_bucket_cost_ns(conf, n);
    do
        next_ns = token_bucket_after(full_at_ns, cost_ns, now_ns);
    while (!atomic_compare_exchange_weak_explicit(&b->full_at_ns, &full_at_ns, next_ns,
                                                  memory_order_relaxed, memory_order_relaxed));
    return token_bucket_debt_ns(conf, next_ns, now_ns);
}

/* The time is rounded down, so that taking and giving back gains no tokens. */
void token_bucket_give_back(struct token_bucket *b, const struct token_bucket_conf *conf,
                            uint64_t n)
{
    if (conf->tokens > 0)
        atomic_fetch_sub_explicit(
            &b->full_at_ns,
            (int64_t)((unsigned __int128)n * (uint64_t)conf->period_ns / conf->tokens),
            memory_order_relaxed);
}

int64_t token_bucket_wait_ns(const struct token_bucket *b, const struct token_bucket_conf *conf,
                             uint64_t n, int64_t now_ns)
{
    int64_t full_at_ns = atomic_load_explicit(&b->full_at_ns, memory_order_relaxed);
    int64_t next_ns;

    if (conf->tokens == 0)
        return 0;
    next_ns = token_bucket_after(full_at_ns, token_bucket_cost_ns(conf, n), now_ns);
    return token_bucket_debt_ns(conf, next_ns, now_ns);
}

void token_bucket_convert(struct token_bucket *b, const struct token_bucket_conf *from,
                          const struct token_bucket_conf *to, int64_t now_ns)
{
    int64_t full_at_ns = atomic_load_explicit(&b->full_at_ns, memory_order_relaxed);
    int64_t next_ns;

    do {
        uint64_t missing = 0;

        if (from->tokens > 0 && full_at_ns > now_ns)
            missing = (uint64_t)((unsigned __int128)(full_at_ns - now_ns) * from->tokens /
                                 (uint64_t)from->period_ns);
        missing = missing < to->burst ? missing : to->burst;
        next_ns = to->tokens > 0 ? clock_add_ns(now_ns, token_bucket_cost_ns(to, missing)) : 0;
    } while (!atomic_compare_exchange_weak_explicit(&b->full_at_ns, &full_at_ns, next_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
}
