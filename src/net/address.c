/* Literals are parsed with inet_pton(3): getaddrinfo(3) would accept "127.1" and "010.0.0.1". */
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parse.h"

/* Lengths without final dot: RFC 1035, section 2.3.4. */
#define HOST_NAME_BYTES 253
#define LABEL_BYTES     63

#define PADDED "abns@"

/* An abstract name that fills sun_path, as HAProxy and other programs write it. */
static int address_parse_padded(struct address *out, const char *name)
{
    size_t len = strlen(name);

    if (len == 0)
        return -EINVAL;
    if (len + 1 >= sizeof(out->u.un.sun_path))
        return -ENAMETOOLONG;
    memset(out, 0, sizeof(*out));
    out->u.un.sun_family = AF_UNIX;
    memcpy(out->u.un.sun_path + 1, name, len);
    out->len = sizeof(out->u.un);
    return 1;
}

static int address_parse_unix(struct address *out, const char *word)
{
    size_t len = strlen(word);
    bool abstract = word[0] == '@';

    if (abstract && len == 1)
        return -EINVAL; /* the kernel would choose a random name */
    if (len >= sizeof(out->u.un.sun_path))
        return -ENAMETOOLONG;
    memset(out, 0, sizeof(*out));
    out->u.un.sun_family = AF_UNIX;
    memcpy(out->u.un.sun_path, word, len);
    if (abstract)
        out->u.un.sun_path[0] = '\0';
    /* An abstract name has no NUL: unix(7). */
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (abstract ? 0 : 1));
    return 1;
}

static void address_set_ipv4(struct address *out, const struct in_addr *host, uint16_t port)
{
    memset(out, 0, sizeof(*out));
    out->len = sizeof(out->u.in);
    out->u.in.sin_family = AF_INET;
    out->u.in.sin_addr = *host;
    out->u.in.sin_port = htons(port);
}

static void address_set_ipv6(struct address *out, const struct in6_addr *host, uint32_t scope,
                             uint16_t port)
{
    struct in_addr mapped;

    if (IN6_IS_ADDR_V4MAPPED(host)) {
        /* Convert it to IPv4, because our IPv6-only sockets cannot reach IPv4-mapped addresses. */
        memcpy(&mapped, &host->s6_addr[12], sizeof(mapped));
        address_set_ipv4(out, &mapped, port);
        return;
    }
    memset(out, 0, sizeof(*out));
    out->len = sizeof(out->u.in6);
    out->u.in6.sin6_family = AF_INET6;
    out->u.in6.sin6_addr = *host;
    out->u.in6.sin6_scope_id = scope;
    out->u.in6.sin6_port = htons(port);
}

/* Parse an IPv6 scope, an interface name or number: RFC 4007, section 11. */
static int address_parse_scope(uint32_t *out, const char *text)
{
    uint64_t number;
    unsigned index = if_nametoindex(text);

    if (index == 0) {
        if (parse_uint(&number, text, UINT32_MAX) < 0 || number == 0)
            return -EINVAL;
        index = (unsigned)number;
    }
    *out = index;
    return 0;
}

static int address_parse_ipv6(struct address *out, char *host, uint16_t port)
{
    struct in6_addr addr;
    uint32_t scope = 0;
    char *percent = strchr(host, '%');

    if (percent) {
        *percent = '\0';
        if (address_parse_scope(&scope, percent + 1) < 0)
            return -EINVAL;
    }
    if (inet_pton(AF_INET6, host, &addr) != 1)
        return -EINVAL;
    if (scope != 0 && !IN6_IS_ADDR_LINKLOCAL(&addr))
        return -EINVAL;
    address_set_ipv6(out, &addr, scope, port);
    if (scope != 0 && if_nametoindex(percent + 1) == scope)
        snprintf(out->u.zoned.zone, sizeof(out->u.zoned.zone), "%s", percent + 1);
    return 1;
}

