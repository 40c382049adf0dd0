/*
 * service/proxy: relays between a client and a server of an upstream.
 *
 * Behind its preface, the client is read only after a server is connected, so a failed connect
 * loses no bytes. At most `retries` other servers are tried.
 */
#ifndef SERVICE_PROXY_H
#define SERVICE_PROXY_H

#include "service/session.h"

extern const struct service_ops proxy_ops;

#endif
