/*
 * service/proxy_internal: what the parts of a proxied session know of each other: proxy.c (which
 * server, and what becomes of it), proxy_retry.c (pauses between tries) and proxy_attach.c (the way
 * there, and both ends put together). Private to them. Everything here runs on the loop of the
 * session.
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

/* What took how long, for the access log. An hour is long enough, and takes half the room. */
struct proxy_times {
    uint32_t connect_us; /* of each, UINT32_MAX: there was none, or longer */
    uint32_t queue_us;
    uint32_t first_byte_us;
};

struct proxy {
    alignas(CACHE_LINE_BYTES) struct channel client; /* see note: layout in net/channel.h */
    struct relay to_server;
    alignas(CACHE_LINE_BYTES) struct channel server;
    struct relay to_client;
    struct session session;
    struct connector connector;
    struct balancer_pick_state walk;
    struct wait_ticket *ticket;           /* while every server is full */
    struct upstream_server *at;           /* where it was sent; NULL: nowhere (any more) */
    struct endpoint_addresses *addresses; /* of `at`, while it connects; with an access log, on */
    struct proxy_pause *pause;            /* NULL: it has not paused yet */
    int64_t give_up_at_ns;                /* trying servers */
    int64_t retry_until_ns;               /* no pause ends later */
    int64_t tried_at_ns;                  /* when it was sent to `at` */
    enum session_reason reason; /* of the last server that failed; SESSION_OPEN: none did */
    int64_t waits_since_ns;
    const struct upstream_server_conf
        *tried; /* of the last `at`; for the access log, as the next */
    struct proxy_times times;
    struct stale_retry *stale_retry; /* of a spare connection; NULL: there was none */
    unsigned tries_before;           /* the last pause */
    bool has_failed;                 /* a server could not be connected to */
};

/*
 * proxy_of(s) / proxy_upstream(p):
 * The proxy whose session ${s} is; where it may be sent.
 *
 * Thread: loop of the session
 */
static inline struct proxy *proxy_of(const struct session *s)
{
    return CONTAINER_OF(s, struct proxy, session);
}

static inline struct upstream *proxy_upstream(const struct proxy *p)
{
    return p->session.service->upstream;
}

/*
 * proxy_release_addresses(p):
 * Nobody need know any more where it was connected to.
 *
 * Thread: loop of ${p}
 */
void proxy_release_addresses(struct proxy *p);

/*
 * proxy_deadline_ns(p) / proxy_time_left_ns(p, now_ns):
 * When one that begins now gives up trying servers; how long connecting to one of them may take.
 *
 * Thread: loop of ${p}
 * Units:  ns
 */
int64_t proxy_deadline_ns(const struct proxy *p);
int64_t proxy_time_left_ns(const struct proxy *p, int64_t now_ns);

/*
 * proxy_pause(p) / proxy_end_pause(p):
 * No server is left to try: call proxy_try_again() after a pause. End the pause, if there is one.
 *
 * Thread: loop of ${p}
 * Errors: false (no server has failed, retries are off, there is no time left, or no memory)
 */
bool proxy_pause(struct proxy *p);
void proxy_end_pause(struct proxy *p);

/*
 * proxy_try_again(p):
 * Try all servers, as if none had been tried.
 *
 * Thread: loop of ${p}
 */
void proxy_try_again(struct proxy *p);

/*
 * proxy_dial(p):
 * Connect to ${p}->at, whose addresses are known: before that it is ENDPOINT_ABSENT.
 *
 * Thread: loop of ${p}
 * Errors: none; the connector tells
 */
void proxy_dial(struct proxy *p);

/*
 * proxy_attach(p, fd):
 * ${fd} leads to ${p}->at: both ends are there.
 *
 * Thread: loop of ${p}
 * Owns:   the session has ${fd}
 */
void proxy_attach(struct proxy *p, int fd);

/*
 * proxy_take_spare(p):
 * proxy_attach() with a connection to ${p}->at that is open already, if there is one.
 *
 * Thread: loop of ${p}
 * Errors: false (there is none)
 */
bool proxy_take_spare(struct proxy *p);

#endif
