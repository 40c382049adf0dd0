/*
 * net/buffered: how much memory holds bytes that receivers have not taken yet, of all channels and their handlers together,
 * and whether that is too much.
 *
 * Counted when memory is taken and given back, so not at all while receivers keep up. Who takes what is too much says so at
 * once, and an episode begins: channels read little at a time, and nothing more for a receiver that did not take it. It ends
 * when whoever was told ends it.
 */
#ifndef NET_BUFFERED_H
#define NET_BUFFERED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct buffered {
    _Atomic int64_t bytes;
    _Atomic int64_t pipe_bytes; /* of these, what is the kernel's and not the allocator's */
    _Atomic int64_t max_bytes;  /* may change at any time */
    void (*over)(void *cookie); /* an episode begins; on any loop, which it must not hold up */
    void *cookie;               /* both are set before start */
    atomic_bool is_over;        /* an episode is under way */
};

/*
 * buffered_change(b, before, now):
 * Somebody held ${before}, and holds ${now}. ${b} may be NULL: nobody counts.
 *
 * Thread: any
 * Units:  bytes
 * Errors: none
 */
static inline void buffered_change(struct buffered *b, size_t before, size_t now)
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
 * buffered_append(b, to, data, len) / buffered_consume(b, from, len) / buffered_clear(b, what):
 * What base/buffer does, and the memory that it takes or gives back is counted. ${b} may be NULL: nobody counts.
 *
 * Thread: owner of the buffer
 * Units:  bytes
 * Errors: as buffer_append()
 */
static inline int MUST_CHECK buffered_append(struct buffered *b, struct buffer *to,
                                             const void *data, size_t len)
{
    size_t before = to->cap;
    int rc = buffer_append(to, data, len);

    buffered_change(b, before, to->cap);
    return rc;
}

static inline void buffered_consume(struct buffered *b, struct buffer *from, size_t len)
{
    size_t before = from->cap;

    buffer_consume(from, len);
    buffered_change(b, before, from->cap);
}

static inline void buffered_clear(struct buffered *b, struct buffer *what)
{
    size_t before = what->cap;

    buffer_clear(what);
    buffered_change(b, before, what->cap);
}

/*
 * buffered_change_pipe(b, bytes):
 * Of what is held so much more is in pipes, or less. ${b} may be NULL.
 *
 * Thread: any
 * Units:  bytes
 * Errors: none
 */
static inline void buffered_change_pipe(struct buffered *b, int64_t bytes)
{
    if (b)
        atomic_fetch_add_explicit(&b->pipe_bytes, bytes, memory_order_relaxed);
}

/*
 * buffered_is_over(b):
 * Is an episode under way? ${b} may be NULL: nobody counts.
 *
 * Thread: any
 * Errors: none
 */
static inline bool buffered_is_over(const struct buffered *b)
{
    return b && atomic_load_explicit(&b->is_over, memory_order_relaxed);
}

#endif
