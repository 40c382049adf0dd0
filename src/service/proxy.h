/*
 * service/proxy: relays between a client and a server of an upstream.
 *
 * The client is read only after a server is connected, so its bytes are never lost. An unreachable
 * server is followed by an untried one, `retries` times at most.
 */
#ifndef SERVICE_PROXY_H
#define SERVICE_PROXY_H

#include "service/session.h"

extern const struct service_ops proxy_ops;

#endif
