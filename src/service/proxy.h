/*
 * service/proxy: a session that relays between its client and a server of an upstream.
 *
 * The client is not read before a server has answered, so that no byte is taken that might not be
 * delivered. A server that cannot be reached is followed by the next one that was not tried,
 * `retries` times at most.
 */
#ifndef SERVICE_PROXY_H
#define SERVICE_PROXY_H

#include "service/session.h"

/* A service with these ops and an upstream proxies. */
extern const struct service_ops proxy_ops;

#endif
