/*
 * Fuzz tls/client_hello: one verdict however the bytes come, and a hello that is taken is taken
 * again in records of other sizes, with the same fingerprint.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "tls/client_hello.h"
#include "tls/ja4.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The verdict with growing bytes, each time exactly as many, is ${verdict}. */
static void grow(const uint8_t *data, size_t size, int verdict)
{
    struct client_hello_scan scan = {0};
    size_t step = size / 64 + 1; /* not each, so that long inputs stay quick */
    int rc = -EAGAIN;

    for (size_t len = 0; rc == -EAGAIN && len < size; len += step) {
        uint8_t *part = malloc(len > 0 ? len : 1);

        MUST(part != NULL);
        memcpy(part, data, len);
        rc = client_hello_scan(&scan, part, len);
        free(part);
        MUST(rc == -EAGAIN || rc == verdict);
    }
    if (rc == -EAGAIN)
        MUST(client_hello_scan(&scan, data, size) == verdict);
}

/* The message of ${data} in records of one byte, if it fits. */
static size_t divide(uint8_t *out, const uint8_t *data, size_t end)
{
    size_t n = 0;

    for (size_t at = 0; at < end;) {
        size_t fragment = (size_t)(data[at + 3] << 8 | data[at + 4]);

        at += 5;
        if (n + 6 * fragment > CLIENT_HELLO_MAX_BYTES)
            return 0;
        for (size_t i = 0; i < fragment; i++, n += 6) {
            memcpy(out + n, "\x16\3\3\0\1", 5);
            out[n + 5] = data[at + i];
        }
        at += fragment;
    }
    return n;
}

static void again(const struct client_hello *hello, const uint8_t *data, size_t end)
{
    static uint8_t divided[CLIENT_HELLO_MAX_BYTES];
    struct client_hello_scan scan = {0};
    struct client_hello copy;
    char ja4[JA4_BYTES], same[JA4_BYTES];
    size_t n = divide(divided, data, end);

    if (n == 0)
        return;
    MUST(client_hello_scan(&scan, divided, n) == (int)n);
    MUST(client_hello_read(&copy, &scan, divided) == 0);
    MUST(strcmp(copy.sni, hello->sni) == 0);
    MUST(copy.alpn.n == hello->alpn.n);
    ja4_write(ja4, hello);
    ja4_write(same, &copy);
    MUST(strlen(ja4) == JA4_BYTES - 1 && strcmp(ja4, same) == 0);
    client_hello_free(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client_hello_scan scan = {0};
    struct client_hello hello;
    int rc = client_hello_scan(&scan, data, size);

    MUST(rc != 0 && rc <= CLIENT_HELLO_MAX_BYTES && rc <= (int)size);
    grow(data, size, rc);
    if (rc < 0 || client_hello_read(&hello, &scan, data) < 0)
        return 0;
    MUST(hello.sni[0] == '\0' || hello.has_sni);
    again(&hello, data, (size_t)rc);
    client_hello_free(&hello);
    return 0;
}
