/*
 * tls/tls_tickets: keys of session tickets: from files, or made and rotated in the process.
 *
 * Keys of files are immutable, and the same on every node that has the files. Keys of the process
 * are shared by all profiles; the session in a ticket says where the ticket is valid
 * (tls_server_set_session_context()). An upgrade hands them over.
 */
#ifndef TLS_TLS_TICKETS_H
#define TLS_TLS_TICKETS_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "base/must.h"
#include "tls/tls_load.h"
#include "tls/tls_profile_conf.h"

struct tls_tickets;

/* Lifetime of a ticket. */
#define TLS_TICKETS_SECONDS 7200

/*
 * tls_tickets_load(out, paths, l):
 * Read keys: the first encrypts, all decrypt. A file has lines in base64 (HAProxy), or is one
 * binary key of 48 or 80 bytes (nginx).
 *
 * Thread: any but loops
 * Owns:   the caller frees ${out} with tls_tickets_destroy()
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_tickets_load(struct tls_tickets **out, const struct tls_paths *paths,
                     struct tls_load *l) NODISCARD;

/* tls_tickets_destroy(t): erase and free ${t} or NULL. */
void tls_tickets_destroy(struct tls_tickets *t);

/* Arguments of the library's callback; see SSL_CTX_set_tlsext_ticket_key_evp_cb(3). */
struct tls_tickets_use {
    unsigned char *name, *iv;
    EVP_CIPHER_CTX *cipher;
    EVP_MAC_CTX *mac;
    bool encrypts;
};

/*
 * tls_tickets_use(t, use):
 * Set up encryption with the first key, or decryption with the one that the client's ticket names.
 * ${t} NULL: use the keys of the process.
 *
 * Errors: 1 (done); 2 (done with an older key: renew the ticket); 0 (no such key); -1 (failed)
 */
int tls_tickets_use(const struct tls_tickets *t, const struct tls_tickets_use *use) NODISCARD;

/* Space for the keys of the process. */
#define TLS_TICKETS_OWN_BYTES 256

/*
 * tls_tickets_export_own(out) / tls_tickets_import_own(data, len):
 * Write the keys of the process to ${out}, of TLS_TICKETS_OWN_BYTES, and return their length; 0:
 * none were made yet / use the keys that another process of this host has exported.
 *
 * Owns:   the caller erases its copy
 * Errors: 0; -EINVAL (not exported keys, or of another version)
 */
size_t tls_tickets_export_own(uint8_t *out);
int tls_tickets_import_own(const uint8_t *data, size_t len) NODISCARD;

#endif
