/*
 * admin/host: checks of the header fields Host and Origin.
 *
 * The checks refuse pages of other sites. A site whose name resolves to our address (DNS rebinding)
 * is refused by the name in Host, any other site by its Origin.
 */
#ifndef ADMIN_HOST_H
#define ADMIN_HOST_H

#include <stdbool.h>

struct address;

/*
 * host_is_ours(host, local):
 * Is ${host}, with or without a port, localhost, a loopback address, or the address of ${local},
 * to which the client is connected? NULL: false.
 *
 * Source: RFC 9110, section 7.2
 */
bool host_is_ours(const char *host, const struct address *local);

/*
 * host_is_origin(origin, host):
 * Is ${origin} `http://HOST` or `https://HOST`? ${origin} NULL: true, not sent by a page.
 *
 * Source: RFC 6454, section 7
 */
bool host_is_origin(const char *origin, const char *host);

#endif
