/*
 * Fuzz tls/tls_flight with what the other end of a handshake sends: one verdict however the bytes
 * come, the same one for the same messages in other records, and OpenSSL finds no hello in what is
 * a fault, or not yet whole.
 *
 * The first byte says what the rest is: bytes, or messages to put into records.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "tls/tls_flight.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER_BYTES  5
#define LONGEST_BYTES (1 << 14)

/* The first ${n} bytes, scanned at once. */
static struct tls_flight scanned(bool accepts, const uint8_t *data, size_t n)
{
    struct tls_flight f = {.accepts = accepts};
    bool is_whole = tls_flight_scan(&f, data, n);

    MUST(is_whole == (f.complete && !f.fault));
    MUST(f.records_end <= n);
    return f;
}

static int note_hello(SSL *ssl, int *alert, void *cookie)
{
    (void)ssl;
    (void)alert;
    *(bool *)cookie = true;
    return SSL_CLIENT_HELLO_ERROR;
}

/* Does OpenSSL find a whole ClientHello? */
static bool has_hello(const uint8_t *data, size_t n)
{
    static SSL_CTX *context;
    static bool found;
    BIO *in = BIO_new_mem_buf(data, (int)n);
    SSL *ssl;

    if (!context) {
        context = SSL_CTX_new(TLS_server_method());
        MUST(context != NULL);
        SSL_CTX_set_client_hello_cb(context, note_hello, &found);
    }
    ssl = SSL_new(context);
    MUST(ssl != NULL && in != NULL);
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(ssl, in, BIO_new(BIO_s_null()));
    found = false;
    MUST(SSL_accept(ssl) <= 0);
    SSL_free(ssl);
    ERR_clear_error();
    return found;
}

/* With growing bytes, as a loop receives them, up to the first verdict. */
static void try_bytes(bool accepts, const uint8_t *data, size_t size)
{
    struct tls_flight f = {.accepts = accepts};
    bool is_whole = false;
    size_t n = 0;

    while (n < size && !is_whole && !f.fault) {
        uint8_t *part = malloc(++n); /* a copy: reading past its end is seen */
        struct tls_flight same;

        MUST(part != NULL);
        memcpy(part, data, n);
        is_whole = tls_flight_scan(&f, part, n);
        same = scanned(accepts, part, n);
        MUST(is_whole == (same.complete && !same.fault));
        MUST(f.fault == same.fault && f.records_end == same.records_end);
        free(part);
    }
    if (accepts && !is_whole)
        MUST(!has_hello(data, n));
}

/* Records of at most ${most} bytes with all of ${data}. */
static uint8_t *in_records(size_t *n, const uint8_t *data, size_t size, size_t most)
{
    uint8_t *all = malloc(size * (HEADER_BYTES + 1) + 1), *at = all;

    MUST(all != NULL);
    while (size > 0) {
        size_t len = size < most ? size : most;

        memcpy(at, (uint8_t[]){SSL3_RT_HANDSHAKE, 3, 3, (uint8_t)(len >> 8), (uint8_t)len},
               HEADER_BYTES);
        memcpy(at + HEADER_BYTES, data, len);
        at += HEADER_BYTES + len;
        data += len;
        size -= len;
    }
    *n = (size_t)(at - all);
    return all;
}

static void try_messages(bool accepts, size_t most, const uint8_t *data, size_t size)
{
    size_t n, other_n;
    uint8_t *records = in_records(&n, data, size, LONGEST_BYTES);
    uint8_t *others = in_records(&other_n, data, size, most);
    struct tls_flight f = scanned(accepts, records, n), g = scanned(accepts, others, other_n);

    MUST(f.fault == g.fault);
    if (!f.fault)
        MUST(f.complete == g.complete && f.records_end == n && g.records_end == other_n);
    free(others);
    free(records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool accepts;

    if (size < 2)
        return 0;
    accepts = data[0] & 1;
    if (data[0] & 2)
        try_messages(accepts, 1u + data[1], data + 2, size - 2);
    else
        try_bytes(accepts, data + 1, size - 1);
    return 0;
}
