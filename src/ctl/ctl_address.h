/*
 * ctl/ctl_address: address of an admin interface: /path, HOST:PORT or [IPV6]:PORT.
 */
#ifndef CTL_CTL_ADDRESS_H
#define CTL_CTL_ADDRESS_H

#include <stddef.h>

#include "base/must.h"

#define CTL_ADDRESS_DEFAULT     "/run/reactord/admin.sock"
#define CTL_ADDRESS_ENVIRONMENT "REACTORCTL_ADDRESS"

#define CTL_ADDRESS_URL_BYTES 320 /* a host of 253 bytes, scheme and port */

struct ctl_address {
    const char *text;                /* as given */
    const char *path;                /* unix socket; NULL: TCP */
    char url[CTL_ADDRESS_URL_BYTES]; /* http://HOST:PORT */
};

/*
 * ctl_address_parse(out, text, problem, n):
 * Parse ${text}; after an error ${problem}, of ${n} bytes, has the reason.
 *
 * Owns:   ${out} points into ${text}
 * Errors: 0; -EINVAL
 */
int ctl_address_parse(struct ctl_address *out, const char *text, char *problem, size_t n) NODISCARD;

#endif
