/*
 * support/hello_builder: a ClientHello under construction, one record.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_HELLO_BUILDER_H
#define SUPPORT_HELLO_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "tls/client_hello.h"

struct hello_builder {
    /* A hello under construction, one record. */
    uint8_t built[2 * CLIENT_HELLO_MAX_BYTES];
    size_t built_bytes;
};

extern struct hello_builder hello_builder;

void hello_builder_put(unsigned bytes, size_t number);

void hello_builder_put_bytes(const void *data, size_t n);

/* Set the number of ${bytes} at ${at} to the bytes behind it. */
void hello_builder_put_length(size_t at, unsigned bytes);

void hello_builder_begin(size_t n_ciphers);

/* The lengths in front, or those that fit. */
void hello_builder_seal(void);

void hello_builder_end_extensions(size_t at);

int hello_builder_read_hello(struct client_hello *out, const uint8_t *data, size_t len);

#endif
