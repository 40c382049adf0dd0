/*
 * service/proxy: relays between a client and a server of an upstream.
 *
 * The client is not read before a server is connected, so no byte is taken that might not be
 * delivered. If a server cannot be reached the next untried one follows, `retries` times at most.
 */
#ifndef SERVICE_PROXY_H
#define SERVICE_PROXY_H

#include "service/session.h"

extern const struct service_ops proxy_ops;

#endif
