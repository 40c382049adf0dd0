/*
 * service/proxy_internal: shared by proxy.c (choice of the server), proxy_wait.c, proxy_failure.c,
 * proxy_retry.c, proxy_dial.c, proxy_attach.c, proxy_time.c and proxy_tls.c.
 */
#ifndef SERVICE_PROXY_INTERNAL_H
#define SERVICE_PROXY_INTERNAL_H

#include <stdalign.h>
#include <stdint.h>

#include "net/channel.h"
#include "service/relay.h"
#include "service/session.h"
#include "upstream/upstream.h"

struct proxy_dial;
struct proxy_pause;
struct proxy_tls;
struct server_tls_taken;
struct stale_retry;
struct upstream_tls_conf;

/* Log at most one line about a server, or about an upstream, in this time. */
#define PROXY_LOG_INTERVAL_NS (1 * NS_PER_S)

/* Durations for the access log; UINT32_MAX: unknown, or too long (71 minutes). */
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
    struct upstream *upstream; /* kept when the listener gets another; NULL: not chosen yet */
    struct proxy_dial *dial;   /* the connect under way; NULL: none */
    struct balancer_pick_state pick;
    struct wait_ticket *ticket;
    struct upstream_server *at; /* the server chosen now; NULL: none */
    /* Addresses of `at`: a reference while connecting, with an access log until the end. */
    struct endpoint_addresses *addresses;
    struct proxy_pause *pause;
    int64_t give_up_at_ns;  /* deadline of all tries */
    int64_t retry_until_ns; /* every pause ends before this instant */
    int64_t tried_at_ns;
    enum session_reason reason; /* why the last server was given up; SESSION_OPEN: none was */
    int64_t waits_since_ns;
    struct upstream_server *tried; /* server left last: a reference, for the access log; or NULL */
    struct proxy_times times;
    unsigned connected;              /* index in `addresses` of the connected one */
    struct stale_retry *stale_retry; /* guards a spare connection; NULL: none was taken */
    struct proxy_tls *tls;           /* TLS with the server; NULL: not used so far */
    unsigned tries;                  /* servers tried; in the queue, other threads change `pick` */
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

/* proxy_release_addresses(p): release the addresses of ${p}->at. Thread: loop of ${p} */
void proxy_release_addresses(struct proxy *p);

/*
 * proxy_deadline_ns(p) / proxy_retry_until_ns(p) / proxy_time_left_ns(p, now_ns):
 * Value of `give_up_at_ns` / of `retry_until_ns` for tries that begin now / time limit of the next
 * try.
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
 * Errors: false (no server has failed, `retries` or `retry_budget` is 0, no time or memory is left)
 */
bool proxy_pause(struct proxy *p);
void proxy_end_pause(struct proxy *p);

/* proxy_try_again(p): try all servers again. Thread: loop of ${p} */
void proxy_try_again(struct proxy *p);

/* Tail of the client's pipeline until a server is connected; no bytes reach it. */
extern const struct handler_ops proxy_waiting_ops;

/*
 * proxy_wait(p) / proxy_end_wait(p):
 * Wait in the upstream's queue until a server is free / leave the queue, if ${p} waits there.
 *
 * Thread: loop of ${p}
 * Errors: as wait_queue_join()
 */
int proxy_wait(struct proxy *p) NODISCARD;
void proxy_end_wait(struct proxy *p);

/*
 * proxy_no_server(p, error):
 * No server was picked, with ${error}: pause, or reset the client.
 *
 * Thread: loop of ${p}
 */
void proxy_no_server(struct proxy *p, int error);

/* proxy_us(ns): ${ns} as a member of struct proxy_times. */
uint32_t proxy_us(int64_t ns);

/*
 * proxy_dial(p) / proxy_end_dial(p):
 * Connect to ${p}->at, which must have addresses (not ENDPOINT_ABSENT) / stop connecting.
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
 * Steps of proxy_attach(), with an initialised server channel: send the PROXY header / link both
 * channels / begin to read from the client.
 *
 * Thread: loop of ${p}
 */
void proxy_send_header(struct proxy *p);
void proxy_link(struct proxy *p);
void proxy_begin(struct proxy *p);

/*
 * proxy_join(p):
 * Link both channels, as proxy_link() does, without a line in the access log.
 *
 * proxy_has_tls(s) / proxy_save(s, st) / proxy_place(s, place, st) / proxy_restore(s, st, fd) /
 * proxy_limit(s, st) / proxy_is_stranded(s):
 * The operations of these names; see struct service_ops.
 *
 * Thread: loop of ${p}; proxy_place(): any
 */
void proxy_join(struct proxy *p);
bool proxy_has_tls(const struct session *s);
void proxy_save(const struct session *s, struct session_state *st);
void proxy_place(struct session *s, const struct session_place *place,
                 const struct session_state *st);
