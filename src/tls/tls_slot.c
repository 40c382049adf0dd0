#include "tls/tls_slot.h"

#include <errno.h>
#include <stdlib.h>

#include "base/ref.h"
#include "engine/lock.h"
#include "tls/tls_profile.h"

struct tls_slot {
    struct lock lock;
    struct tls_profile *current; /* guarded by `lock` */
    struct ref references;
};

int tls_slot_create(struct tls_slot **out, struct tls_profile *profile)
{
    struct tls_slot *slot = calloc(1, sizeof(*slot));

    if (!slot)
        return -ENOMEM;
    lock_init(&slot->lock);
    slot->current = profile;
    ref_init(&slot->references);
    *out = slot;
    return 0;
}

struct tls_slot *tls_slot_hold(struct tls_slot *slot)
{
    if (slot)
        ref_hold(&slot->references);
    return slot;
}

void tls_slot_release(struct tls_slot *slot)
{
    if (!slot || !ref_release(&slot->references))
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
