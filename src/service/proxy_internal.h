/*
 * service/proxy_internal: shared by proxy.c (choice of the server), proxy_retry.c and
 * proxy_attach.c. All runs on the loop of the session.
 */
#ifndef SERVICE_PROXY_INTERNAL_H
#define SERVICE_PROXY_INTERNAL_H

#include <stdalign.h>
#include <stdint.h>

#include "net/connector.h"
#include "service/relay.h"
#include "service/session.h"

struct proxy_pause;
struct stale_retry;

/* Durations for the access log, up to an hour. */
struct proxy_times {
    uint32_t connect_us; /* of each, UINT32_MAX: none, or longer */
    uint32_t queue_us;
    uint32_t first_byte_us;
};

struct proxy {
    alignas(CACHE_LINE_BYTES) struct channel client; /* see note: layout in net/channel.h */
    struct relay to_server;
    alignas(CACHE_LINE_BYTES) struct channel server;
    struct relay to_client;
    struct session session;
    struct upstream *upstream; /* also when the listener has another now */
    struct connector connector;
    struct balancer_pick_state pick;
    struct wait_ticket *ticket;
    struct upstream_server *at; /* the server it was sent to; NULL: none */
    struct endpoint_addresses
        *addresses; /* of `at`, while connecting; with an access log, to the end */
    struct proxy_pause *pause;
    int64_t give_up_at_ns;  /* deadline for trying servers */
    int64_t retry_until_ns; /* deadline of pauses */
    int64_t tried_at_ns;
    enum session_reason reason; /* of the last failed server, else SESSION_OPEN */
    int64_t waits_since_ns;
    const struct upstream_server_conf *tried; /* last `at`; for the access log, as the next */
    struct proxy_times times;
    struct stale_retry *stale_retry; /* of a spare connection; NULL: none */
    unsigned tries_before;           /* before the last pause */
    bool has_failed;                 /* some connect failed */
};

/*
 * proxy_of(s) / proxy_upstream(p):
 * The proxy of session ${s}; its upstream.
 *
 * Thread: loop of the session
 */
static inline struct proxy *proxy_of(const struct session *s)
{
    return CONTAINER_OF(s, struct proxy, session);
}

static inline struct upstream *proxy_upstream(const struct proxy *p)
{
    return p->upstream;
}

/*
 * proxy_release_addresses(p):
 * Release the addresses of ${p}->at.
 *
 * Thread: loop of ${p}
 */
void proxy_release_addresses(struct proxy *p);

/*
 * proxy_deadline_ns(p) / proxy_retry_until_ns(p) / proxy_time_left_ns(p, now_ns):
 * Deadline for trying servers, and of pauses, from now; limit of the next connect.
 *
 * Thread: loop of ${p}
 */
int64_t proxy_deadline_ns(const struct proxy *p);
int64_t proxy_retry_until_ns(const struct proxy *p);
int64_t proxy_time_left_ns(const struct proxy *p, int64_t now_ns);

/*
 * proxy_pause(p) / proxy_end_pause(p):
 * Call proxy_try_again() after a pause; cancel it.
 *
 * Thread: loop of ${p}
 * Errors: false (no server failed, retries off, no time or memory left)
 */
bool proxy_pause(struct proxy *p);
void proxy_end_pause(struct proxy *p);

/*
 * proxy_try_again(p):
 * Try all servers again.
 *
 * Thread: loop of ${p}
 */
void proxy_try_again(struct proxy *p);

/*
 * proxy_dial(p):
 * Connect to ${p}->at, which has addresses (else it is ENDPOINT_ABSENT).
 *
 * Thread: loop of ${p}
 */
void proxy_dial(struct proxy *p);

/*
 * proxy_attach(p, fd):
 * Link both sides; ${fd} is connected to ${p}->at.
 *
 * Thread: loop of ${p}
 * Owns:   the session owns ${fd}
 */
void proxy_attach(struct proxy *p, int fd);

/*
 * proxy_take_spare(p):
 * Attach a spare connection to ${p}->at, if there is one.
 *
 * Thread: loop of ${p}
 * Errors: false (none)
 */
bool proxy_take_spare(struct proxy *p);

#endif
