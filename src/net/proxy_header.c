/* net/proxy_header: which version it is. See proxy_header.h. */
#include <errno.h>
#include <string.h>

#include "net/proxy_header_internal.h"

/* Do ${data} begin with all of ${mark} (1), with what there is of them (-EAGAIN), or with something else (0)? */
static int begins_with(const uint8_t *data, size_t len, const char *mark, size_t mark_len)
{
    if (memcmp(data, mark, len < mark_len ? len : mark_len) != 0)
        return 0;
    return len < mark_len ? -EAGAIN : 1;
}

int proxy_header_decode(struct proxy_header *out, const uint8_t *data, size_t len)
{
    int rc;

    if (len == 0)
        return -EAGAIN;
    rc = begins_with(data, len, PROXY_HEADER_V1_MARK, strlen(PROXY_HEADER_V1_MARK));
    if (rc > 0)
        return proxy_header_v1_decode(out, data, len);
    if (rc == 0)
        rc = begins_with(data, len, PROXY_HEADER_V2_MARK, PROXY_HEADER_V2_MARK_BYTES);
    if (rc > 0)
        return proxy_header_v2_decode(out, data, len);
    return rc == 0 ? -ENOMSG : rc;
}
