/*
 * tls/tls_pem: reads PEM files: certificates, revocation lists, a private key.
 */
#ifndef TLS_TLS_PEM_H
#define TLS_TLS_PEM_H

#include <stdbool.h>

#include <openssl/x509.h>

#include "base/must.h"
#include "tls/tls_load.h"

struct tls_pem {
    STACK_OF(X509) * certificates; /* in the file's order */
    STACK_OF(X509_CRL) * crls;
    EVP_PKEY *key;    /* NULL: no key */
    bool others_read; /* other users can read the file */
};

/*
 * tls_pem_read(out, path, l):
 * Read the file ${path}. Parts of other kinds, such as DH parameters, are ignored.
 *
 * Thread: any but loops
 * Owns:   the caller frees ${out} with tls_pem_free()
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_pem_read(struct tls_pem *out, const char *path, struct tls_load *l) NODISCARD;

/* tls_pem_free(p): free the parts in ${p}. */
void tls_pem_free(struct tls_pem *p);

#endif
