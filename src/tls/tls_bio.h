/*
 * tls/tls_bio: a BIO with memory on both sides, so that the library sees no descriptor.
 *
 * It reads bytes that the caller lends, and writes to a buffer of the thread. When no bytes are
 * left or the buffer is full, the BIO asks for a retry, as a non-blocking socket would.
 */
#ifndef TLS_TLS_BIO_H
#define TLS_TLS_BIO_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct bio_st;

struct tls_bio {
    const uint8_t *in; /* bytes to read */
    size_t in_bytes;
    uint8_t *out; /* output buffer */
    size_t out_bytes;
    size_t out_capacity;
};

/*
 * tls_bio_new(io):
 * Return a BIO that uses ${io}; NULL: no memory.
 *
 * Thread: any, one at a time
 * Owns:   ${io} must outlive the BIO, which SSL_free() frees
 */
struct bio_st *tls_bio_new(struct tls_bio *io) NODISCARD;

#endif
