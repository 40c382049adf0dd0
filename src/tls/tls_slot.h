/*
 * tls/tls_slot: the current profile of a [tls NAME] section. A reload or a changed file replaces
 * it; a connection keeps the profile that it began with.
 *
 * A lock guards the pointer.
 */
#ifndef TLS_TLS_SLOT_H
#define TLS_TLS_SLOT_H

#include "base/must.h"

struct tls_profile;
struct tls_slot;

/*
 * tls_slot_create(out, profile):
 * Create a slot with one reference.
 *
 * Thread: any
 * Owns:   the slot owns the caller's reference to ${profile}, on error the caller still does
 * Errors: 0; -ENOMEM
 */
int tls_slot_create(struct tls_slot **out, struct tls_profile *profile) NODISCARD;

/*
 * tls_slot_hold(slot) / tls_slot_release(slot):
 * Add a reference and return ${slot}, which may be NULL / release one; the last frees ${slot}.
 *
 * Thread: any
 */
struct tls_slot *tls_slot_hold(struct tls_slot *slot);
void tls_slot_release(struct tls_slot *slot);

/*
 * tls_slot_current(slot):
 * The current profile, with a reference for the caller.
 *
 * Thread: any
 */
struct tls_profile *tls_slot_current(struct tls_slot *slot);

/*
 * tls_slot_replace(slot, profile):
 * Use ${profile} for connections from now on.
 *
 * Thread: any
 * Owns:   the slot owns the caller's reference to ${profile}
 */
void tls_slot_replace(struct tls_slot *slot, struct tls_profile *profile);

#endif
