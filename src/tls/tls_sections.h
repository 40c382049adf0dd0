/*
 * tls/tls_sections: the [tls NAME] sections of a listener, and the choice between them.
 *
 *     name in the ClientHello -> the section with this exact name, else with its wildcard, else the
 *                                first section
 *
 * The first section wins if several are equally good. Immutable and reference-counted; the profiles
 * of the sections are the current ones of their slots.
 */
#ifndef TLS_TLS_SECTIONS_H
#define TLS_TLS_SECTIONS_H

#include "base/must.h"

struct tls_profile;
struct tls_sections;
struct tls_slot;

/* Limit of a listener's sections: each is asked for the name of each client. */
#define TLS_SECTIONS_MAX 64

/*
 * tls_sections_create(out, names, slots, n):
 * Create a list of ${n} sections, in the order of the choice.
 *
 * Owns:   ${names} are copied; ${out} has a reference to each of ${slots}
 * Errors: 0; -ENOMEM
 */
int tls_sections_create(struct tls_sections **out, const char *const *names,
                        struct tls_slot *const *slots, unsigned n) NODISCARD;

/*
 * tls_sections_hold(ts) / tls_sections_release(ts):
 * Add a reference and return ${ts} / drop one from ${ts} or NULL; the last frees ${ts}.
 */
struct tls_sections *tls_sections_hold(struct tls_sections *ts);
void tls_sections_release(struct tls_sections *ts);

/*
 * tls_sections_choose(ts, sni, section):
 * Return the profile for a client that asks for ${sni}, as server_name_read() writes it; "": it asks
 * for no name. Sets ${section} to the name of the section.
 *
 * Owns:   the caller has a reference to the profile; ${ts} keeps ${section}
 */
struct tls_profile *tls_sections_choose(struct tls_sections *ts, const char *sni,
                                        const char **section);

#endif
