/*
 * tls/tls_slot: the current profile of a [tls NAME] section. A reload or a changed file replaces
 * it.
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
 * Owns:   the slot takes over the caller's reference to ${profile}, except on error
 * Errors: 0; -ENOMEM
 */
int tls_slot_create(struct tls_slot **out, struct tls_profile *profile) NODISCARD;

/*
 * tls_slot_hold(slot) / tls_slot_release(slot):
 * Add a reference and return ${slot} / drop one; the last frees ${slot}. Both accept NULL.
 */
struct tls_slot *tls_slot_hold(struct tls_slot *slot);
void tls_slot_release(struct tls_slot *slot);

/* tls_slot_current(slot): return the current profile, with a reference for the caller. */
struct tls_profile *tls_slot_current(struct tls_slot *slot);

/*
 * tls_slot_replace(slot, profile):
 * Use ${profile} for new connections.
 *
 * Owns:   the slot takes over the caller's reference
 */
void tls_slot_replace(struct tls_slot *slot, struct tls_profile *profile);

#endif
