/*
 * upstream/server_tls: the TLS handshake with a server, of a session, spare connection or check.
 *
 * The handshake follows the PROXY header, within the connect timeout. The server's certificate is
 * verified for tls_name, or the host of its ADDRESS, unless the profile has verify = off.
 */
#ifndef UPSTREAM_SERVER_TLS_H
#define UPSTREAM_SERVER_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/timer_heap.h"
#include "tls/server_name.h"
#include "tls/tls_failure.h"
#include "tls/tls_handler.h"

struct channel;
struct tls_handshakes;
struct tls_slot;
struct tls_stream;
struct upstream_server;

struct upstream_tls_conf {
    const char *name;        /* of a [tls NAME]; NULL: without TLS */
    struct tls_slot *slot;   /* NULL: without TLS; lives as long as upstream_conf.memory */
    const char *server_name; /* name that certificates must have; NULL: each server's own */
};

/* Most of server_tls_why(). */
#define SERVER_TLS_WHY_BYTES (TLS_FAILURE_TEXT_BYTES + 32)

struct server_tls;

struct server_tls_wish {
    int64_t deadline_ns;
    struct tls_handshakes *handshakes;
    bool resumes; /* may resume a TLS session, without verifying the certificate again */
    struct tls_counters *counters;
    /*
     * ${error} 0: the handshake is done, and tls_handler_release() may follow; else it failed. Not
     * called after server_tls_cancel(), nor after the channel's end.
     */
    void (*done)(struct server_tls *t, int error);
};

struct server_tls {
    struct tls_handler handler;
    struct timer timer; /* deadline, or retry while too many handshakes wait */
    int64_t deadline_ns;
    struct loop *loop;
    void (*done)(struct server_tls *t, int error);
};

/*
 * server_tls_begin(t, ch, conf, server, wish):
 * Add TLS to the pipeline of ${ch}, a channel to ${server} that was not started. The handshake
 * begins with channel_start().
 *
 * Thread: loop of ${ch}
 * Owns:   ${t} must live as long as ${ch}
 * Errors: 0; -ENOMEM
 */
int server_tls_begin(struct server_tls *t, struct channel *ch, const struct upstream_tls_conf *conf,
                     struct upstream_server *server, const struct server_tls_wish *wish) NODISCARD;

/* TLS of a spare connection after its handshake, taken for a session. */
struct server_tls_taken {
    struct tls_stream *stream; /* NULL: no TLS */
    struct tls_handler_conf conf;
};

/*
 * server_tls_take(t) / server_tls_adopt(t, ch, taken):
 * Take the stream from ${t}, which was released and its channel detached / continue ${taken} on
 * ${ch}, another channel to the same server, not started yet.
 *
 * Thread: loop
 * Owns:   the caller owns the stream until server_tls_adopt(); ${t} must live as long as ${ch}
 */
struct server_tls_taken server_tls_take(struct server_tls *t) NODISCARD;
void server_tls_adopt(struct server_tls *t, struct channel *ch,
                      const struct server_tls_taken *taken);

/*
 * server_tls_cancel(t):
 * Cancel the handshake, before the channel is aborted.
 *
 * Thread: loop
 */
void server_tls_cancel(struct server_tls *t);

/*
 * server_tls_error_is_ours(error):
 * True if ${error} of done() was caused on our side, not by the server.
 *
 * Thread: any
 */
bool server_tls_error_is_ours(int error);

/*
 * server_tls_why(t, error, text, size):
 * Write to ${text} why the handshake failed, and return it.
 *
 * Thread: loop, before the channel's end
 * Units:  ${size} at least SERVER_TLS_WHY_BYTES
 */
const char *server_tls_why(const struct server_tls *t, int error, char *text, size_t size);

/*
 * server_tls_name(name, conf, address_text):
 * The name that the certificate of a server with this ADDRESS is verified for: write it to
 * ${name}, of SERVER_NAME_BYTES. NULL: none (a unix socket without tls_name).
 *
 * Thread: any
 */
const char *server_tls_name(char *name, const struct upstream_tls_conf *conf,
                            const char *address_text);

#endif
