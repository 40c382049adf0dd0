#include "support/hello_builder.h"

#include <string.h>

#include "tls/client_hello.h"

struct hello_builder hello_builder;

void hello_builder_put(unsigned bytes, size_t number)
{
    while (bytes-- > 0)
        hello_builder.built[hello_builder.built_bytes++] = (uint8_t)(number >> 8 * bytes);
}

void hello_builder_put_bytes(const void *data, size_t n)
{
    memcpy(hello_builder.built + hello_builder.built_bytes, data, n);
    hello_builder.built_bytes += n;
}

void hello_builder_put_length(size_t at, unsigned bytes)
{
    size_t n = hello_builder.built_bytes - at - bytes, end = hello_builder.built_bytes;

    hello_builder.built_bytes = at;
    hello_builder_put(bytes, n);
    hello_builder.built_bytes = end;
}

void hello_builder_begin(size_t n_ciphers)
{
    hello_builder.built_bytes = 0;
    hello_builder_put(5, 0x1603010000);
    hello_builder_put(4, 0x01000000);
    hello_builder_put(2, 0x0303);
    hello_builder_put_bytes("0123456789abcdef0123456789abcdef", 32);
    hello_builder_put(1, 0);
    hello_builder_put(2, 2 * n_ciphers);
    for (size_t i = 0; i < n_ciphers; i++)
        hello_builder_put(2, 0x1301 + i);
    hello_builder_put(2, 0x0100);
}

void hello_builder_seal(void)
{
    hello_builder_put_length(6, 3);
    hello_builder_put_length(3, 2);
}

void hello_builder_end_extensions(size_t at)
{
    hello_builder_put_length(at, 2);
    hello_builder_seal();
}

int hello_builder_read_hello(struct client_hello *out, const uint8_t *data, size_t len)
{
    struct client_hello_scan scan = {0};
    int n = client_hello_scan(&scan, data, len);

    return n < 0 ? n : client_hello_read(out, &scan, data);
}
