/*
 * service/proxy_internal: shared by proxy.c (choice of the server), proxy_retry.c, proxy_dial.c,
 * proxy_attach.c and proxy_tls.c.
 */
#ifndef SERVICE_PROXY_INTERNAL_H
#define SERVICE_PROXY_INTERNAL_H

#include <stdalign.h>
#include <stdint.h>

#include "net/channel.h"
#include "service/relay.h"
#include "service/session.h"

struct proxy_dial;
struct proxy_pause;
struct proxy_tls;
struct server_tls_taken;
struct stale_retry;

/* Durations for the access log; UINT32_MAX: none, or longer than an hour. */
struct proxy_times {
    uint32_t connect_us;
    uint32_t queue_us;
    uint32_t first_byte_us;
};

struct proxy {
    alignas(CACHE_LINE_BYTES) struct channel client; /* see note: layout in net/channel.h */
    struct relay to_server;
    alignas(CACHE_LINE_BYTES) struct channel server;
    struct relay to_client;
    struct session session;
    struct upstream *upstream; /* stays if the listener gets another; NULL: not chosen yet */
    struct proxy_dial *dial;   /* connecting to a server; NULL: not under way */
    struct balancer_pick_state pick;
    struct wait_ticket *ticket;
    struct upstream_server *at; /* the session's server; NULL: none */
    struct endpoint_addresses
        *addresses; /* of `at`; a reference while connecting, with an access log until the end */
    struct proxy_pause *pause;
    int64_t give_up_at_ns;  /* deadline of all tries */
    int64_t retry_until_ns; /* no pause ends after this */
    int64_t tried_at_ns;
    enum session_reason reason; /* why the last server failed; SESSION_OPEN: none failed */
    int64_t waits_since_ns;
    struct upstream_server *tried; /* server left last, with a reference; for the access log */
    struct proxy_times times;
    unsigned connected;              /* index into `addresses` */
    struct stale_retry *stale_retry; /* of a spare connection; NULL: none */
    struct proxy_tls *tls;           /* with the server; NULL: none so far */
    unsigned tries_before;           /* servers tried before the last pause */
    bool has_failed;
};

/*
 * proxy_of(s) / proxy_upstream(p):
 * The proxy of session ${s} / the upstream of ${p}.
 *
 * Thread: loop
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
 * Value of `give_up_at_ns` / of `retry_until_ns` if tries began now / time limit of the next try.
 *
 * Thread: loop of ${p}
 */
int64_t proxy_deadline_ns(const struct proxy *p);
int64_t proxy_retry_until_ns(const struct proxy *p);
int64_t proxy_time_left_ns(const struct proxy *p, int64_t now_ns);

/*
 * proxy_pause(p) / proxy_end_pause(p):
 * Call proxy_try_again() after a pause / cancel the pause.
 *
 * Thread: loop of ${p}
 * Errors: false (no server has failed, retries are off, no time or memory is left)
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
 * proxy_dial(p) / proxy_end_dial(p):
 * Connect to ${p}->at, which has addresses: it is not ENDPOINT_ABSENT / stop that.
 *
 * Thread: loop of ${p}
 */
void proxy_dial(struct proxy *p);
void proxy_end_dial(struct proxy *p);

/*
 * proxy_attach(p, fd, tls):
 * Link the client with ${fd}, which is connected to ${p}->at. ${tls}: TLS of a spare connection;
 * NULL: none.
 *
 * Thread: loop of ${p}
 * Owns:   the session owns ${fd} and the stream of ${tls}
 */
void proxy_attach(struct proxy *p, int fd, const struct server_tls_taken *tls);

/*
 * proxy_send_header(p) / proxy_link(p) / proxy_begin(p):
 * Parts of proxy_attach() for a server channel that is initialised: send the PROXY header / link
 * both channels / read from the client.
 *
 * Thread: loop of ${p}
 */
void proxy_send_header(struct proxy *p);
void proxy_link(struct proxy *p);
void proxy_begin(struct proxy *p);

/*
 * proxy_opened(p) / proxy_failed(p, failure):
 * Record that the connection to ${p}->at can be used / has failed; then try another server, pause
 * or end the session.
 *
 * Thread: loop of ${p}
 */
void proxy_opened(struct proxy *p);

struct proxy_failure {
    int error;
    const char *why; /* for the log */
    enum session_reason reason;
    bool is_ours; /* our own failure: says nothing about the server */
};

void proxy_failed(struct proxy *p, const struct proxy_failure *failure);

/*
 * proxy_reconnect(p):
 * ${p}->at is down and its connection closed: connect to another server.
 *
 * Thread: loop of ${p}
 */
void proxy_reconnect(struct proxy *p);

/*
 * proxy_tls_start(p, fd):
 * Make a TLS handshake over ${fd}. Then call proxy_opened() and attach, or call proxy_failed().
 *
 * Thread: loop of ${p}
 * Owns:   the proxy owns ${fd}
 */
void proxy_tls_start(struct proxy *p, int fd);

/*
 * proxy_tls_adopt(p, taken):
 * Use ${taken} on the server's channel, which was not started; if memory is short, abort the
 * channel.
 *
 * Thread: loop of ${p}
 * Owns:   the proxy owns the stream of ${taken}
 */
void proxy_tls_adopt(struct proxy *p, const struct server_tls_taken *taken);

/*
 * proxy_tls_cancel(p, reconnects):
 * Abort the handshake; then, if ${reconnects}, call proxy_reconnect(). False: no handshake is under
 * way.
 *
 * Thread: loop of ${p}
 */
bool proxy_tls_cancel(struct proxy *p, bool reconnects);

/*
 * proxy_tls_destroy(p):
 * Free what TLS needed.
 *
 * Thread: loop of ${p}, when the server's channel is closed
 */
void proxy_tls_destroy(struct proxy *p);

/*
 * proxy_take_spare(p):
 * Attach a spare connection to ${p}->at; false if there is none.
 *
 * Thread: loop of ${p}
 */
bool proxy_take_spare(struct proxy *p);

#endif
