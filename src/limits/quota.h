/*
 * limits/quota: a limit of connections and of the connection rate.
 *
 * note: settings. Each setting is a separate atomic. A check during quota_set() may mix old and new
 * settings, for one connection.
 */
#ifndef LIMITS_QUOTA_H
#define LIMITS_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

enum quota_over {
    QUOTA_OVER_WAIT, /* wait in the kernel's backlog */
    QUOTA_OVER_CLOSE,
    QUOTA_OVER_RESET,
    QUOTA_OVER_LOG /* serve, but count and log: a dry run */
};

struct quota_conf {
    unsigned max_connections; /* 0: no limit */
    struct token_bucket_conf rate;
};

struct quota {
    atomic_uint max_connections; /* first of four settings; see note: settings */
    _Atomic uint64_t tokens;
    _Atomic int64_t period_ns;
    _Atomic uint64_t burst;
    atomic_uint open;
    struct token_bucket bucket;
};

/*
 * quota_init(q, conf):
 * Initialize ${q}, without connections.
 *
 * Thread: any, before other threads can use ${q}
 */
void quota_init(struct quota *q, const struct quota_conf *conf);

/*
 * quota_set(q, conf, now_ns):
 * Change the limits. Open connections stay, even above a lower maximum.
 *
 * Thread: any, one at a time
 */
void quota_set(struct quota *q, const struct quota_conf *conf, int64_t now_ns);

/* quota_is_limited(q): is any limit set? */
bool quota_is_limited(const struct quota *q);

/*
 * quota_wait_ns(q, now_ns):
 * Time until the next connection may enter. 0: now; CLOCK_NEVER: when another leaves.
 */
int64_t quota_wait_ns(const struct quota *q, int64_t now_ns);

/* quota_enter(q, now_ns): count one connection in; false if a limit is reached. */
bool quota_enter(struct quota *q, int64_t now_ns) NODISCARD;

/* quota_count(q): count one connection in, whatever the limits are. */
void quota_count(struct quota *q);

/*
 * quota_leave(q) / quota_withdraw(q):
 * Count one connection out; withdraw also gives its rate token back.
 */
void quota_leave(struct quota *q);
void quota_withdraw(struct quota *q);

#endif
