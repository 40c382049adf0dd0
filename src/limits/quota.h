/*
 * limits/quota: maximum connections and connection rate.
 *
 * note: settings. Each is an atomic of its own: a check beside quota_set() may see old and new
 * ones, for one connection.
 */
#ifndef LIMITS_QUOTA_H
#define LIMITS_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

/* Over the limit. */
enum quota_over {
    QUOTA_OVER_WAIT, /* in the kernel's backlog, until there is room */
    QUOTA_OVER_CLOSE,
    QUOTA_OVER_RESET
};

struct quota_conf {
    unsigned max_connections; /* 0: no limit */
    struct token_bucket_conf rate;
};

struct quota {
    atomic_uint max_connections; /* this and the rate: see note: settings */
    _Atomic uint64_t tokens;
    _Atomic int64_t period_ns;
    _Atomic uint64_t burst;
    atomic_uint open;
    struct token_bucket bucket;
};

/*
 * quota_init(q, conf):
 * Start with no connections.
 *
 * Thread: before start
 */
void quota_init(struct quota *q, const struct quota_conf *conf);

/*
 * quota_set(q, conf, now_ns):
 * Change the limits. Open connections stay, also above a lower maximum.
 *
 * Thread: any; one at a time
 */
void quota_set(struct quota *q, const struct quota_conf *conf, int64_t now_ns);

/*
 * quota_is_limited(q):
 * Is any limit set?
 *
 * Thread: any
 */
bool quota_is_limited(const struct quota *q);

/*
 * quota_wait_ns(q, now_ns):
 * Return the time until the next connection may come: 0: now; CLOCK_NEVER: after one has left.
 *
 * Thread: any
 */
int64_t quota_wait_ns(const struct quota *q, int64_t now_ns);

/*
 * quota_enter(q, now_ns):
 * Count one connection in; false over the limit.
 *
 * Thread: any
 */
bool quota_enter(struct quota *q, int64_t now_ns) NODISCARD;

/*
 * quota_leave(q) / quota_withdraw(q):
 * Count one connection out; withdraw also gives its rate token back.
 *
 * Thread: any
 */
void quota_leave(struct quota *q);
void quota_withdraw(struct quota *q);

#endif
