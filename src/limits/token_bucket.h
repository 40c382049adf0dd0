/*
 * limits/token_bucket: rate limit with a burst.
 *
 * A bucket holds up to `burst` tokens and gains `tokens` each `period_ns`, evenly. Its state is one
 * number: the instant when it will be full. Taking tokens delays this instant by the time to gain
 * them again. No lock, no timer.
 *
 *   tokens now = burst - (full_at - now) / (period / tokens)        full_at <= now: full
 *
 * A zeroed bucket is full. Threads may share a bucket: the rate is kept exactly.
 */
#ifndef LIMITS_TOKEN_BUCKET_H
#define LIMITS_TOKEN_BUCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct token_bucket_conf {
    uint64_t tokens;   /* per `period_ns`; 0: no limit */
    int64_t period_ns; /* above 0 */
    uint64_t burst;    /* above 0 */
};

struct token_bucket {
    _Atomic int64_t full_at_ns;
};

/*
 * token_bucket_take(b, conf, n, now_ns):
 * Take ${n} tokens, or take none and return false. False if ${n} is above conf->burst.
 *
 * Source: ITU-T I.371, Annex A (generic cell rate algorithm, virtual scheduling)
 */
bool token_bucket_take(struct token_bucket *b, const struct token_bucket_conf *conf, uint64_t n,
                       int64_t now_ns) NODISCARD;

/*
 * token_bucket_reserve(b, conf, n, now_ns):
 * Take ${n} tokens, overdrawing the bucket if needed; return the time until they are due. First
 * come, first served.
 */
int64_t token_bucket_reserve(struct token_bucket *b, const struct token_bucket_conf *conf,
                             uint64_t n, int64_t now_ns) NODISCARD;

/* token_bucket_give_back(b, conf, n): undo taking or reserving ${n} tokens. */
void token_bucket_give_back(struct token_bucket *b, const struct token_bucket_conf *conf,
                            uint64_t n);

/*
 * token_bucket_wait_ns(b, conf, n, now_ns):
 * Time until there are ${n} tokens; ${n} must not exceed conf->burst.
 */
int64_t token_bucket_wait_ns(const struct token_bucket *b, const struct token_bucket_conf *conf,
                             uint64_t n, int64_t now_ns);

/*
 * token_bucket_convert(b, from, to, now_ns):
 * Convert ${b} from rate ${from} to ${to}. It lacks as many tokens as before, at most the new
 * burst.
 */
void token_bucket_convert(struct token_bucket *b, const struct token_bucket_conf *from,
                          const struct token_bucket_conf *to, int64_t now_ns);

#endif
