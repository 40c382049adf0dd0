/*
 * limits/token_bucket: so many a period, and some at once after a rest.
 *
 * A bucket holds up to `burst` tokens and gets `tokens` each `period_ns`, evenly. It is one number,
 * the instant at which it will be full if nobody takes any: what a token takes to come back is
 * added to it, and time alone refills. So there is no lock and no timer, and a bucket that nobody
 * has touched for long is full and can be forgotten.
 *
 *   tokens now = burst - (full_at - now) / (period / tokens)        full_at <= now: full
 *
 * Zeroed it is full. Several threads may use one: what they take together is exact.
 */
#ifndef LIMITS_TOKEN_BUCKET_H
#define LIMITS_TOKEN_BUCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct token_bucket_conf {
    uint64_t tokens;   /* so many each `period_ns`; 0: there is no limit */
    int64_t period_ns; /* above 0 */
    uint64_t burst;    /* above 0 */
};

struct token_bucket {
    _Atomic int64_t full_at_ns;
};

/*
 * token_bucket_take(b, conf, n, now_ns):
 * Take ${n} tokens if there are so many, or none.
 *
 * Thread: any
 * Errors: none; false when there are not, so always for more than conf->burst
 * Source: ITU-T I.371, Annex A (generic cell rate algorithm, virtual scheduling)
 */
bool token_bucket_take(struct token_bucket *b, const struct token_bucket_conf *conf, uint64_t n,
                       int64_t now_ns) NODISCARD;

/*
 * token_bucket_reserve(b, conf, n, now_ns):
 * Take ${n} tokens, there or not: how long until all of them are. Who reserves later waits for them
 * too, so that those who wait are served in the order they came.
 *
 * Thread: any
 * Units:  ns; 0: they are there
 */
int64_t token_bucket_reserve(struct token_bucket *b, const struct token_bucket_conf *conf,
                             uint64_t n, int64_t now_ns) NODISCARD;

/*
 * token_bucket_give_back(b, conf, n):
 * Undo taking ${n}, or reserving them.
 *
 * Thread: any
 */
void token_bucket_give_back(struct token_bucket *b, const struct token_bucket_conf *conf,
                            uint64_t n);

/*
 * token_bucket_wait_ns(b, conf, n, now_ns):
 * How long until there are ${n} tokens, at most conf->burst, if nobody takes any; 0: they are
 * there.
 *
 * Thread: any
 * Units:  ns
 */
int64_t token_bucket_wait_ns(const struct token_bucket *b, const struct token_bucket_conf *conf,
                             uint64_t n, int64_t now_ns);

#endif
