#include "admin/host.h"

#include <string.h>
#include <strings.h>

#include "base/must.h"
#include "base/parse.h"
#include "net/address.h"

static bool host_is_port(const char *text)
{
    uint64_t port;

    return parse_uint(&port, text, UINT16_MAX) == 0 && port > 0;
}

/* Copy ${host} without its port, such as `[::1]`, `127.0.0.1` or `localhost`; false: malformed. */
static bool host_split(char *name, size_t size, const char *host)
{
    size_t len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

    if (len > strlen(host) || len >= size || len == 0)
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    return host[len] == '\0' || (host[len] == ':' && host_is_port(host + len + 1));
}

static bool host_is_loopback(const unsigned char *host, size_t len)
{
    static const unsigned char loopback6[16] = {[15] = 1};

    return len == 4 ? host[0] == 127 : memcmp(host, loopback6, sizeof(loopback6)) == 0;
}

bool host_is_ours(const char *host, const struct address *local)
{
    char name[ADDRESS_HOST_BYTES + 1];
    struct address a;
    const void *bytes, *ours;
    size_t len, our_len;

    if (!host || !host_split(name, sizeof(name), host))
        return false;
    if (strcasecmp(name, "localhost") == 0)
        return true;
    if (address_parse_host(&a, name) < 0)
        return false;
    bytes = address_host(&a, &len);
    ours = address_host(local, &our_len);
    if (!bytes || host_is_loopback(bytes, len))
        return bytes != NULL;
    return ours && len == our_len && memcmp(bytes, ours, len) == 0;
}

bool host_is_origin(const char *origin, const char *host)
{
    static const char *const schemes[] = {"http://", "https://"};

    if (!origin)
        return true;
    for (size_t i = 0; host && i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);

        if (strncasecmp(origin, schemes[i], len) == 0 && strcasecmp(origin + len, host) == 0)
            return true;
    }
    return false;
}
