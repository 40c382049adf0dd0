/*
 * max_connections and open: sequentially consistent, for note: limit in limits/connection_limit.h.
 */
#include "limits/quota.h"

#include "base/clock.h"

static struct token_bucket_conf quota_rate(const struct quota *q)
{
    return (struct token_bucket_conf){
        .tokens = atomic_load_explicit(&q->tokens, memory_order_acquire), /* first, see quota_put */
        .period_ns = atomic_load_explicit(&q->period_ns, memory_order_relaxed),
        .burst = atomic_load_explicit(&q->burst, memory_order_relaxed)};
}

/* Store the tokens last: a thread that sees tokens above 0 sees a valid period and burst. */
static void quota_put(struct quota *q, const struct quota_conf *conf)
{
    if (conf->rate.tokens > 0) {
        atomic_store_explicit(&q->period_ns, conf->rate.period_ns, memory_order_relaxed);
        atomic_store_explicit(&q->burst, conf->rate.burst, memory_order_relaxed);
    }
    atomic_store_explicit(&q->tokens, conf->rate.tokens, memory_order_release);
    atomic_store(&q->max_connections, conf->max_connections);
}

void quota_init(struct quota *q, const struct quota_conf *conf)
{
    *q = (struct quota){.open = 0};
    quota_put(q, conf);
}

void quota_set(struct quota *q, const struct quota_conf *conf, int64_t now_ns)
{
    struct token_bucket_conf before = quota_rate(q);

    quota_put(q, conf);
    token_bucket_convert(&q->bucket, &before, &conf->rate, now_ns);
}

bool quota_is_limited(const struct quota *q)
{
    return atomic_load(&q->max_connections) > 0 ||
           atomic_load_explicit(&q->tokens, memory_order_relaxed) > 0;
}

int64_t quota_wait_ns(const struct quota *q, int64_t now_ns)
{
    struct token_bucket_conf rate = quota_rate(q);
    unsigned max = atomic_load(&q->max_connections);

    if (max > 0 && atomic_load(&q->open) >= max)
        return CLOCK_NEVER;
    return token_bucket_wait_ns(&q->bucket, &rate, 1, now_ns);
}

/* Compare and exchange: a refused client is never counted. */
static bool quota_take_place(struct quota *q)
{
    unsigned max = atomic_load(&q->max_connections);
    unsigned open = atomic_load(&q->open);

    do {
        if (max > 0 && open >= max)
            return false;
    } while (!atomic_compare_exchange_weak(&q->open, &open, open + 1));
    return true;
}

void quota_count(struct quota *q)
{
    atomic_fetch_add(&q->open, 1);
}

bool quota_enter(struct quota *q, int64_t now_ns)
{
    struct token_bucket_conf rate = quota_rate(q);

    if (!token_bucket_take(&q->bucket, &rate, 1, now_ns))
        return false;
    if (quota_take_place(q))
        return true;
    token_bucket_give_back(&q->bucket, &rate, 1);
    return false;
}

void quota_leave(struct quota *q)
{
    MUST(atomic_fetch_sub(&q->open, 1) > 0);
}

void quota_withdraw(struct quota *q)
{
    struct token_bucket_conf rate = quota_rate(q);

    token_bucket_give_back(&q->bucket, &rate, 1);
    quota_leave(q);
}
