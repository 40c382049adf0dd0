/*
 * service/echo: a session that sends its client's bytes back.
 */
#ifndef SERVICE_ECHO_H
#define SERVICE_ECHO_H

#include "service/session.h"

/* A service with these ops echoes. */
extern const struct service_ops echo_ops;

#endif
