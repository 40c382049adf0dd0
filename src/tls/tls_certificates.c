#include "tls/tls_certificates.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/x509v3.h>

#include "base/ref.h"
#include "tls/server_name.h"
#include "tls/tls_common_name.h"
#include "tls/tls_directory.h"
#include "tls/tls_names.h"
#include "tls/tls_ocsp.h"

struct tls_certificates {
    struct ref references;
    struct tls_certificate **list; /* once loaded, sorted by expiry */
    unsigned n, capacity;
    struct tls_names names;
    struct tls_names chosen; /* the `names` of the section; empty: those above */
    struct tls_certificate_set first;
    char first_name[SERVER_NAME_BYTES]; /* in the first certificate; "": no host name there */
};

struct tls_certificates_load {
    struct tls_certificates *t;
    const struct tls_profile_conf *conf;
    const struct tls_certificates *before;
    STACK_OF(X509) * issuers;
    struct tls_load *l;
};

/* ---- names ---- */

static int tls_certificates_add_name(struct tls_certificates *t, const char *text, size_t len,
                                     const struct tls_certificate *c)
{
    char name[SERVER_NAME_BYTES];

    if (server_name_read_pattern(name, text, len) < 0)
        return 0; /* not a host name: no client can ask for it */
    if (t->n == 1 && t->first_name[0] == '\0')
        memcpy(t->first_name, name, sizeof(name));
    return tls_names_add(&t->names, name, c);
}

/* RFC 6125, 6.4.4: the common name counts only if the certificate has no other names. */
static int tls_certificates_add_common_name(struct tls_certificates *t,
                                            const struct tls_certificate *c)
{
    char name[TLS_COMMON_NAME_BYTES];
    size_t len = tls_common_name(name, tls_certificate_leaf(c));

    return tls_certificates_add_name(t, name, len, c);
}

static int tls_certificates_add_names(struct tls_certificates *t, const struct tls_certificate *c)
{
    GENERAL_NAMES *names =
        X509_get_ext_d2i(tls_certificate_leaf(c), NID_subject_alt_name, NULL, NULL);
    int rc = 0;

    if (!names)
        return tls_certificates_add_common_name(t, c);
    for (int i = 0; rc == 0 && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == GEN_DNS)
            rc = tls_certificates_add_name(t, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                                           (size_t)ASN1_STRING_length(name->d.dNSName), c);
    }
    GENERAL_NAMES_free(names);
    return rc;
}

/*
 * Choose the default: the first certificate, and those for its first name with other kinds of keys.
 */
static void tls_certificates_choose_first(struct tls_certificates *t)
{
    if (t->first_name[0] != '\0')
        t->first = *tls_names_get(&t->names, t->first_name);
    else
        t->first.of[tls_certificate_kind(t->list[0])] = t->list[0];
}

/* ---- load ---- */

static bool tls_certificates_have(const struct tls_certificates *t, const struct tls_certificate *c)
{
    for (unsigned i = 0; i < t->n; i++)
        if (tls_certificate_same(t->list[i], c))
            return true;
    return false;
}

static int tls_certificates_check_dates(const struct tls_certificates_load *load,
                                        const struct tls_certificate *c)
{
    const char *path = tls_certificate_path(c);

    if (tls_certificate_is_current(c, time(NULL)))
        return 0;
    if (load->before && !tls_certificates_have(load->before, c))
        return tls_load_refuse(load->l, "%s: the certificate is expired or not yet valid", path);
    tls_load_warn(load->l, "%s: the certificate is expired or not yet valid", path);
    return 0;
}

/* Append ${c}, and own it even on error. */
static int tls_certificates_append(struct tls_certificates *t, struct tls_certificate *c)
{
    if (t->n == t->capacity) {
        unsigned capacity = t->capacity > 0 ? 2 * t->capacity : 8;
        struct tls_certificate **larger = realloc(t->list, capacity * sizeof(*larger));

        if (!larger) {
            tls_certificate_destroy(c);
            return -ENOMEM;
        }
        t->list = larger;
        t->capacity = capacity;
    }
    t->list[t->n++] = c;
    return tls_certificates_add_names(t, c);
}

/* Look for the OCSP response of a.pem where HAProxy does: in a.pem.ocsp. */
static int tls_certificates_read_ocsp_beside(const struct tls_certificates_load *load,
                                             const char *path)
{
    char beside[PATH_MAX];

    snprintf(beside, sizeof(beside), "%s.ocsp", path);
    tls_load_note(load->l, beside);
    return access(beside, F_OK) == 0 ? tls_ocsp_read(load->t, beside, load->l) : 0;
}

static int tls_certificates_add_file(const struct tls_certificates_load *load,
                                     const struct tls_certificate_files *files)
{
    struct tls_certificate *c;
    int rc = tls_certificate_load(&c, files, load->issuers, load->l);

    if (rc < 0)
        return rc;
    rc = tls_certificates_check_dates(load, c);
    if (rc < 0) {
        tls_certificate_destroy(c);
        return rc;
    }
    if (tls_certificates_append(load->t, c) < 0)
        return tls_load_memory(load->l);
    return tls_certificates_read_ocsp_beside(load, files->certificate);
}

