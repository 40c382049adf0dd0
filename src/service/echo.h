/* service/echo: a service that sends the client's bytes back. */
#ifndef SERVICE_ECHO_H
#define SERVICE_ECHO_H

#include "service/session.h"

extern const struct service_ops echo_ops;

#endif
