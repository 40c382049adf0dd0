#include "limits/connection_limit.h"

#include "base/clock.h"
#include "engine/loop.h"

static bool connection_limit_move(struct connection_limit_waiter *w,
                                  enum connection_limit_waiter_state from,
                                  enum connection_limit_waiter_state to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong(&w->state, &expected, (int)to);
}

static void connection_limit_run_wake(struct task *t)
{
    struct connection_limit_waiter *w = CONTAINER_OF(t, struct connection_limit_waiter, wake);

    MUST(connection_limit_move(w, CONNECTION_LIMIT_WOKEN, CONNECTION_LIMIT_NONE));
    w->again(w);
}

static const struct task_type connection_limit_wake_type = {.name = "room for a client",
                                                            .run = connection_limit_run_wake};

void connection_limit_init(struct connection_limit *limit, const struct quota_conf *conf)
{
    quota_init(&limit->quota, conf);
    atomic_init(&limit->closed_by, NULL);
    atomic_init(&limit->waiting, 0);
    lock_init(&limit->lock);
    list_init(&limit->waiters);
}

void connection_limit_add(struct connection_limit *limit, struct connection_limit_waiter *w,
                          struct loop *loop, void (*again)(struct connection_limit_waiter *w))
{
    *w = (struct connection_limit_waiter){
        .loop = loop, .again = again, .wake.type = &connection_limit_wake_type};
    lock_take(&limit->lock);
    list_append(&limit->waiters, &w->link);
    lock_release(&limit->lock);
}

void connection_limit_remove(struct connection_limit *limit, struct connection_limit_waiter *w)
{
    lock_take(&limit->lock);
    list_remove(&w->link);
    if (connection_limit_move(w, CONNECTION_LIMIT_WAITING, CONNECTION_LIMIT_NONE))
        atomic_fetch_sub(&limit->waiting, 1);
    lock_release(&limit->lock);
}

/* Wake all waiters: only a retry shows whether a waiter's own listener is below its limit. */
static void connection_limit_wake(struct connection_limit *limit)
{
    if (atomic_load(&limit->waiting) == 0) /* see note: limit */
        return;
    lock_take(&limit->lock);
    list_for_each (node, &limit->waiters) {
        struct connection_limit_waiter *w = LIST_ENTRY(node, struct connection_limit_waiter, link);

        if (!connection_limit_move(w, CONNECTION_LIMIT_WAITING, CONNECTION_LIMIT_WOKEN))
            continue;
        atomic_fetch_sub(&limit->waiting, 1);
        if (loop_submit(w->loop, LOOP_CONTROL, &w->wake) < 0)
            MUST(connection_limit_move(
                w, CONNECTION_LIMIT_WOKEN,
                CONNECTION_LIMIT_NONE)); /* ${w} retries after CONNECTION_LIMIT_RETRY_NS */
    }
    lock_release(&limit->lock);
}

void connection_limit_set(struct connection_limit *limit, struct quota *own,
                          const struct quota_conf *conf)
{
    quota_set(own ? own : &limit->quota, conf, clock_now_ns());
    connection_limit_wake(limit);
}

static int64_t connection_limit_wait_ns(const struct connection_limit *limit,
                                        const struct quota *own, int64_t now_ns)
{
    int64_t process_ns = quota_wait_ns(&limit->quota, now_ns);
    int64_t own_ns = quota_wait_ns(own, now_ns);

    return process_ns > own_ns ? process_ns : own_ns;
}

/*
 * Check both quotas before taking one. Otherwise two sockets at the process limit would take and
 * withdraw their own quotas, and wake each other, for ever.
 */
static int64_t connection_limit_try(struct connection_limit *limit, struct quota *own)
{
    int64_t now_ns, wait_ns;

    if (atomic_load(&limit->closed_by))
        return CLOCK_NEVER;
    if (!quota_is_limited(&limit->quota) && !quota_is_limited(own)) {
        quota_count(own);
        quota_count(&limit->quota);
        return 0;
    }
    now_ns = clock_now_ns();
    while ((wait_ns = connection_limit_wait_ns(limit, own, now_ns)) == 0) {
        if (!quota_enter(own, now_ns))
            continue; /* another thread took the place */
        if (quota_enter(&limit->quota, now_ns))
            return 0;
        quota_withdraw(own);
        connection_limit_wake(limit);
    }
    return wait_ns;
}

/* As connection_limit_try(), but ${own} refuses nobody. */
static int64_t connection_limit_try_count(struct connection_limit *limit, struct quota *own,
                                          bool *is_over)
{
    int64_t now_ns = clock_now_ns(), wait_ns;

    if (atomic_load(&limit->closed_by))
        return CLOCK_NEVER;
    while ((wait_ns = quota_wait_ns(&limit->quota, now_ns)) == 0) {
        if (!quota_enter(&limit->quota, now_ns))
            continue; /* another thread took the place */
        *is_over = !quota_enter(own, now_ns);
        if (*is_over)
            quota_count(own);
        return 0;
    }
    return wait_ns;
}

