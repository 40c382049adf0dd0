/*
 * Fuzz net/proxy_header: one verdict however the bytes come, and what is taken is written so that
 * it is taken again.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "net/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The verdict on ${size} bytes is that on the first of their beginnings that has one. */
static void grow(const uint8_t *data, size_t size, int verdict)
{
    struct proxy_header h;
    size_t step = size / 64 + 1; /* not each, so that long inputs stay quick */
    bool decided = false;

    for (size_t len = 0; len < size; len += step) {
        uint8_t *part = malloc(len > 0 ? len : 1);
        int rc;

        MUST(part != NULL);
        memcpy(part, data, len);
        rc = proxy_header_decode(&h, part, len);
        free(part);
        MUST(rc == -EAGAIN || rc == verdict);
        MUST(!decided || rc == verdict);
        decided = rc != -EAGAIN;
        MUST(rc < 0 || (size_t)rc <= len);
    }
}

static void again(const struct proxy_header *h)
{
    struct proxy_header_conf conf = {
        .version = h->version, .crc32c = true, .alpn = true, .authority = true, .ssl = true};
    uint8_t out[PROXY_HEADER_MAX_BYTES];
    struct proxy_header copy;
    const struct proxy_header_client client = {
        .source = &h->source, .destination = &h->destination, .tls = h->tls};
    size_t len = proxy_header_encode(out, &conf, &client);

    MUST(len <= sizeof(out));
    MUST(proxy_header_decode(&copy, out, len) == (int)len);
    if (address_is_unix(&h->source)) {
        MUST(copy.local);
        return;
    }
    MUST(!copy.local && copy.version == h->version);
    MUST(address_equal(&copy.source, &h->source));
    MUST(address_equal(&copy.destination, &h->destination));
    MUST(copy.tls.ssl.n == h->tls.ssl.n || copy.tls.ssl.n == 0);
    (void)proxy_header_ssl_find(h->tls.ssl, PROXY_HEADER_SSL_NAME);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_header h;
    char text[ADDRESS_TEXT_BYTES];
    int rc = proxy_header_decode(&h, data, size);

    MUST(rc != 0 && rc <= PROXY_HEADER_MAX_BYTES && rc <= (int)size);
    grow(data, size, rc);
    if (rc < 0 || h.local)
        return 0;
    address_format(text, sizeof(text), &h.source);
    address_format(text, sizeof(text), &h.destination);
    again(&h);
    return 0;
}