/* Would inet_aton(3) accept ${label}? */
static bool address_is_number(const char *label, size_t len)
{
    if (len > 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X'))
        return strspn(label + 2, "0123456789abcdefABCDEF") >= len - 2;
    return strspn(label, "0123456789") >= len;
}

/* Is ${label} valid? RFC 1123, section 2.1, plus the common '_'. */
static bool address_is_label(const char *label, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    return len > 0 && len <= LABEL_BYTES && strspn(label, allowed) >= len && label[0] != '-' &&
           label[len - 1] != '-';
}

/* The last label of a host name is not a number: RFC 1123, section 2.1. */
static bool address_is_host_name(const char *host)
{
    const char *label = host;
    size_t len = strlen(host), label_len;

    if (len > 0 && host[len - 1] == '.')
        len--;
    if (len > HOST_NAME_BYTES)
        return false;
    for (;;) {
        label_len = strcspn(label, ".");
        if (!address_is_label(label, label_len))
            return false;
        if (label + label_len == host + len)
            return !address_is_number(label, label_len);
        label += label_len + 1;
    }
}

int address_split_port(char *host, size_t size, const char *word, uint16_t *port)
{
    const char *colon = strrchr(word, ':');
    uint64_t number;
    size_t len;
    int rc;

    if (!colon)
        return -EINVAL;
    len = (size_t)(colon - word);
    if (len == 0 || len >= size)
        return -EINVAL;
    rc = parse_uint(&number, colon + 1, UINT16_MAX);
    if (rc < 0)
        return rc;
    if (number == 0)
        return -ERANGE;
    memcpy(host, word, len);
    host[len] = '\0';
    *port = (uint16_t)number;
    return 0;
}

/* Was the kernel built or booted without IPv6? */
static bool address_lacks_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return errno == EAFNOSUPPORT;
    close(fd);
    return false;
}

/* Parse `*` or an IP address. -ENOENT: ${host} may be a host name. */
static int address_read_host(struct address *out, char *host, uint16_t port)
{
    size_t len = strlen(host);
    struct in_addr addr;

    if (strcmp(host, "*") == 0) {
        address_set_ipv4(&out[0], &(struct in_addr){.s_addr = htonl(INADDR_ANY)}, port);
        if (address_lacks_ipv6())
            return 1;
        address_set_ipv6(&out[1], &in6addr_any, 0, port);
        return 2;
    }
    if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        return address_parse_ipv6(out, host + 1, port);
    }
    if (inet_pton(AF_INET, host, &addr) == 1) {
        address_set_ipv4(out, &addr, port);
        return 1;
    }
    return address_is_host_name(host) ? -ENOENT : -EINVAL;
}

int address_parse(struct address *out, size_t max, const char *word)
{
    char host[ADDRESS_HOST_BYTES];
    uint16_t port;
    int rc;

    MUST(max >= 2);
    if (word[0] == '/' || word[0] == '@')
        return address_parse_unix(out, word);
    if (strncmp(word, PADDED, strlen(PADDED)) == 0)
        return address_parse_padded(out, word + strlen(PADDED));
    rc = address_split_port(host, sizeof(host), word, &port);
    if (rc < 0)
        return rc;
    return address_read_host(out, host, port);
}

int address_parse_host(struct address *out, const char *word)
{
    struct address found[2];
    char host[ADDRESS_HOST_BYTES];
    size_t len = strlen(word);
    int rc;

    if (len == 0 || len >= sizeof(host))
        return -EINVAL;
    memcpy(host, word, len + 1);
    rc = strchr(host, ':') && host[0] != '[' ? address_parse_ipv6(found, host, 0)
                                             : address_read_host(found, host, 0);
    if (rc < 0)
        return rc;
    *out = found[0];
    return rc == 1 ? 0 : -EINVAL;
}

int address_parse_target(struct address *out, size_t max, const char *word)
{
    char host[ADDRESS_HOST_BYTES];
    uint16_t port;
    int rc = address_parse(out, max, word);

    if (rc != -ENOENT)
        return rc;
    rc = address_split_port(host, sizeof(host), word, &port);
    if (rc < 0)
        return rc;
    if (strcasecmp(host, "localhost") != 0 && strcasecmp(host, "localhost.") != 0)
        return -ENOENT;
    /* IPv4 first: more servers listen on IPv4 only. */
    address_set_ipv4(&out[0], &(struct in_addr){.s_addr = htonl(INADDR_LOOPBACK)}, port);
    address_set_ipv6(&out[1], &in6addr_loopback, 0, port);
    return 2;
}

bool address_is_on_new_interface(const struct address *a, const struct address *b)
{
    struct address moved = *a;

    if (a->u.sa.sa_family != AF_INET6 || b->u.sa.sa_family != AF_INET6 ||
        a->u.in6.sin6_scope_id == b->u.in6.sin6_scope_id || a->u.zoned.zone[0] == '\0' ||
        strcmp(a->u.zoned.zone, b->u.zoned.zone) != 0)
        return false;
    moved.u.in6.sin6_scope_id = b->u.in6.sin6_scope_id;
    return address_equal(&moved, b);
}

bool address_equal(const struct address *a, const struct address *b)
{
    if (a->u.sa.sa_family != b->u.sa.sa_family || a->netns != b->netns)
        return false;
    switch (a->u.sa.sa_family) {
    case AF_INET:
        return a->u.in.sin_port == b->u.in.sin_port &&
               a->u.in.sin_addr.s_addr == b->u.in.sin_addr.s_addr;
    case AF_INET6:
        return a->u.in6.sin6_port == b->u.in6.sin6_port &&
               a->u.in6.sin6_scope_id == b->u.in6.sin6_scope_id &&
               IN6_ARE_ADDR_EQUAL(&a->u.in6.sin6_addr, &b->u.in6.sin6_addr);
    default: return a->len == b->len && memcmp(&a->u, &b->u, a->len) == 0;
    }
}

