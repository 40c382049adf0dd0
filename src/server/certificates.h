/*
 * server/certificates: the [tls NAME] sections of a running server: puts their profiles into their
 * slots, reads changed files again, and warns of certificates that expire.
 *
 *   control loop: timer --look--> executor: stat, load, tls_slot_replace --looked--> timer
 */
#ifndef SERVER_CERTIFICATES_H
#define SERVER_CERTIFICATES_H

#include <stdint.h>

#include "base/must.h"

struct certificates;
struct certificates_change;
struct executor;
struct loop;
struct tls_conf;

#define CERTIFICATES_TEXT_BYTES 256

/* A certificate in use. */
struct certificates_row {
    char section[64];
    char path[CERTIFICATES_TEXT_BYTES]; /* cut if longer */
    int64_t expires_at;                 /* seconds since 1970 */
};

/*
 * certificates_create(out, control, executor):
 * Create an empty set.
 *
 * Thread: main, before start
 * Owns:   ${control} and ${executor} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int certificates_create(struct certificates **out, struct loop *control,
                        struct executor *executor) NODISCARD;

/*
 * certificates_prepare(c, list, n, out) / certificates_commit(change) /
 * certificates_cancel(change):
 * Allocate for the sections in ${list} / use these sections, and their profiles for new connections
 * / free what was allocated.
 *
 * Thread: control loop
 * Owns:   the change holds each section's memory; ${c} owns a committed change
 * Errors: 0; -ENOMEM
 */
int certificates_prepare(struct certificates *c, const struct tls_conf *list, unsigned n,
                         struct certificates_change **out) NODISCARD;
void certificates_commit(struct certificates_change *change);
void certificates_cancel(struct certificates_change *change);

/*
 * certificates_soonest(c, rows, max):
 * Fill in the certificates that expire first, at most ${max}; return how many.
 */
unsigned certificates_soonest(struct certificates *c, struct certificates_row *rows, unsigned max);

/*
 * certificates_destroy(c):
 * Free ${c}; NULL is allowed.
 *
 * Thread: main, while control loop and executor do not run
 */
void certificates_destroy(struct certificates *c);

#endif
