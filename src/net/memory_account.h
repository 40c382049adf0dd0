/*
 * net/memory_account: counts the memory of bytes that channels and handlers buffer, up to a limit.
 *
 * When memory exceeds the limit, `is_over` is set and over() is called; overload protection clears
 * `is_over` later. Until then channels read little, and read nothing for a receiver with pending
 * output.
 */
#ifndef NET_MEMORY_ACCOUNT_H
#define NET_MEMORY_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct memory_account {
    _Atomic int64_t bytes;
    _Atomic int64_t pipe_bytes; /* part of `bytes`: kernel memory of pipes */
    _Atomic int64_t max_bytes;  /* may change at any time */
    void (*over)(void *cookie); /* on any thread; must not block */
    void *cookie;               /* `over` and `cookie` are set before start */
    atomic_bool is_over;
};

/*
 * memory_account_charge(b, before, now):
 * Replace a charge of ${before} bytes by ${now} bytes. ${b} may be NULL.
 */
static inline void memory_account_charge(struct memory_account *b, size_t before, size_t now)
{
    int64_t more = (int64_t)now - (int64_t)before;
    int64_t all;

    if (!b || more == 0)
        return;
    all = atomic_fetch_add_explicit(&b->bytes, more, memory_order_relaxed) + more;
    if (more > 0 && all > atomic_load_explicit(&b->max_bytes, memory_order_relaxed) &&
        !atomic_exchange(&b->is_over, true))
        b->over(b->cookie);
}

/*
 * memory_account_append(b, to, data, len) / memory_account_consume(b, from, len) /
 * memory_account_clear(b, what):
 * Call buffer_append() etc., and charge the change of capacity to ${b}, which may be NULL.
 *
 * Thread: owner of the buffer
 * Errors: as buffer_append()
 */
static inline int NODISCARD memory_account_append(struct memory_account *b, struct buffer *to,
                                                  const void *data, size_t len)
{
    size_t before = to->cap;
    int rc = buffer_append(to, data, len);

    memory_account_charge(b, before, to->cap);
    return rc;
}

static inline void memory_account_consume(struct memory_account *b, struct buffer *from, size_t len)
{
    size_t before = from->cap;

    buffer_consume(from, len);
    memory_account_charge(b, before, from->cap);
}

static inline void memory_account_clear(struct memory_account *b, struct buffer *what)
{
    size_t before = what->cap;

    buffer_clear(what);
    memory_account_charge(b, before, what->cap);
}

/*
 * memory_account_charge_pipe(b, bytes):
 * Add ${bytes}, which may be negative, to pipe_bytes. ${b} may be NULL.
 */
static inline void memory_account_charge_pipe(struct memory_account *b, int64_t bytes)
{
    if (b)
        atomic_fetch_add_explicit(&b->pipe_bytes, bytes, memory_order_relaxed);
}

/* memory_account_is_over(b): is `is_over` set? False if ${b} is NULL. */
static inline bool memory_account_is_over(const struct memory_account *b)
{
    return b && atomic_load_explicit(&b->is_over, memory_order_relaxed);
}

#endif
