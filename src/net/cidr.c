#include "net/cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "net/address.h"

#define MAPPED_BITS 96 /* the prefix ::ffff:0:0/96 */

static int cidr_parse_host(struct cidr *c, const char *host)
{
    struct in6_addr in6;

    if (inet_pton(AF_INET, host, c->host) == 1) {
        c->len = 4;
    } else if (inet_pton(AF_INET6, host, &in6) == 1) {
        c->len = sizeof(in6);
        memcpy(c->host, &in6, sizeof(in6));
    } else {
        return -EINVAL;
    }
    c->bits = (uint8_t)(c->len * 8);
    return 0;
}

/* Clear the bits behind the prefix; true if any was set. */
static bool cidr_cut_host(struct cidr *c)
{
    bool any = false;

    for (unsigned i = 0; i < c->len; i++) {
        unsigned before = i * 8 < c->bits ? c->bits - i * 8 : 0;
        uint8_t mask = before >= 8 ? 0xff : (uint8_t)(0xff00 >> before);

        any = any || (c->host[i] & (uint8_t)~mask) != 0;
        c->host[i] &= mask;
    }
    return any;
}

/* An IPv4-mapped block becomes IPv4, unless its prefix is so short that it contains IPv6. */
static void cidr_unmap(struct cidr *c)
{
    struct in6_addr in6;

    if (c->len != sizeof(in6) || c->bits < MAPPED_BITS)
        return;
    memcpy(&in6, c->host, sizeof(in6));
    if (!IN6_IS_ADDR_V4MAPPED(&in6))
        return;
    memset(c->host, 0, sizeof(c->host));
    memcpy(c->host, in6.s6_addr + MAPPED_BITS / 8, 4);
    c->len = 4;
    c->bits = (uint8_t)(c->bits - MAPPED_BITS);
}

int cidr_parse(struct cidr *out, const char *word)
{
    struct cidr c = {0};
    char host[INET6_ADDRSTRLEN];
    size_t len = strcspn(word, "/");
    uint64_t bits;
    bool cut;
    int rc;

    if (strcmp(word, "unix") == 0) {
        *out = c;
        return 0;
    }
    if (len >= sizeof(host))
        return -EINVAL;
    memcpy(host, word, len);
    host[len] = '\0';
    if (cidr_parse_host(&c, host) < 0)
        return -EINVAL;
    if (word[len] == '/') {
        rc = parse_uint(&bits, word + len + 1, c.bits);
        if (rc < 0)
            return rc;
        c.bits = (uint8_t)bits;
    }
    cut = cidr_cut_host(&c);
    cidr_unmap(&c);
    *out = c;
    return cut ? -EDOM : 0;
}

static bool cidr_has_host(const struct cidr *c, const uint8_t *host)
{
    unsigned bytes = c->bits / 8, rest = c->bits % 8;

    if (memcmp(host, c->host, bytes) != 0)
        return false;
    return rest == 0 || ((host[bytes] ^ c->host[bytes]) & (0xff00 >> rest) & 0xff) == 0;
}

bool cidr_has(const struct cidr *c, const struct address *a)
{
    size_t len;
    const uint8_t *host = address_host(a, &len);

    if (c->len == 0)
        return address_is_unix(a);
    return host && len == c->len && cidr_has_host(c, host);
}

bool cidr_covers(const struct cidr *c, const struct cidr *other)
{
    return c->len == other->len && c->bits <= other->bits && cidr_has_host(c, other->host);
}

bool cidr_any_has(const struct cidr *list, size_t n, const struct address *a)
{
    for (size_t i = 0; i < n; i++) {
        if (cidr_has(&list[i], a))
            return true;
    }
    return false;
}

const char *cidr_format(char *text, size_t size, const struct cidr *c)
{
    char host[INET6_ADDRSTRLEN];

    MUST(size >= CIDR_TEXT_BYTES);
    if (c->len == 0) {
        snprintf(text, size, "unix");
        return text;
    }
    inet_ntop(c->len == 4 ? AF_INET : AF_INET6, c->host, host, sizeof(host));
    snprintf(text, size, "%s/%u", host, c->bits);
    return text;
}
