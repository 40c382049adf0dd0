/*
 * base/ref: reference count, a member of the shared object.
 *
 * An object with an owner, who frees it some time after all others have released it, is polled with
 * ref_count(). The owner's reference is never released.
 *
 * note: references. A thread that holds an object once more has a reference, or something else that
 * keeps it alive (a lock, a grace period): no order is needed (relaxed). Releases are ordered: the
 * thread that frees, or counts 1, sees what all others did with the object before they released it
 * (acq_rel; acquire).
 */
#ifndef BASE_REF_H
#define BASE_REF_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/must.h"

struct ref {
    atomic_uint n;
};

/* ref_init(r): one reference, the creator's. Thread: owner */
static inline void ref_init(struct ref *r)
{
    atomic_init(&r->n, 1);
}

/* ref_hold(r): add a reference. */
static inline void ref_hold(struct ref *r)
{
    atomic_fetch_add_explicit(&r->n, 1, memory_order_relaxed); /* see note: references */
}

/* ref_release(r): release a reference; true for the last: the caller frees the object. */
static inline bool NODISCARD ref_release(struct ref *r)
{
    unsigned n = atomic_fetch_sub_explicit(&r->n, 1, memory_order_acq_rel);

    MUST(n > 0);
    return n == 1;
}

/* ref_count(r): the references; 1: no others are left. */
static inline unsigned ref_count(const struct ref *r)
{
    return atomic_load_explicit(&r->n, memory_order_acquire);
}

#endif