static int tls_certificates_add_directory(const struct tls_certificates_load *load,
                                          const char *path)
{
    struct tls_directory d;
    int rc = tls_directory_list(&d, path, load->l);

    if (rc < 0)
        return rc;
    for (unsigned i = 0; rc == 0 && i < d.n; i++)
        rc = tls_certificates_add_file(
            load, &(struct tls_certificate_files){d.list[i].certificate, d.list[i].key});
    tls_directory_free(&d);
    return rc;
}

static int tls_certificates_add(const struct tls_certificates_load *load, unsigned i)
{
    const struct tls_paths *keys = &load->conf->keys;
    const char *path = load->conf->certificates.list[i];
    const struct tls_certificate_files files = {path, i < keys->n ? keys->list[i] : NULL};

    if (!tls_directory_is(path))
        return tls_certificates_add_file(load, &files);
    if (files.key)
        return tls_load_refuse(load->l, "%s: is a directory, which has its own keys (no key)",
                               path);
    return tls_certificates_add_directory(load, path);
}

static int tls_certificates_by_end(const void *a, const void *b)
{
    int64_t x = tls_certificate_expires_at(*(struct tls_certificate *const *)a);
    int64_t y = tls_certificate_expires_at(*(struct tls_certificate *const *)b);

    return (x > y) - (x < y);
}

int tls_certificates_load(struct tls_certificates **out, const struct tls_profile_conf *conf,
                          const struct tls_certificates *before, struct tls_load *l)
{
    struct tls_certificates *t = calloc(1, sizeof(*t));
    const struct tls_certificates_load load = {t, conf, before, sk_X509_new_null(), l};
    int rc = t && load.issuers ? 0 : tls_load_memory(l);

    if (t)
        ref_init(&t->references);
    for (unsigned i = 0; rc == 0 && i < conf->certificates.n; i++)
        rc = tls_certificates_add(&load, i);
    sk_X509_pop_free(load.issuers, X509_free);
    for (unsigned i = 0; rc == 0 && i < conf->names.n; i++)
        if (tls_names_add(&t->chosen, conf->names.list[i], t->list[0]) < 0)
            rc = tls_load_memory(l);
    if (rc < 0) {
        tls_certificates_release(t);
        return rc;
    }
    tls_certificates_choose_first(t);
    qsort(t->list, t->n, sizeof(t->list[0]), tls_certificates_by_end);
    *out = t;
    return 0;
}

struct tls_certificates *tls_certificates_hold(struct tls_certificates *t)
{
    ref_hold(&t->references);
    return t;
}

void tls_certificates_release(struct tls_certificates *t)
{
    if (!t || !ref_release(&t->references))
        return;
    for (unsigned i = 0; i < t->n; i++)
        tls_certificate_destroy(t->list[i]);
    free(t->list);
    tls_names_free(&t->names);
    tls_names_free(&t->chosen);
    free(t);
}

/* ---- use ---- */

/* Look for ${name}, then for the wildcard one label above, which replaces ${name}. */
static const struct tls_certificate_set *tls_certificates_get(const struct tls_names *names,
                                                              char *name, enum tls_match *match)
{
    const struct tls_certificate_set *set = tls_names_get(names, name);
    char *dot = strchr(name, '.');

    *match = set ? TLS_MATCH_EXACT : TLS_MATCH_NONE;
    if (set || !dot || dot == name)
        return set;
    dot[-1] = '*';
    set = tls_names_get(names, dot - 1);
    if (set)
        *match = TLS_MATCH_WILDCARD;
    return set;
}

const struct tls_certificate_set *tls_certificates_find(const struct tls_certificates *t,
                                                        const char *name)
{
    char read[SERVER_NAME_BYTES];
    enum tls_match match;

    return server_name_read(read, name, strlen(name)) < 0
               ? NULL
               : tls_certificates_get(&t->names, read, &match);
}

const struct tls_names *tls_certificates_names(const struct tls_certificates *t)
{
    return t->chosen.n > 0 ? &t->chosen : &t->names;
}

enum tls_match tls_certificates_match(const struct tls_certificates *t, const char *name)
{
    char copy[SERVER_NAME_BYTES] = "";
    enum tls_match match;

    strncpy(copy, name, sizeof(copy) - 1);
    (void)tls_certificates_get(tls_certificates_names(t), copy, &match);
    return match;
}

const struct tls_certificate_set *tls_certificates_default(const struct tls_certificates *t)
{
    return &t->first;
}

unsigned tls_certificates_n(const struct tls_certificates *t)
{
    return t->n;
}

const struct tls_certificate *tls_certificates_at(const struct tls_certificates *t, unsigned i)
{
    return t->list[i];
}
