/*
 * service/proxy: relays between a client and a server of an upstream.
 *
 * The client is read only after a server is connected, so its bytes are never lost. If a server is
 * unreachable it tries another, at most `retries` times.
 */
#ifndef SERVICE_PROXY_H
#define SERVICE_PROXY_H

#include "service/session.h"

extern const struct service_ops proxy_ops;

#endif
