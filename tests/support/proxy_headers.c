#include "support/proxy_headers.h"

#include <stdbool.h>

#include "net/proxy_header.h"
#include "support/sockets.h"

size_t proxy_headers_encode_addresses(uint8_t *out, const struct proxy_header_conf *conf,
                                      const struct address *source,
                                      const struct address *destination, const char *unique_id)
{
    return proxy_header_encode(out, conf,
                               &(struct proxy_header_client){.source = source,
                                                             .destination = destination,
                                                             .unique_id = unique_id});
}

size_t proxy_headers_encode(uint8_t *out, const struct proxy_header_conf *conf, const char *source,
                            const char *destination, const char *unique_id)
{
    struct address from = sockets_address(source), to = sockets_address(destination);

    return proxy_headers_encode_addresses(out, conf, &from, &to, unique_id);
}

struct proxy_headers proxy_headers = {
    .v1 = {.version = PROXY_HEADER_V1},
    .v2 = {.version = PROXY_HEADER_V2},
    .v2_all = {.version = PROXY_HEADER_V2, .crc32c = true, .unique_id = true}};
