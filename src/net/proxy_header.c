#include <errno.h>
#include <string.h>

#include "net/proxy_header_internal.h"

/* Does ${data} begin with ${mark}? 1: yes; 0: no; -EAGAIN: too short to tell. */
static int proxy_header_begins_with(const uint8_t *data, size_t len, const char *mark,
                                    size_t mark_len)
{
    if (memcmp(data, mark, len < mark_len ? len : mark_len) != 0)
        return 0;
    return len < mark_len ? -EAGAIN : 1;
}

/* The version whose mark begins ${data}; 0: none; -EAGAIN: too short to tell. */
static int proxy_header_version_of(const uint8_t *data, size_t len)
{
    int v1 =
        proxy_header_begins_with(data, len, PROXY_HEADER_V1_MARK, strlen(PROXY_HEADER_V1_MARK));
    int v2 = proxy_header_begins_with(data, len, PROXY_HEADER_V2_MARK, PROXY_HEADER_V2_MARK_BYTES);

    if (v1 > 0)
        return PROXY_HEADER_V1;
    if (v2 > 0)
        return PROXY_HEADER_V2;
    return v1 < 0 || v2 < 0 ? -EAGAIN : PROXY_HEADER_NONE;
}

int proxy_header_decode(struct proxy_header *out, const uint8_t *data, size_t len)
{
    int version = proxy_header_version_of(data, len);

    switch (version) {
    case PROXY_HEADER_V1: return proxy_header_v1_decode(out, data, len);
    case PROXY_HEADER_V2: return proxy_header_v2_decode(out, data, len);
    case PROXY_HEADER_NONE: return -ENOMSG;
    default: return version;
    }
}

bool proxy_header_begun(const uint8_t *data, size_t len)
{
    return proxy_header_version_of(data, len) > 0;
}
