/*
 * balance/server_tls: TLS handshake with a server, for a session, spare connection or check.
 *
 * The handshake follows the PROXY header, within the connect timeout. The certificate must be for
 * server_tls_name(), unless the TLS profile has verify = off.
 */
#ifndef BALANCE_SERVER_TLS_H
#define BALANCE_SERVER_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/timer_heap.h"
#include "tls/client_hello.h"
#include "tls/server_name.h"
#include "tls/tls_failure.h"
#include "tls/tls_handler.h"

struct channel;
struct tls_handshakes;
struct tls_slot;
struct tls_stream;
struct upstream_server;

struct upstream_tls_conf {
    const char *name;        /* NAME of the [tls NAME] section; NULL: no TLS */
    struct tls_slot *slot;   /* NULL: no TLS; lives as long as upstream_conf.memory */
    const char *server_name; /* tls_name, which certificates must have; NULL: by ADDRESS */
};

/* Maximum size of server_tls_why()'s text. */
#define SERVER_TLS_WHY_BYTES (TLS_FAILURE_TEXT_BYTES + 32)

struct server_tls;

struct server_tls_wish {
    int64_t deadline_ns;
    struct tls_handshakes *handshakes;
    /* Agreed with the client, for alpn = client; without bytes: no protocol, or no client. */
    struct client_hello_bytes protocol;
    bool resumes; /* may resume a TLS session, without verifying the certificate again */
    struct tls_counters *counters;
    /*
     * Called at the end of the handshake. ${error} 0: success, tls_handler_release() may follow;
     * else as tls_handler.done, without -EBUSY; -EAGAIN also if the step still waited for a thread
     * at the deadline. Not called after server_tls_cancel() or the channel's end.
     */
    void (*done)(struct server_tls *t, int error);
    /* As those of tls_handler; NULL: not called. */
    void (*confirmed)(struct server_tls *t);
    void (*failed)(struct server_tls *t);
};

struct server_tls {
    struct tls_handler handler;
    struct timer timer; /* deadline, or retry while too many handshakes wait */
    int64_t deadline_ns;
    struct loop *loop;
    void (*done)(struct server_tls *t, int error);
    void (*confirmed)(struct server_tls *t);
    void (*failed)(struct server_tls *t);
    bool is_late; /* at the deadline the server was awaited, not a thread */
};

/*
 * server_tls_begin(t, ch, conf, server, wish):
 * Add TLS to the pipeline of ${ch}, a channel to ${server} that is not started yet. channel_start()
 * begins the handshake.
 *
 * Thread: loop of ${ch}
 * Owns:   ${t} must live as long as ${ch}
 * Errors: 0; -ENOMEM
 */
int server_tls_begin(struct server_tls *t, struct channel *ch, const struct upstream_tls_conf *conf,
                     struct upstream_server *server, const struct server_tls_wish *wish) NODISCARD;

/* TLS state of a spare connection that a session takes over, after the handshake. */
struct server_tls_taken {
    struct tls_stream *stream; /* NULL: no TLS */
    struct tls_handler_conf conf;
};

/*
 * server_tls_take(t) / server_tls_adopt(t, ch, taken):
 * Take the stream from ${t}, after tls_handler_release() and channel_detach() / use ${taken} on the
 * new channel ${ch} of the same connection, which is not started yet. Then the caller may set
 * t->confirmed and t->failed.
 *
 * Thread: loop
 * Owns:   the caller owns the stream until server_tls_adopt(); ${t} must live as long as ${ch}
 */
struct server_tls_taken server_tls_take(struct server_tls *t) NODISCARD;
void server_tls_adopt(struct server_tls *t, struct channel *ch,
                      const struct server_tls_taken *taken);

/*
 * server_tls_cancel(t):
 * Cancel the timer, when the channel has ended or before the caller ends it.
 *
 * Thread: loop
 */
void server_tls_cancel(struct server_tls *t);

/*
 * server_tls_error_is_ours(error):
 * Was ${error} of done() caused by this process, not by the server?
 */
bool server_tls_error_is_ours(int error);

/*
 * server_tls_why(t, error, text, size):
 * Write to ${text} why the handshake failed; return ${text}.
 *
 * Thread: loop
 * Units:  ${size} at least SERVER_TLS_WHY_BYTES
 */
const char *server_tls_why(const struct server_tls *t, int error, char *text, size_t size);

/*
 * server_tls_failure(t, text, size) / server_tls_alert(t):
 * Write to ${text} why TLS failed after the handshake, and return ${text} / return the name of the
 * alert of a failure, in or after the handshake; NULL: no alert.
 *
 * Thread: loop
 * Units:  ${size} at least SERVER_TLS_WHY_BYTES
 */
const char *server_tls_failure(const struct server_tls *t, char *text, size_t size);
const char *server_tls_alert(const struct server_tls *t);

/*
 * server_tls_name(name, conf, address_text):
 * Write to ${name}, of SERVER_NAME_BYTES, the name that the certificate must have: tls_name, or the
 * host or SRV domain in ADDRESS, without a final dot. Returns ${name}; NULL: none (a unix socket).
 */
const char *server_tls_name(char *name, const struct upstream_tls_conf *conf,
                            const char *address_text);

#endif
