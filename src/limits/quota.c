/*
 * limits/quota: see quota.h. Sequentially consistent for note: room in limits/connection_limit.h.
 */
#include "limits/quota.h"

#include "base/clock.h"

void quota_init(struct quota *q, const struct quota_conf *conf)
{
    *q = (struct quota){.conf = *conf};
}

bool quota_is_limited(const struct quota *q)
{
    return q->conf.max_connections > 0 || q->conf.rate.tokens > 0;
}

int64_t quota_wait_ns(const struct quota *q, int64_t now_ns)
{
    if (q->conf.max_connections > 0 && atomic_load(&q->open) >= q->conf.max_connections)
        return CLOCK_NEVER;
    return token_bucket_wait_ns(&q->bucket, &q->conf.rate, 1, now_ns);
}

/* Compare and exchange: a refused client never takes another's place. */
static bool quota_take_place(struct quota *q)
{
    unsigned open = atomic_load(&q->open);

    do {
        if (open >= q->conf.max_connections)
            return false;
    } while (!atomic_compare_exchange_weak(&q->open, &open, open + 1));
    return true;
}

bool quota_enter(struct quota *q, int64_t now_ns)
{
    if (!token_bucket_take(&q->bucket, &q->conf.rate, 1, now_ns))
        return false;
    if (q->conf.max_connections == 0 || quota_take_place(q))
        return true;
    token_bucket_give_back(&q->bucket, &q->conf.rate, 1);
    return false;
}

void quota_leave(struct quota *q)
{
    if (q->conf.max_connections > 0)
        MUST(atomic_fetch_sub(&q->open, 1) > 0);
}

void quota_withdraw(struct quota *q)
{
    token_bucket_give_back(&q->bucket, &q->conf.rate, 1);
    quota_leave(q);
}
