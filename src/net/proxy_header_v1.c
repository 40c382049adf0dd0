#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "net/proxy_header_internal.h"

/* Unread part of the line. */
struct line {
    const uint8_t *at, *end; /* end of the data, at most of the longest line */
    bool cut;                /* the data fills the longest line */
};

static int proxy_header_v1_line_ends(const struct line *l)
{
    return l->cut ? -EPROTO : -EAGAIN;
}

static int proxy_header_v1_take_word(struct line *l, const char *word)
{
    for (; *word != '\0'; word++, l->at++) {
        if (l->at == l->end)
            return proxy_header_v1_line_ends(l);
        if (*l->at != (uint8_t)*word)
            return -EPROTO;
    }
    return 0;
}

/*
 * Read 1 to ${size} - 1 characters of ${allowed}, up to ${stop}, and skip ${stop}. -EAGAIN: ${stop}
 * is not there yet.
 */
static int proxy_header_v1_take_field(struct line *l, char *text, size_t size, const char *allowed,
                                      char stop)
{
    size_t n = 0;

    for (; l->at < l->end && *l->at != (uint8_t)stop; l->at++) {
        if (n == size - 1 || *l->at == '\0' || !strchr(allowed, *l->at))
            return -EPROTO;
        text[n++] = (char)*l->at;
    }
    text[n] = '\0';
    if (l->at == l->end)
        return proxy_header_v1_line_ends(l);
    l->at++;
    return n > 0 ? 0 : -EPROTO;
}

/* Can ${text} be the begin of an address? If so, one of these endings completes it. */
static bool proxy_header_v1_may_become_host(const char *text, int family)
{
    static const char *const ends[] = {"",       "0",       ".0", "0.0", ".0.0", "0.0.0",
                                       ".0.0.0", "0.0.0.0", ":",  "::",  ":0"};
    char whole[INET6_ADDRSTRLEN + sizeof("0.0.0.0")];
    uint8_t host[sizeof(struct in6_addr)];

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(whole, sizeof(whole), "%s%s", text, ends[i]);
        if (inet_pton(family, whole, host) == 1)
            return true;
    }
    return false;
}

static int proxy_header_v1_take_host(struct line *l, struct address *out, int family)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t host[sizeof(struct in6_addr)];
    bool is_4 = family == AF_INET;
    int rc =
        is_4 ? proxy_header_v1_take_field(l, text, INET_ADDRSTRLEN, "0123456789.", ' ')
             : proxy_header_v1_take_field(l, text, sizeof(text), "0123456789abcdefABCDEF:.", ' ');

    if (rc == -EAGAIN)
        return proxy_header_v1_may_become_host(text, family) ? -EAGAIN : -EPROTO;
    if (rc < 0)
        return rc;
    if (inet_pton(family, text, host) != 1)
        return -EPROTO;
    address_set_host(out, host, is_4 ? 4 : sizeof(host), 0);
    return 0;
}

static int proxy_header_v1_take_port(struct line *l, struct address *out, char stop)
{
    char text[sizeof("65535")];
    uint64_t port;
    int rc = proxy_header_v1_take_field(l, text, sizeof(text), "0123456789", stop);

    if (rc < 0 && (rc != -EAGAIN || text[0] == '\0'))
        return rc;
    if (parse_uint(&port, text, UINT16_MAX) < 0)
        return -EPROTO;
    if (rc < 0)
        return rc;
    address_set_port(out, (uint16_t)port);
    return 0;
}

static int proxy_header_v1_take_addresses(struct line *l, struct proxy_header *h, int family)
{
    int rc = proxy_header_v1_take_host(l, &h->source, family);

    if (rc == 0)
        rc = proxy_header_v1_take_host(l, &h->destination, family);
    if (rc == 0)
        rc = proxy_header_v1_take_port(l, &h->source, ' ');
    if (rc == 0)
        rc = proxy_header_v1_take_port(l, &h->destination, '\r');
    return rc;
}

/* Skip the rest of an UNKNOWN line. */
static int proxy_header_v1_take_anything(struct line *l)
{
    if (l->at < l->end && *l->at != ' ' && *l->at != '\r')
        return -EPROTO;
    for (; l->at < l->end && *l->at != '\r'; l->at++) {
        if (*l->at == '\n')
            return -EPROTO;
    }
    return proxy_header_v1_take_word(l, "\r");
}

static int proxy_header_v1_take_line(struct line *l, struct proxy_header *h)
{
    int rc = proxy_header_v1_take_word(l, PROXY_HEADER_V1_MARK);

    if (rc < 0)
        return rc;
    h->local = l->at < l->end && *l->at == 'U';
    if (h->local) {
        rc = proxy_header_v1_take_word(l, "UNKNOWN");
        return rc < 0 ? rc : proxy_header_v1_take_anything(l);
    }
    rc = proxy_header_v1_take_word(l, "TCP");
    if (rc < 0)
        return rc;
    if (l->at < l->end && *l->at == '6') {
        rc = proxy_header_v1_take_word(l, "6 ");
        return rc < 0 ? rc : proxy_header_v1_take_addresses(l, h, AF_INET6);
    }
    rc = proxy_header_v1_take_word(l, "4 ");
    return rc < 0 ? rc : proxy_header_v1_take_addresses(l, h, AF_INET);
}

int proxy_header_v1_decode(struct proxy_header *out, const uint8_t *data, size_t len)
{
    bool cut = len >= PROXY_HEADER_V1_MAX_BYTES;
    struct line l = {data, data + (cut ? PROXY_HEADER_V1_MAX_BYTES : len), cut};
    struct proxy_header h = {.version = PROXY_HEADER_V1};
    int rc = proxy_header_v1_take_line(&l, &h);

    if (rc == 0)
        rc = proxy_header_v1_take_word(&l, "\n");
    if (rc < 0)
        return rc;
    *out = h;
    return (int)(l.at - data);
}
