/*
 * tls/tls_directory: finds the certificates in a directory by file name.
 *
 *   NAME.pem, NAME.crt, NAME.cer, NAME.rsa, NAME.ecdsa    a certificate
 *   NAME/fullchain.pem with NAME/privkey.pem              a certificate, as certbot keeps them
 *
 * Other files are ignored.
 */
#ifndef TLS_TLS_DIRECTORY_H
#define TLS_TLS_DIRECTORY_H

#include <stdbool.h>

#include "base/must.h"
#include "tls/tls_load.h"

struct tls_directory_entry {
    char *certificate;
    char *key; /* NULL: the key is in the certificate's file or beside it */
};

/* Certificates, sorted by file name. */
struct tls_directory {
    struct tls_directory_entry *list;
    unsigned n;
};

/* tls_directory_is(path): is ${path} a directory? Thread: any but loops */
bool tls_directory_is(const char *path);

/*
 * tls_directory_list(out, path, l):
 * List the certificates in ${path}, at least one.
 *
 * Thread: any but loops
 * Owns:   the caller frees ${out} with tls_directory_free()
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_directory_list(struct tls_directory *out, const char *path, struct tls_load *l) NODISCARD;

/* tls_directory_free(d): free the list in ${d}. */
void tls_directory_free(struct tls_directory *d);

#endif
