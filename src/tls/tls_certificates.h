/*
 * tls/tls_certificates: the certificates of a profile, found by host name.
 *
 *     name -> the exact name, else the wildcard one label above -> one certificate per kind of key
 *
 * Immutable: any thread may use it.
 */
#ifndef TLS_TLS_CERTIFICATES_H
#define TLS_TLS_CERTIFICATES_H

#include "base/must.h"
#include "tls/tls_certificate.h"
#include "tls/tls_profile_conf.h"

struct tls_certificates;
struct tls_names;

/* Certificates of one name, by kind of key; NULL: none of this kind. */
struct tls_certificate_set {
    const struct tls_certificate *of[TLS_KEY_KINDS];
};

/*
 * tls_certificates_load(out, conf, before, l):
 * Read all files and directories of ${conf}. Of two certificates with the same name and kind of key
 * the first is used. An expired or not yet valid certificate is accepted, with a warning, only if
 * ${before} has it too or is NULL (as at start).
 *
 * Thread: any but loops
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_certificates_load(struct tls_certificates **out, const struct tls_profile_conf *conf,
                          const struct tls_certificates *before, struct tls_load *l) NODISCARD;

/*
 * tls_certificates_hold(t) / tls_certificates_release(t):
 * Add a reference and return ${t} / drop one from ${t} or NULL; the last frees ${t}.
 */
struct tls_certificates *tls_certificates_hold(struct tls_certificates *t);
void tls_certificates_release(struct tls_certificates *t);

/*
 * tls_certificates_find(t, name) / tls_certificates_default(t):
 * Return the certificates for the name that a client sent, or NULL for an unknown name / the
 * default: those for the first certificate's name.
 */
const struct tls_certificate_set *tls_certificates_find(const struct tls_certificates *t,
                                                        const char *name);
const struct tls_certificate_set *tls_certificates_default(const struct tls_certificates *t);

/*
 * tls_certificates_match(t, name):
 * Is ${name} one for which clients get this section? Those are the `names` of its conf, or if there
 * are none, the names in the certificates. ${name}: as server_name_read() writes it, or "".
 */
enum tls_match tls_certificates_match(const struct tls_certificates *t, const char *name);

/*
 * tls_certificates_names(t):
 * Return the names and wildcards that tls_certificates_match() knows.
 *
 * Owns:   ${t} keeps them
 */
const struct tls_names *tls_certificates_names(const struct tls_certificates *t);

/*
 * tls_certificates_n(t) / tls_certificates_at(t, i):
 * Return the number of certificates / the i-th to expire, from 0.
 */
unsigned tls_certificates_n(const struct tls_certificates *t);
const struct tls_certificate *tls_certificates_at(const struct tls_certificates *t, unsigned i);

#endif
