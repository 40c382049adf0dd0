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

struct ssl_st;
struct tls_profile;

enum tls_unknown_name {
    TLS_UNKNOWN_NAME_DEFAULT, /* the first certificate */
    TLS_UNKNOWN_NAME_REJECT   /* send alert unrecognized_name, also if no name was sent */
};

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

/* How the peer's certificate is verified; a client's only if client_ca is set. */
enum tls_verify {
    TLS_VERIFY_REQUIRED,
    TLS_VERIFY_OPTIONAL, /* a client may send no certificate, a server must */
    TLS_VERIFY_OFF
};

/* What an end of file without close_notify becomes. */
enum tls_truncated { TLS_TRUNCATED_EOF, TLS_TRUNCATED_RESET };

struct tls_paths {
    const char **list;
    unsigned n;
};

struct tls_profile_certificate {
    const char *path;
    int64_t expires_at; /* seconds since 1970 */
};

/* Settings of a profile; NULL and empty lists: not set. */
struct tls_profile_conf {
    const char *name;              /* of [tls NAME] */
    bool for_clients, for_servers; /* used by a listener / by an upstream */
    struct tls_paths certificates;
    struct tls_paths keys; /* private keys of `certificates`, in the same order */
    enum tls_unknown_name unknown_name;
    enum tls_version min_version;
    const char *ciphers;       /* names of TLS 1.2 and 1.3, separated by colons */
    const char *groups;        /* separated by colons */
    const unsigned char *alpn; /* as in a ClientHello: a length byte before each name */
    unsigned alpn_bytes;
    const char *ca; /* CAs of servers' certificates; NULL: the system's */
    const char *client_ca;
    const char *client_crl;
    const char *server_crl;
    enum tls_verify verify;
    enum tls_truncated truncated;
    struct tls_paths ocsp;            /* files with OCSP responses */
    struct tls_paths tickets;         /* files with ticket keys; none: keys of the process */
    const struct tls_profile *before; /* the profile to be replaced; NULL at start */
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
 * tls_profile_new_client(p, tls_name):
 * Return a new SSL, without a BIO, that connects to a server; NULL: no memory, or ${p} was not
 * loaded `for_servers`. The server's certificate must be for ${tls_name}, a host name or address.
 * A host name is sent as SNI. ${tls_name} may be NULL only with TLS_VERIFY_OFF; else NULL.
 *
 * Owns:   the caller frees the SSL, which needs no reference to ${p}
 */
struct ssl_st *tls_profile_new_client(struct tls_profile *p, const char *tls_name) NODISCARD;

#endif
