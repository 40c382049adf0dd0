/*
 * limits/quota: how many connections there may be at a time, and how many may come in a time.
 */
#ifndef LIMITS_QUOTA_H
#define LIMITS_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

/* What is done with a client that is one too many. */
enum quota_over {
    QUOTA_OVER_WAIT, /* it stays in the kernel's queue until there is room */
    QUOTA_OVER_CLOSE,
    QUOTA_OVER_RESET
};

struct quota_conf {
    unsigned max_connections; /* 0: no limit */
    struct token_bucket_conf rate;
};

struct quota {
    struct quota_conf conf;
    atomic_uint open; /* counted only when there is a maximum */
    struct token_bucket bucket;
};

/*
 * quota_init(q, conf):
 * Nobody is inside.
 *
 * Thread: before start
 * Owns:   ${conf} is copied
 */
void quota_init(struct quota *q, const struct quota_conf *conf);

/*
 * quota_is_limited(q):
 * Is there any limit?
 *
 * Thread: any
 */
bool quota_is_limited(const struct quota *q);

/*
 * quota_wait_ns(q, now_ns):
 * How long until one more may come: 0: now; CLOCK_NEVER: when one has left.
 *
 * Thread: any
 * Units:  ns
 */
int64_t quota_wait_ns(const struct quota *q, int64_t now_ns);

/*
 * quota_enter(q, now_ns):
 * One more comes, unless that were too many.
 *
 * Thread: any
 */
bool quota_enter(struct quota *q, int64_t now_ns) NODISCARD;

/*
 * quota_leave(q) / quota_withdraw(q):
 * One who came has gone; one who was let in did not come, and does not count for the rate either.
 *
 * Thread: any
 */
void quota_leave(struct quota *q);
void quota_withdraw(struct quota *q);

#endif
