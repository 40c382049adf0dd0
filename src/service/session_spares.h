/*
 * service/session_spares: what a session asks of the spare connections of its loop, which spare/
 * keeps.
 */
#ifndef SERVICE_SESSION_SPARES_H
#define SERVICE_SESSION_SPARES_H

#include <stdbool.h>

#include "balance/server_tls.h"

struct channel;
struct endpoint_addresses;
struct session;
struct session_spares;
struct stale_retry;
struct upstream_server;

struct session_spares_conf {
    struct session *session;
    struct upstream_server *at;
    struct channel *client;
    struct channel *server; /* the second leg: the spare connection */
    /* The spare connection is closed: connect again. */
    void (*replace)(struct session *s);
};

/* A spare connection. The caller of take() owns all of it. */
struct session_spare {
    int fd;
    struct endpoint_addresses *addresses; /* see endpoint_release_addresses() */
    unsigned which;                       /* index of the connected address */
    struct server_tls_taken tls;
};

/* Operations, called on the loop. */
struct session_spares_ops {
    /*
     * Set ${out} to a spare connection to ${conf}->at, and return its retry, which the session
     * destroys; NULL: no usable spare connection.
     */
    struct stale_retry *(*take)(struct session_spares *spares,
                                const struct session_spares_conf *conf, struct session_spare *out);
    void (*begin)(struct stale_retry *t); /* these four: see spare/stale_retry.h */
    bool (*lost)(const struct stale_retry *t);
    void (*replay)(struct stale_retry *t);
    void (*destroy)(struct stale_retry *t);
    /* Close the spare connections: no more sessions will come. */
    void (*stop)(struct session_spares *spares);
};

/* Of a loop. */
struct session_spares {
    const struct session_spares_ops *ops;
};

#endif
