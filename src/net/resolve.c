#include "net/resolve.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/lookup_share.h"
#include "net/name_service.h"

struct resolve_list {
    struct address *out;
    size_t n, max;
};

/* Add an address, but skip duplicates, frequent in /etc/hosts. */
static void resolve_add(struct resolve_list *list, const void *host, size_t len, uint32_t zone)
{
    struct address *a = &list->out[list->n];

    if (list->n == list->max)
        return;
    address_set_host(a, host, len, 0);
    if (a->u.sa.sa_family == AF_INET6)
        a->u.in6.sin6_scope_id = zone;
    for (size_t i = 0; i < list->n; i++)
        if (address_equal(&list->out[i], a))
            return;
    list->n++;
}

static void resolve_take(void *cookie, const struct dns_record *record)
{
    if (record->len == (record->type == ns_t_a ? NS_INADDRSZ : NS_IN6ADDRSZ))
        resolve_add(cookie, record->data, record->len, 0);
}

/* Is ${a} routed? Connecting a datagram socket sends nothing. */
static bool resolve_is_routed(const struct address *a)
{
    int fd = socket(a->u.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool routed = fd >= 0 && connect(fd, &a->u.sa, a->len) == 0;

    if (fd >= 0)
        close(fd);
    return routed;
}

/*
 * Move the IPv6 addresses, which begin at ${first}, to the front if IPv6 is routed: RFC 6724, rules
 * 1 and 6.
 */
static int resolve_ipv6_first(struct resolve_list *list, size_t first)
{
    size_t n6 = list->n - first;
    struct address *copy;

    if (first == 0 || n6 == 0 || !resolve_is_routed(&list->out[first]))
        return 0;
    copy = malloc(n6 * sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    memcpy(copy, &list->out[first], n6 * sizeof(*copy));
    memmove(&list->out[n6], list->out, first * sizeof(*copy));
    memcpy(list->out, copy, n6 * sizeof(*copy));
    free(copy);
    return 0;
}

/* In the order of enum resolve_family's bits, which dns_search() uses. */
static const uint16_t resolve_types[] = {ns_t_a, ns_t_aaaa};

static int resolve_by_dns(struct resolve_list *list, const char *host, struct dns_terms *terms)
{
    struct dns_search search = {.name = host,
                                .types = resolve_types,
                                .n_types = ARRAY_LEN(resolve_types),
                                .on_record = resolve_take,
                                .cookie = list};
    int rc = dns_search(&search, terms);
    size_t first = 0;

    if (rc < 0)
        return rc;
    while (first < list->n && list->out[first].u.sa.sa_family == AF_INET)
        first++;
    rc = resolve_ipv6_first(list, first);
    return rc < 0 ? rc : list->n > 0 ? (int)list->n : -EREMOTEIO; /* no address has its length */
}

static int resolve_error(int eai)
{
    switch (eai) {
    case EAI_AGAIN: return -EAGAIN;
    case EAI_FAIL: return -EREMOTEIO;
    case EAI_MEMORY: return -ENOMEM;
    case EAI_SYSTEM: return errno == 0 ? -EAGAIN : -errno;
    default: return -ENOENT;
    }
}

/* Add the addresses of ${family}; return their number or -errno. */
static int resolve_ask_system(struct resolve_list *list, const char *host, int family)
{
    const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    size_t n = list->n;
    int rc = getaddrinfo(host, NULL, &hints, &found);

    if (rc != 0)
        return resolve_error(rc);
    for (const struct addrinfo *info = found; info; info = info->ai_next) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)info->ai_addr;

        if (info->ai_family == AF_INET)
            resolve_add(list, &((const struct sockaddr_in *)info->ai_addr)->sin_addr, NS_INADDRSZ,
                        0);
        if (info->ai_family == AF_INET6)
            resolve_add(list, &in6->sin6_addr, NS_IN6ADDRSZ, in6->sin6_scope_id);
    }
    freeaddrinfo(found);
    return list->n > n ? (int)(list->n - n) : -ENOENT;
}

static unsigned resolve_families(const struct resolve_list *list)
{
    unsigned families = 0;

    for (size_t i = 0; i < list->n; i++)
        families |= resolve_family(&list->out[i]);
    return families;
}

/*
 * getaddrinfo(3) does not tell whether the lookup of one family failed. So ask again for those that
 * had addresses and have none now.
 */
static int resolve_by_system(struct resolve_list *list, const char *host, struct dns_terms *terms)
{
    static const int families[] = {AF_INET, AF_INET6}; /* in the order of enum resolve_family */
    int rc = resolve_ask_system(list, host, AF_UNSPEC);
    unsigned missing = terms->known & ~resolve_families(list);

    if (rc < 0 && rc != -ENOENT)
        return rc;
    for (unsigned i = 0; i < ARRAY_LEN(families); i++) {
        if (!(missing & 1u << i))
            continue;
        rc = resolve_ask_system(list, host, families[i]);
        if (rc < 0 && rc != -ENOENT) {
            terms->failed |= 1u << i;
            terms->error = rc;
        }
    }
    if (list->n > 0)
        return (int)list->n;
    return terms->failed ? terms->error : -ENOENT;
}

static bool resolve_is_loopback(const char *host)
{
    static const char *const endings[] = {".localhost", ".localhost."};
    size_t len = strlen(host);

    for (unsigned i = 0; i < ARRAY_LEN(endings); i++) {
        size_t ending = strlen(endings[i]);

        if (len > ending && strcasecmp(host + len - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

/* As resolve_host(), for a host without port. */
static int resolve_ask(void *out, size_t max, const char *host, struct dns_terms *terms)
{
    struct resolve_list list = {.out = out, .max = max};
    int rc = -ENOSYS;

    if (terms->servers || name_service_is_dns(host)) {
        if (resolve_is_loopback(host)) {
            resolve_add(&list, &(in_addr_t){htonl(INADDR_LOOPBACK)}, NS_INADDRSZ, 0);
            resolve_add(&list, &in6addr_loopback, NS_IN6ADDRSZ, 0);
            return (int)list.n;
        }
        rc = resolve_by_dns(&list, host, terms);
    }
    return rc == -ENOSYS ? resolve_by_system(&list, host, terms) : rc;
}

int resolve_host(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    char host[ADDRESS_HOST_BYTES];
    const struct lookup lookup = {.ask = resolve_ask, .name = host, .item_bytes = sizeof(*out)};
    uint16_t port;
    int rc = address_parse_target(out, max, word);

    terms->ttl_ns = CLOCK_NEVER;
    terms->failed = 0;
    if (rc != -ENOENT)
        return rc;
    rc = address_split_port(host, sizeof(host), word, &port);
    if (rc < 0)
        return rc;
    rc = lookup_share_ask(out, max, &lookup, terms);
    for (int i = 0; i < rc; i++)
        address_set_port(&out[i], port);
    return rc;
}

unsigned resolve_family(const struct address *a)
{
    switch (a->u.sa.sa_family) {
    case AF_INET: return RESOLVE_IPV4;
    case AF_INET6: return RESOLVE_IPV6;
    default: return 0;
    }
}
