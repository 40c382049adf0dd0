/*
 * net/srv: the SRV records of a service (RFC 2782): on which hosts and ports it is, and in what order to try them.
 */
#ifndef NET_SRV_H
#define NET_SRV_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

/* Room for a host name, a ':', a port and NUL. */
#define SRV_TARGET_BYTES 264

struct srv_record {
    char target[SRV_TARGET_BYTES]; /* `host:port`, for address_resolve() */
    uint16_t priority;             /* the lowest first */
    uint16_t weight;               /* its share among those of one priority */
};

/*
 * srv_open() / srv_close():
 * Before the first srv_resolve(); after the last.
 *
 * Thread: main
 * Errors: 0; -ENOMEM
 */
int srv_open(void) MUST_CHECK;
void srv_close(void);

/*
 * srv_resolve(out, max, name):
 * Look up the records of ${name} (`_service._tcp.domain`) as /etc/resolv.conf says; may block for as long as that has it.
 * They come by priority, then the heaviest first. What goes beyond ${max} is left out, and so is what cannot be a host.
 *
 * Thread: none that is a loop
 * Errors: number of records; -ENOENT (there are none, or they say that there is no such service); -EAGAIN (no name server
 *         answers); -EREMOTEIO (one did, and failed or made no sense); -ENOMEM
 */
int srv_resolve(struct srv_record *out, size_t max, const char *name) MUST_CHECK;

#endif
