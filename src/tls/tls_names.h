/*
 * tls/tls_names: hash table from host names to certificates.
 */
#ifndef TLS_TLS_NAMES_H
#define TLS_TLS_NAMES_H

#include "base/must.h"
#include "tls/tls_certificates.h"

struct tls_names_entry;

/* Hash table; zero-initialised: empty. */
struct tls_names {
    struct tls_names_entry *slots; /* open addressing; at most half are used */
    unsigned n, capacity;          /* capacity: number of slots, a power of two */
};

/*
 * tls_names_add(t, name, c):
 * Add ${c} for ${name}, unless ${name} has a certificate with the same kind of key. ${name} is in
 * the form of server_name_read_pattern().
 *
 * Thread: any, before other threads can use ${t}
 * Owns:   ${name} is copied; ${c} must live as long as ${t} is used
 * Errors: 0; -ENOMEM
 */
int tls_names_add(struct tls_names *t, const char *name, const struct tls_certificate *c) NODISCARD;

/* tls_names_get(t, name): return the certificates of exactly this name or wildcard, or NULL. */
const struct tls_certificate_set *tls_names_get(const struct tls_names *t, const char *name);

/* tls_names_at(t, i): return the name in slot ${i} of t->capacity; NULL: a free slot. */
const char *tls_names_at(const struct tls_names *t, unsigned i);

/* tls_names_free(t): empty ${t}. Thread: any, when no thread uses ${t} */
void tls_names_free(struct tls_names *t);

#endif
