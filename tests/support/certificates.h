/*
 * support/certificates: certificates, keys and revocation lists of a test, written as PEM files.
 *
 *     certificates_make(&ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
 *     certificates_make(&a, &(struct certificate_wish){.name = "a.example", .issuer = &ca});
 *     certificates_write("a.pem", "ck", &a); certificates_write("ca.pem", "c", &ca);
 */
#ifndef SUPPORT_CERTIFICATES_H
#define SUPPORT_CERTIFICATES_H

#include <stdbool.h>

struct evp_pkey_st;
struct x509_st;

struct certificate {
    struct x509_st *x509;
    struct evp_pkey_st *key;
};

/* A common name of another ASN.1 type than text in ASCII. */
struct certificate_name {
    int type; /* V_ASN1_BMPSTRING */
    const char *bytes;
    int len;
};

struct certificate_wish {
    const char *name;                           /* common name, and the host name unless `hosts` */
    const struct certificate_name *common_name; /* NULL: see `name` */
    const char *hosts;                /* as "DNS:a.example,IP:127.0.0.1"; NULL: see `name` */
    const struct certificate *issuer; /* NULL: self-signed */
    const struct certificate *key_of; /* NULL: a new key */
    bool is_ca;
    bool is_rsa;             /* RSA-2048 instead of P-256 */
    long from_days, to_days; /* from now; both 0: from yesterday for 90 days */
};

/*
 * certificates_make(out, wish) / certificates_free(c):
 *
 * Thread: any
 * Errors: the test fails
 */
void certificates_make(struct certificate *out, const struct certificate_wish *wish);
void certificates_free(struct certificate *c);

/*
 * certificates_write(path, parts, ...):
 * Write a file: for each letter of ${parts} takes a struct certificate *: `c` its certificate, `k`
 * its key.
 *
 * Thread: any
 * Errors: the test fails
 */
void certificates_write(const char *path, const char *parts, ...);

/*
 * certificates_write_crl(path, ca, revoked, days):
 * Write a list of ${ca}, valid for ${days} from now, that revokes ${revoked}, NULL: none.
 *
 * Thread: any
 * Errors: the test fails
 */
void certificates_write_crl(const char *path, const struct certificate *ca,
                            const struct certificate *revoked, long days);

#endif