/* The kernel connects 0.0.0.0 to 127.0.0.1 and :: to ::1 (ip(7); RFC 4291, section 2.5.2). */
static bool address_covers_ipv4(in_addr_t listen, in_addr_t target)
{
    if (target == INADDR_ANY)
        target = INADDR_LOOPBACK;
    return listen == target || (listen == INADDR_ANY && target >> 24 == IN_LOOPBACKNET);
}

static bool address_covers_ipv6(const struct in6_addr *listen, const struct in6_addr *target)
{
    if (IN6_IS_ADDR_UNSPECIFIED(target))
        target = &in6addr_loopback;
    return IN6_ARE_ADDR_EQUAL(listen, target) ||
           (IN6_IS_ADDR_UNSPECIFIED(listen) && IN6_IS_ADDR_LOOPBACK(target));
}

bool address_covers(const struct address *listen, const struct address *target)
{
    if (listen->u.sa.sa_family != target->u.sa.sa_family || listen->netns != target->netns)
        return false;
    switch (listen->u.sa.sa_family) {
    case AF_INET:
        return listen->u.in.sin_port == target->u.in.sin_port &&
               address_covers_ipv4(ntohl(listen->u.in.sin_addr.s_addr),
                                   ntohl(target->u.in.sin_addr.s_addr));
    case AF_INET6:
        return listen->u.in6.sin6_port == target->u.in6.sin6_port &&
               listen->u.in6.sin6_scope_id == target->u.in6.sin6_scope_id &&
               address_covers_ipv6(&listen->u.in6.sin6_addr, &target->u.in6.sin6_addr);
    default: return address_equal(listen, target);
    }
}

static bool address_is_wildcard(const struct address *a)
{
    return a->u.sa.sa_family == AF_INET ? a->u.in.sin_addr.s_addr == htonl(INADDR_ANY)
                                        : IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr);
}

bool address_conflicts(const struct address *a, const struct address *b, bool reuseport)
{
    if (address_equal(a, b))
        return true;
    return !reuseport && !address_is_unix(a) && a->u.sa.sa_family == b->u.sa.sa_family &&
           a->netns == b->netns && address_port(a) == address_port(b) &&
           (address_is_wildcard(a) || address_is_wildcard(b));
}

void address_set_host(struct address *out, const void *host, size_t len, uint16_t port)
{
    struct in_addr in4;
    struct in6_addr in6;

    if (len == sizeof(in4)) {
        memcpy(&in4, host, sizeof(in4));
        address_set_ipv4(out, &in4, port);
    } else {
        MUST(len == sizeof(in6));
        memcpy(&in6, host, sizeof(in6));
        address_set_ipv6(out, &in6, 0, port);
    }
}

uint16_t address_port(const struct address *a)
{
    switch (a->u.sa.sa_family) {
    case AF_INET: return ntohs(a->u.in.sin_port);
    case AF_INET6: return ntohs(a->u.in6.sin6_port);
    default: return 0;
    }
}

void address_set_port(struct address *a, uint16_t port)
{
    if (a->u.sa.sa_family == AF_INET)
        a->u.in.sin_port = htons(port);
    else if (a->u.sa.sa_family == AF_INET6)
        a->u.in6.sin6_port = htons(port);
}

bool address_is_unix(const struct address *a)
{
    return a->u.sa.sa_family == AF_UNIX;
}

const void *address_host(const struct address *a, size_t *len)
{
    const struct in6_addr *host = &a->u.in6.sin6_addr;

    switch (a->u.sa.sa_family) {
    case AF_INET: *len = sizeof(a->u.in.sin_addr); return &a->u.in.sin_addr;
    case AF_INET6:
        *len = IN6_IS_ADDR_V4MAPPED(host) ? 4 : sizeof(*host);
        return host->s6_addr + sizeof(*host) - *len;
    default: *len = 0; return NULL;
    }
}

const void *address_path(const struct address *a, size_t *len)
{
    size_t head = offsetof(struct sockaddr_un, sun_path);

    *len = address_is_unix(a) && a->len > head ? a->len - head : 0;
    return *len > 0 ? a->u.un.sun_path : NULL;
}

void address_set_netns(struct address *a, uint32_t id)
{
    bool is_file = address_is_unix(a) && a->u.un.sun_path[0] != '\0';

    a->netns = is_file ? 0 : id;
}
