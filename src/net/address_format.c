#include <arpa/inet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>

#include "net/address.h"

static const char *address_format_unix(char *text, size_t size, const struct address *a)
{
    size_t len;
    const char *path = address_path(a, &len);

    if (!path)
        snprintf(text, size, "unix:");
    else if (path[0] == '\0' && len == sizeof(a->u.un.sun_path) && path[len - 1] == '\0')
        snprintf(text, size, "abns@%s", path + 1);
    else if (path[0] == '\0')
        snprintf(text, size, "@%.*s", (int)len - 1, path + 1);
    else /* a relative path must not look like an IP address */
        snprintf(text, size, "%s%.*s", path[0] == '/' ? "" : "unix:", (int)len, path);
    return text;
}

const char *address_format(char *text, size_t size, const struct address *a)
{
    char host[INET6_ADDRSTRLEN];
    char scope[IF_NAMESIZE];
    uint32_t index;

    MUST(size >= ADDRESS_TEXT_BYTES);
    switch (a->u.sa.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &a->u.in.sin_addr, host, sizeof(host));
        snprintf(text, size, "%s:%u", host, ntohs(a->u.in.sin_port));
        return text;
    case AF_INET6:
        inet_ntop(AF_INET6, &a->u.in6.sin6_addr, host, sizeof(host));
        index = a->u.in6.sin6_scope_id;
        if (index == 0)
            snprintf(text, size, "[%s]:%u", host, ntohs(a->u.in6.sin6_port));
        else if (if_indextoname(index, scope))
            snprintf(text, size, "[%s%%%s]:%u", host, scope, ntohs(a->u.in6.sin6_port));
        else
            snprintf(text, size, "[%s%%%u]:%u", host, index, ntohs(a->u.in6.sin6_port));
        return text;
    case AF_UNIX: return address_format_unix(text, size, a);
    default: snprintf(text, size, "family %u", a->u.sa.sa_family); return text;
    }
}
