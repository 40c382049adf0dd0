/*
 * tls/tls_profile: a loaded [tls NAME] section: certificates, keys, CAs, settings.
 *
 * Immutable and reference-counted; any thread may use it. A reload makes another profile; a
 * connection keeps the one it began with.
 */
#ifndef TLS_TLS_PROFILE_H
#define TLS_TLS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "tls/client_hello.h"
#include "tls/tls_profile_conf.h"

struct ssl_st;
struct tls_profile;

struct tls_profile_certificate {
    const char *path;
    int64_t expires_at; /* seconds since 1970 */
};

/*
 * tls_profile_load(conf, out, why, why_size):
 * Read and check all files. An expired or not yet valid certificate is refused if the profile to be
 * replaced has only other certificates.
 *
 * Thread: any but loops
 * Owns:   the caller has a reference; ${conf} is used during the call only
 * Errors: 0; -EINVAL (${why}: `option: file: cause`); -ENOMEM
 */
int tls_profile_load(const struct tls_profile_conf *conf, struct tls_profile **out, char *why,
                     size_t why_size) NODISCARD;

/*
 * tls_profile_hold(p) / tls_profile_release(p):
 * Add a reference and return ${p} / drop one from ${p} or NULL; the last frees ${p}.
 */
struct tls_profile *tls_profile_hold(struct tls_profile *p);
void tls_profile_release(struct tls_profile *p);

/*
 * tls_profile_warnings(p):
 * Return all warnings, as lines `option: file: cause`, or "".
 *
 * Owns:   ${p} keeps the text
 */
const char *tls_profile_warnings(const struct tls_profile *p);

/*
 * tls_profile_same(a, b) / tls_profile_same_files(a, b):
 * Do ${a} and ${b} have equal settings and file contents? tls_profile_same() also compares the
 * roles: for clients, for servers.
 */
bool tls_profile_same(const struct tls_profile *a, const struct tls_profile *b);
bool tls_profile_same_files(const struct tls_profile *a, const struct tls_profile *b);

/*
 * tls_profile_has_changed_files(p, fingerprint):
 * Have files of ${p} changed since they were read? Sets ${fingerprint} to that of the files now.
 *
 * Thread: any but loops
 */
bool tls_profile_has_changed_files(const struct tls_profile *p, uint64_t *fingerprint);

/*
 * tls_profile_certificates(p) / tls_profile_certificate(p, i, out):
 * Return the number of certificates / set ${out} to the i-th to expire, from 0.
 *
 * Owns:   ${out}->path lives as long as ${p}
 */
unsigned tls_profile_certificates(const struct tls_profile *p);
void tls_profile_certificate(const struct tls_profile *p, unsigned i,
                             struct tls_profile_certificate *out);

/*
 * tls_profile_match(p, name):
 * Is ${p} for clients that ask for ${name}? See tls_certificates_match(). Without certificates: no.
 */
enum tls_match tls_profile_match(const struct tls_profile *p, const char *name);

/*
 * tls_profile_shared_names(p, with, first):
 * Return how many names and wildcards of ${p} are also those of one of the ${n} profiles in
 * ${with}, and set ${first} to the first of them in alphabetical order. ${n} 0: count all names.
 *
 * Owns:   ${p} keeps ${first}
 */
unsigned tls_profile_shared_names(const struct tls_profile *p, struct tls_profile *const *with,
                                  unsigned n, const char **first);

/* tls_profile_truncated(p): return what an end of file without close_notify becomes. */
enum tls_truncated tls_profile_truncated(const struct tls_profile *p);

/*
 * tls_profile_new_server(p):
 * Return a new SSL, without a BIO, that accepts a client; NULL: no memory, or ${p} was not loaded
 * `for_clients`: a reload may give a section another use than its old listeners have.
 *
 * Owns:   the caller frees the SSL, which needs no reference to ${p}
 */
struct ssl_st *tls_profile_new_server(struct tls_profile *p) NODISCARD;

/*
 * tls_profile_new_client(p, tls_name, agreed):
 * Return a new SSL, without a BIO, that connects to a server; NULL: no memory, or ${p} was not
 * loaded `for_servers`. The server's certificate must be for ${tls_name}, a host name or address.
 * A host name is sent as SNI. ${tls_name} may be NULL only with TLS_VERIFY_OFF; else NULL.
 * ${agreed}: protocol agreed with the client, which `alpn_of_client` offers; without bytes: none.
 *
 * Owns:   the caller frees the SSL, which needs no reference to ${p}
 */
struct ssl_st *tls_profile_new_client(struct tls_profile *p, const char *tls_name,
                                      struct client_hello_bytes agreed) NODISCARD;

#endif
