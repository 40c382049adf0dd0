/*
 * support/proxy_headers: encoded PROXY headers, of version 1 and 2.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_PROXY_HEADERS_H
#define SUPPORT_PROXY_HEADERS_H

#include <stddef.h>
#include <stdint.h>

#include "net/proxy_header.h"

struct address;

#define MARK  "\r\n\r\n\0\r\nQUIT\n"
#define HOSTS "\300\0\2\1\306\63\144\1\xdc\x04\x01\xbb" /* 192.0.2.1:56324 to 198.51.100.1:443 */
#define HOSTS_6                                                                            \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2\0\7" \
    "\xff\xff"

struct proxy_headers {
    const struct proxy_header_conf v1;
    const struct proxy_header_conf v2;
    const struct proxy_header_conf v2_all;
};

static const char proxy_headers_id[] = "0123456789abcdef0123456789abcdef";
extern struct proxy_headers proxy_headers;

size_t proxy_headers_encode_addresses(uint8_t *out, const struct proxy_header_conf *conf,
                                      const struct address *source,
                                      const struct address *destination, const char *unique_id);

size_t proxy_headers_encode(uint8_t *out, const struct proxy_header_conf *conf, const char *source,
                            const char *destination, const char *unique_id);

#endif
