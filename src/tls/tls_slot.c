#include "tls/tls_slot.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/lock.h"
#include "tls/tls_profile.h"

struct tls_slot {
    struct lock lock;
    struct tls_profile *current; /* guarded by `lock` */
    atomic_uint references;      /* add: relaxed; drop: acq_rel, so the last one sees all writes */
};

int tls_slot_create(struct tls_slot **out, struct tls_profile *profile)
{
    struct tls_slot *slot = calloc(1, sizeof(*slot));

    if (!slot)
        return -ENOMEM;
    lock_init(&slot->lock);
    slot->current = profile;
    atomic_init(&slot->references, 1);
    *out = slot;
    return 0;
}

struct tls_slot *tls_slot_hold(struct tls_slot *slot)
{
    if (slot)
        atomic_fetch_add_explicit(&slot->references, 1, memory_order_relaxed);
    return slot;
}

void tls_slot_release(struct tls_slot *slot)
{
    if (!slot || atomic_fetch_sub_explicit(&slot->references, 1, memory_order_acq_rel) > 1)
        return;
    tls_profile_release(slot->current);
    lock_close(&slot->lock);
    free(slot);
}

struct tls_profile *tls_slot_current(struct tls_slot *slot)
{
    struct tls_profile *profile;

    lock_take(&slot->lock);
    profile = tls_profile_hold(slot->current);
    lock_release(&slot->lock);
    return profile;
}

void tls_slot_replace(struct tls_slot *slot, struct tls_profile *profile)
{
    struct tls_profile *before;

    lock_take(&slot->lock);
    before = slot->current;
    slot->current = profile;
    lock_release(&slot->lock);
    tls_profile_release(before);
}
