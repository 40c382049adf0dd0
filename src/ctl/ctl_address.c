#include "ctl/ctl_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/parse.h"

#define MAX_PATH_BYTES (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define MAX_HOST_BYTES 253 /* longest domain name as text, RFC 1035, 2.3.4 */
#define HOST_CHARS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

static int ctl_address_refuse(char *problem, size_t n, const char *why)
{
    snprintf(problem, n, "%s", why);
    return -EINVAL;
}

static bool ctl_address_is_ipv6(const char *host, size_t len)
{
    char inside[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (len < 2 || host[0] != '[' || host[len - 1] != ']' || len - 2 >= sizeof(inside))
        return false;
    snprintf(inside, sizeof(inside), "%.*s", (int)(len - 2), host + 1);
    return inet_pton(AF_INET6, inside, &address) == 1;
}

static bool ctl_address_is_host(const char *host, size_t len)
{
    if (len > 0 && host[0] == '[')
        return ctl_address_is_ipv6(host, len);
    return len > 0 && len <= MAX_HOST_BYTES && strspn(host, HOST_CHARS) == len;
}

static int ctl_address_parse_tcp(struct ctl_address *out, const char *text, char *problem, size_t n)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;

    if (!colon)
        return ctl_address_refuse(problem, n, "is neither /PATH nor HOST:PORT");
    if (parse_uint(&port, colon + 1, UINT16_MAX) < 0 || port == 0)
        return ctl_address_refuse(problem, n, "has no port from 1 to 65535");
    if (text[0] != '[' && memchr(text, ':', (size_t)(colon - text)))
        return ctl_address_refuse(problem, n, "is IPv6 without brackets: write [::1]:PORT");
    if (!ctl_address_is_host(text, (size_t)(colon - text)))
        return ctl_address_refuse(problem, n, "has no valid host in front of the port");
    out->path = NULL;
    snprintf(out->url, sizeof(out->url), "http://%s", text);
    return 0;
}

int ctl_address_parse(struct ctl_address *out, const char *text, char *problem, size_t n)
{
    out->text = text;
    if (text[0] != '/')
        return ctl_address_parse_tcp(out, text, problem, n);
    if (strlen(text) > MAX_PATH_BYTES)
        return ctl_address_refuse(problem, n, "is longer than the path of a unix socket may be");
    out->path = text;
    snprintf(out->url, sizeof(out->url), "http://localhost");
    return 0;
}