void proxy_restore(struct session *s, const struct session_state *st, int fd);
int proxy_limit(struct session *s, const struct session_state *st);
bool proxy_is_stranded(const struct session *s);

/*
 * proxy_opened(p) / proxy_failed(p, failure):
 * Record that the connection to ${p}->at can be used / record that it failed, then try another
 * server, pause or abort the session.
 *
 * Thread: loop of ${p}
 */
void proxy_opened(struct proxy *p);

struct proxy_failure {
    int error;
    const char *why; /* for the log */
    enum session_reason reason;
    bool is_ours; /* a failure of this process, not of the server */
};

void proxy_failed(struct proxy *p, const struct proxy_failure *failure);

/*
 * proxy_connect(p) / proxy_connect_to(p, server):
 * Pick a server and connect to it, queue, pause, or abort the session / connect to ${server}, which
 * was picked.
 *
 * Thread: loop of ${p}
 */
void proxy_connect(struct proxy *p);
void proxy_connect_to(struct proxy *p, struct upstream_server *server);

/*
 * proxy_give_up_server(p, outcome, reason):
 * Leave ${p}->at, with ${outcome}; count the end of the session there with ${reason}.
 *
 * Thread: loop of ${p}
 */
void proxy_give_up_server(struct proxy *p, enum upstream_outcome outcome,
                          enum session_reason reason);

/*
 * proxy_reconnect(p):
 * Leave ${p}->at, which is down; connect to another server.
 *
 * Thread: loop of ${p}
 */
void proxy_reconnect(struct proxy *p);

/*
 * proxy_tls_start(p, fd, conf):
 * Start a TLS handshake over ${fd}; then link both sides, or call proxy_failed().
 *
 * Thread: loop of ${p}
 * Owns:   the proxy owns ${fd}
 */
void proxy_tls_start(struct proxy *p, int fd, const struct upstream_tls_conf *conf);

/*
 * proxy_tls_adopt(p, taken):
 * Use ${taken}, TLS of a spare connection, on the server's channel, which is not started. Without
 * memory, abort the channel.
 *
 * Thread: loop of ${p}
 * Owns:   the proxy owns the stream of ${taken}
 */
void proxy_tls_adopt(struct proxy *p, const struct server_tls_taken *taken);

/*
 * proxy_tls_cancel(p, reconnects):
 * Abort the handshake; if ${reconnects}, proxy_reconnect() follows. False: no handshake is under
 * way.
 *
 * Thread: loop of ${p}
 */
bool proxy_tls_cancel(struct proxy *p, bool reconnects);

/*
 * proxy_tls_is_unconfirmed(p) / proxy_tls_has_failed(p) / proxy_tls_alert(p):
 * Is the server linked over TLS, but may still refuse the handshake (tls_stream_is_confirmed())? /
 * has TLS with the server failed after the handshake? / alert of TLS with the last server, in or
 * after the handshake; NULL: none.
 *
 * Thread: loop of ${p}
 */
bool proxy_tls_is_unconfirmed(const struct proxy *p);
bool proxy_tls_has_failed(const struct proxy *p);
const char *proxy_tls_alert(const struct proxy *p);

/*
 * proxy_tls_destroy(p):
 * Free the TLS state of ${p}.
 *
 * Thread: loop of ${p}, when the server's channel is closed
 */
void proxy_tls_destroy(struct proxy *p);

/* proxy_measures_time(p): is ${p} measured, for balance = least_time? Thread: loop of ${p} */
static inline bool proxy_measures_time(const struct proxy *p)
{
    return proxy_upstream(p)->conf->balance == BALANCER_LEAST_TIME;
}

/*
 * proxy_time_dialed(p) / proxy_time_connected(p, took_ns) / proxy_time_failed(p):
 * Measure ${p}->at: a connect begins / has succeeded / has failed. Call these and those below only
 * if there is one, and proxy_measures_time().
 *
 * proxy_time_first_byte(p, from, now_ns) / proxy_time_ended(p):
 * Likewise: the client or the server, ${from}, has sent its first bytes / the session has ended.
 *
 * Thread: loop of ${p}
 */
void proxy_time_dialed(struct proxy *p);
void proxy_time_connected(struct proxy *p, int64_t took_ns);
void proxy_time_failed(struct proxy *p);
void proxy_time_first_byte(struct proxy *p, const struct channel *from, int64_t now_ns);
void proxy_time_ended(struct proxy *p);

/*
 * proxy_take_spare(p):
 * Attach a spare connection to ${p}->at; false if none was taken.
 *
 * Thread: loop of ${p}
 */
bool proxy_take_spare(struct proxy *p);

#endif