static int64_t connection_limit_look_again_ns(int64_t wait_ns)
{
    return wait_ns < CONNECTION_LIMIT_RETRY_NS ? wait_ns : CONNECTION_LIMIT_RETRY_NS;
}

int64_t connection_limit_enter(struct connection_limit *limit, struct quota *own)
{
    return connection_limit_look_again_ns(connection_limit_try(limit, own));
}

/* ${is_over}: NULL unless ${own} refuses nobody. */
static int64_t connection_limit_ask(struct connection_limit *limit, struct quota *own,
                                    bool *is_over)
{
    return is_over ? connection_limit_try_count(limit, own, is_over)
                   : connection_limit_try(limit, own);
}

static int64_t connection_limit_ask_or_wait(struct connection_limit *limit, struct quota *own,
                                            struct connection_limit_waiter *w, bool *is_over)
{
    int64_t wait_ns = connection_limit_ask(limit, own, is_over);

    if (wait_ns != CLOCK_NEVER)
        return connection_limit_look_again_ns(wait_ns);
    /* Increment before the state changes, so that `waiting` is never too low. */
    atomic_fetch_add(&limit->waiting, 1);
    if (!connection_limit_move(w, CONNECTION_LIMIT_NONE, CONNECTION_LIMIT_WAITING)) {
        atomic_fetch_sub(&limit->waiting, 1);
        return connection_limit_look_again_ns(wait_ns);
    }
    wait_ns = connection_limit_ask(limit, own, is_over); /* see note: limit */
    if (wait_ns == 0 && connection_limit_move(w, CONNECTION_LIMIT_WAITING, CONNECTION_LIMIT_NONE))
        atomic_fetch_sub(&limit->waiting, 1);
    return connection_limit_look_again_ns(wait_ns);
}

int64_t connection_limit_enter_or_wait(struct connection_limit *limit, struct quota *own,
                                       struct connection_limit_waiter *w)
{
    return connection_limit_ask_or_wait(limit, own, w, NULL);
}

int64_t connection_limit_begin(struct connection_limit *limit, struct quota *own,
                               struct connection_limit_waiter *w, enum quota_over over,
                               bool *is_over)
{
    return connection_limit_ask_or_wait(limit, own, w, over == QUOTA_OVER_LOG ? is_over : NULL);
}

int64_t connection_limit_pass_or_wait(struct connection_limit *limit, struct hold *h,
                                      struct connection_limit_waiter *w)
{
    if (hold_pass(h))
        return 0;
    atomic_fetch_add(&limit->waiting, 1); /* first: see connection_limit_enter_or_wait() */
    if (!connection_limit_move(w, CONNECTION_LIMIT_NONE, CONNECTION_LIMIT_WAITING)) {
        atomic_fetch_sub(&limit->waiting, 1);
        return CONNECTION_LIMIT_RETRY_NS;
    }
    if (!hold_pass(h)) /* see note: limit */
        return CONNECTION_LIMIT_RETRY_NS;
    if (connection_limit_move(w, CONNECTION_LIMIT_WAITING, CONNECTION_LIMIT_NONE))
        atomic_fetch_sub(&limit->waiting, 1);
    return 0;
}

void connection_limit_retry(struct connection_limit *limit)
{
    connection_limit_wake(limit);
}

void connection_limit_count(struct connection_limit *limit, struct quota *own)
{
    quota_count(own);
    quota_count(&limit->quota);
}

void connection_limit_leave(struct connection_limit *limit, struct quota *own)
{
    quota_leave(own);
    quota_leave(&limit->quota);
    connection_limit_wake(limit);
}

void connection_limit_withdraw(struct connection_limit *limit, struct quota *own)
{
    quota_withdraw(own);
    quota_withdraw(&limit->quota);
    connection_limit_wake(limit);
}

void connection_limit_undo(struct connection_limit *limit, struct quota *own, bool is_over)
{
    if (is_over)
        connection_limit_leave(limit, own);
    else
        connection_limit_withdraw(limit, own);
}

void connection_limit_close(struct connection_limit *limit, const char *option)
{
    atomic_store(&limit->closed_by, option);
}

void connection_limit_open(struct connection_limit *limit)
{
    atomic_store(&limit->closed_by, NULL);
    connection_limit_wake(limit);
}

const char *connection_limit_full_of(const struct connection_limit *limit, const struct quota *own)
{
    const char *closed_by = atomic_load(&limit->closed_by);
    int64_t now_ns = clock_now_ns();

    if (closed_by)
        return closed_by;
    if (quota_wait_ns(own, now_ns) == CLOCK_NEVER)
        return "max_connections";
    if (quota_wait_ns(&limit->quota, now_ns) == CLOCK_NEVER)
        return "max_connections of [reactord]";
    if (quota_wait_ns(own, now_ns) > 0)
        return "connection_rate";
    return quota_wait_ns(&limit->quota, now_ns) > 0 ? "connection_rate of [reactord]"
                                                    : "a connection limit";
}
