/*
 * service/service: what a listener offers to its clients: echo or proxy, with the settings of that listener.
 *
 * A service makes sessions; a session does the rest. Immutable once built; sessions borrow it.
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/splice.h"
#include "service/upstream.h"

struct service_ops;

struct service {
    const struct service_ops *ops;
    const char *listener;      /* name, for logs */
    struct upstream *upstream; /* proxy only */
    enum splice_mode splice;
    bool log_handler;              /* put service/log_handler into the client's pipeline */
    int64_t idle_timeout_ns;       /* 0: none */
    int64_t half_close_timeout_ns; /* 0: none */
};

#endif
