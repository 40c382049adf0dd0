/*
 * limits/connection_limit: connection limits of the process and its listeners; listen sockets that
 * wait at a limit.
 *
 * note: limit. A socket at a limit publishes that it waits, then checks the limit again. A leaving
 * session counts itself out, then submits the tasks of waiting sockets to their boss loops. Both
 * sides are sequentially consistent: the socket sees the free place, or the session sees the
 * waiting socket.
 *
 *   NONE --at a limit--> WAITING --a session leaves--> WOKEN (task submitted) --task runs--> NONE
 *                          \--second check: below the limit--> NONE
 */
#ifndef LIMITS_CONNECTION_LIMIT_H
#define LIMITS_CONNECTION_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"
#include "engine/task.h"
#include "limits/hold.h"
#include "limits/quota.h"

struct loop;

enum connection_limit_waiter_state {
    CONNECTION_LIMIT_NONE,
    CONNECTION_LIMIT_WAITING,
    CONNECTION_LIMIT_WOKEN
};

struct connection_limit_waiter {
    struct loop *loop;
    void (*again)(struct connection_limit_waiter *w); /* called on `loop`: retry */
    atomic_int state; /* enum connection_limit_waiter_state; see note: limit */
    struct task wake;
    struct list link; /* empty: not registered */
};

struct connection_limit {
    struct quota quota;
    _Atomic(const char *) closed_by; /* option that refuses all clients; NULL: open */
    atomic_uint waiting;
    struct lock lock; /* guards `waiters` */
    struct list waiters;
};

/* Longest time to a retry, if a wake-up cannot be submitted. */
#define CONNECTION_LIMIT_RETRY_NS INT64_C(1000000000)

/*
 * connection_limit_init(limit, conf):
 * Initialize ${limit}, without connections.
 *
 * Thread: any, before other threads can use ${limit}
 */
void connection_limit_init(struct connection_limit *limit, const struct quota_conf *conf);

/*
 * connection_limit_set(limit, own, conf):
 * Change the limits of a listener's quota ${own}, or of the process if ${own} is NULL.
 *
 * Thread: any, one at a time
 */
void connection_limit_set(struct connection_limit *limit, struct quota *own,
                          const struct quota_conf *conf);

/*
 * connection_limit_add(limit, w, loop, again) / connection_limit_remove(limit, w):
 * Register ${w} as a waiter on ${loop} / remove ${w} if it is registered.
 *
 * Thread: any / loop of ${w}; any after that loop has ended
 * Owns:   free ${w} in a LOOP_CONTROL task submitted after the removal: a wake-up may be queued
 */
void connection_limit_add(struct connection_limit *limit, struct connection_limit_waiter *w,
                          struct loop *loop, void (*again)(struct connection_limit_waiter *w));
void connection_limit_remove(struct connection_limit *limit, struct connection_limit_waiter *w);

/*
 * connection_limit_enter(limit, own) / connection_limit_enter_or_wait(limit, own, w):
 * Count a client in for the process and for its listener's quota ${own}. Returns 0, or the time
 * until a retry. enter_or_wait also wakes ${w} when a session leaves.
 *
 * Thread: any / loop of ${w}
 * Units:  ns, at most CONNECTION_LIMIT_RETRY_NS
 */
int64_t connection_limit_enter(struct connection_limit *limit, struct quota *own) NODISCARD;
int64_t connection_limit_enter_or_wait(struct connection_limit *limit, struct quota *own,
                                       struct connection_limit_waiter *w) NODISCARD;

/* connection_limit_is_first(over): does ${over} count clients before they are accepted? */
static inline bool connection_limit_is_first(enum quota_over over)
{
    return over == QUOTA_OVER_WAIT || over == QUOTA_OVER_LOG;
}

/*
 * connection_limit_begin(limit, own, w, over, is_over):
 * As connection_limit_enter_or_wait(), but with QUOTA_OVER_LOG ${own} only counts: ${is_over} tells
 * that it would refuse the client.
 *
 * Thread: loop of ${w}
 */
int64_t connection_limit_begin(struct connection_limit *limit, struct quota *own,
                               struct connection_limit_waiter *w, enum quota_over over,
                               bool *is_over) NODISCARD;

/*
 * connection_limit_pass_or_wait(limit, h, w) / connection_limit_retry(limit):
 * pass_or_wait: call hold_pass(); if it refuses, ${w} waits for connection_limit_retry(). Returns
 * 0, or the time until a retry.
 * retry: wake all waiters. Call it after hold_open() or hold_allow().
 *
 * Thread: loop of ${w} / any
 */
int64_t connection_limit_pass_or_wait(struct connection_limit *limit, struct hold *h,
                                      struct connection_limit_waiter *w) NODISCARD;
void connection_limit_retry(struct connection_limit *limit);

/*
 * connection_limit_count(limit, own):
 * Count a client in, whatever the limits are: another process has served it so far.
 */
void connection_limit_count(struct connection_limit *limit, struct quota *own);

/*
 * connection_limit_leave(limit, own) / connection_limit_withdraw(limit, own):
 * Count a client out. Withdraw also gives back the rate token; for a client that did not come or
 * was refused otherwise.
 */
void connection_limit_leave(struct connection_limit *limit, struct quota *own);
void connection_limit_withdraw(struct connection_limit *limit, struct quota *own);

/* connection_limit_undo(limit, own, is_over): withdraw what connection_limit_begin() counted. */
void connection_limit_undo(struct connection_limit *limit, struct quota *own, bool is_over);

/*
 * connection_limit_close(limit, option) / connection_limit_open(limit):
 * Refuse all clients because of ${option}, a literal / admit clients again.
 */
void connection_limit_close(struct connection_limit *limit, const char *option);
void connection_limit_open(struct connection_limit *limit);

/*
 * connection_limit_full_of(limit, own):
 * Name the option that refuses the next client, for logs; "a connection limit" if none does now.
 */
const char *connection_limit_full_of(const struct connection_limit *limit, const struct quota *own);

#endif
