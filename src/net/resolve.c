#include "net/resolve.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/name_service.h"

struct resolve_list {
    struct address *out;
    size_t n, max;
    uint16_t port;
};

/* Add an address, but skip duplicates, frequent in /etc/hosts. */
static void resolve_add(struct resolve_list *list, const void *host, size_t len, uint32_t zone)
{
    struct address *a = &list->out[list->n];

    if (list->n == list->max)
        return;
    address_set_host(a, host, len, list->port);
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

static int resolve_by_dns(struct resolve_list *list, const char *host, struct dns_terms *terms)
{
    static const uint16_t types[] = {ns_t_a, ns_t_aaaa};
    struct dns_search search = {.name = host,
                                .types = types,
                                .n_types = ARRAY_LEN(types),
                                .on_record = resolve_take,
                                .cookie = list};
    int rc = dns_search(&search, terms);
    size_t first = 0;

    if (rc < 0)
        return rc;
    while (first < list->n && list->out[first].u.sa.sa_family == AF_INET)
        first++;
    rc = resolve_ipv6_first(list, first);
    return rc < 0 ? rc : list->n > 0 ? (int)list->n : -ENOENT;
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

static int resolve_by_system(struct resolve_list *list, const char *host)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
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
    return list->n > 0 ? (int)list->n : -ENOENT;
}

int resolve_host(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    struct resolve_list list = {.out = out, .max = max};
    char host[ADDRESS_HOST_BYTES];
    int rc = address_parse_target(out, max, word);

    terms->ttl_ns = CLOCK_NEVER;
    if (rc != -ENOENT)
        return rc;
    rc = address_split_port(host, sizeof(host), word, &list.port);
    if (rc < 0)
        return rc;
    rc = name_service_is_dns(host) ? resolve_by_dns(&list, host, terms) : -ENOSYS;
    return rc == -ENOSYS ? resolve_by_system(&list, host) : rc;
}
