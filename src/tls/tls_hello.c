#include "tls/tls_hello.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct tls_hello *tls_hello_copy(const struct client_hello *hello)
{
    size_t sni_bytes = strlen(hello->sni) + 1;
    struct tls_hello *h = malloc(sizeof(*h) + sni_bytes + hello->alpn.n);

    if (!h)
        return NULL;
    ref_init(&h->references);
    memcpy(h->storage, hello->sni, sni_bytes);
    if (hello->alpn.n > 0)
        memcpy(h->storage + sni_bytes, hello->alpn.at, hello->alpn.n);
    h->sni = h->storage;
    h->alpn = (struct client_hello_bytes){(uint8_t *)h->storage + sni_bytes, hello->alpn.n};
    ja4_write(h->ja4, hello);
    return h;
}

int tls_hello_create(struct tls_hello **out, const uint8_t *data, size_t len)
{
    struct client_hello_scan scan = {0};
    struct client_hello hello;
    int rc = client_hello_scan(&scan, data, len);

    if (rc < 0)
        return rc;
    rc = client_hello_read(&hello, &scan, data);
    if (rc < 0)
        return rc;
    *out = tls_hello_copy(&hello);
    client_hello_free(&hello);
    return *out ? 0 : -ENOMEM;
}

struct tls_hello *tls_hello_hold(struct tls_hello *h)
{
    ref_hold(&h->references);
    return h;
}

void tls_hello_release(struct tls_hello *h)
{
    if (h && ref_release(&h->references))
        free(h);
}

bool tls_hello_agrees(const struct tls_hello *h, struct client_hello_bytes server_name,
                      struct client_hello_bytes alpn)
{
    char sni[SERVER_NAME_BYTES] = "";

    if (server_name.n > 0 && client_hello_read_server_name(sni, server_name) < 0)
        return false;
    return strcmp(sni, h->sni) == 0 && alpn.n == (h->alpn.n > 0 ? h->alpn.n + 2 : 0) &&
           (alpn.n == 0 || memcmp(alpn.at + 2, h->alpn.at, h->alpn.n) == 0);
}
