/*
 * tls/tls_handler: TLS as the first handler of a channel's pipeline.
 *
 *   add -> handshake, in steps on tls/tls_handshakes -> done() -> tls_handler_release()
 *       -> plain bytes inward, records outward -> close_notify in both directions
 *
 * Until the release the handler keeps back `active`, bytes and end of file.
 *
 * close_notify is half-close, in TLS 1.2 too: the peer's arrives as HANDLER_EOF, ours is sent by
 * shutdown_write in front of the end of file. An end of file without close_notify is counted, and
 * passed on as end of file or as a reset.
 */
#ifndef TLS_TLS_HANDLER_H
#define TLS_TLS_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/must.h"
#include "net/handler.h"
#include "tls/tls_flight.h"

struct channel;
struct ssl_st;
struct tls_counters;
struct tls_hello;
struct tls_handshakes;
struct tls_step;
struct tls_stream;

/* Most bytes of a peer's part of the handshake; the library takes 100 KiB of certificates. */
#define TLS_HANDLER_MAX_BYTES (128 * 1024)

struct tls_handler_conf {
    struct tls_handshakes *handshakes;
    struct tls_counters *counters;
    bool truncated_is_reset; /* pass on end of file without close_notify as a reset */
};

struct tls_handler {
    struct handler handler;
    struct tls_handler_conf conf;
    struct tls_stream *stream; /* NULL after the channel's end */
    struct tls_step *step;     /* NULL: no handshake under way */
    struct buffer in;          /* received, not given to the stream */
    struct tls_flight flight;
    struct tls_hello *hello;  /* of a client; NULL: not understood. Freed by our owner */
    uint32_t handshake_bytes; /* received */
    int64_t began_at_ns;
    int64_t deadline_ns; /* of the handshake; CLOCK_NEVER: none */
    /*
     * The handshake is done (0), or failed: -EPROTO (tls_handler_failure() has the cause),
     * -ETIMEDOUT (dropped by the pool), -EBUSY (refused by the pool: tls_handler_retry() may
     * follow), -ENODATA (end of file before any byte), -ECONNRESET (end of file), -EMSGSIZE,
     * -ENOMEM, -EAGAIN, -ESHUTDOWN. Not called after the channel's end. May call
     * tls_handler_release().
     */
    void (*done)(struct tls_handler *t, int error);
    bool accepts;
    bool in_step;    /* the stream is on another thread */
    bool is_refused; /* the pool refused the step; until tls_handler_retry() */
    bool is_open;    /* the handshake is done */
    bool is_released;
    bool has_failed;
    bool has_ended;   /* the peer's end of file waits for the handshake or the release */
    bool peer_closed; /* close_notify was received */
    bool write_ended; /* close_notify was sent */
};

/*
 * tls_handler_add(t, ch, ssl, conf):
 * Add ${t} to the pipeline of ${ch}, before its tail. The caller sets t->accepts, done and
 * deadline_ns; a client's handshake begins with `active` or the first bytes.
 *
 * Thread: loop of ${ch}
 * Owns:   ${t} must live as long as ${ch}; it owns ${ssl}, which an error frees, and copies ${conf}
 * Errors: 0; -ENOMEM
 */
int tls_handler_add(struct tls_handler *t, struct channel *ch, struct ssl_st *ssl,
                    const struct tls_handler_conf *conf) NODISCARD;

/*
 * tls_handler_retry(t):
 * After done(t, -EBUSY): submit the step again.
 *
 * Thread: loop
 */
void tls_handler_retry(struct tls_handler *t);

/*
 * tls_handler_give_up(t):
 * Fail a handshake that takes too long: calls done(t, -ETIMEDOUT). No-op after done() or the
 * channel's end.
 *
 * Thread: loop
 */
void tls_handler_give_up(struct tls_handler *t);

/*
 * tls_handler_release(t):
 * After done(t, 0): pass on `active`, and from now on plain bytes.
 *
 * Thread: loop
 */
void tls_handler_release(struct tls_handler *t);

/*
 * tls_handler_detach(t) / tls_handler_adopt(t, ch, stream, conf):
 * Give up the stream of a released ${t}, whose channel was detached / use ${stream}, whose
 * handshake is done, on the channel ${ch}, which is not started yet.
 *
 * Thread: loop
 * Owns:   the caller owns the returned stream; ${t} owns ${stream}, lives as long as ${ch}, and
 *         copies ${conf}
 */
struct tls_stream *tls_handler_detach(struct tls_handler *t) NODISCARD;
void tls_handler_adopt(struct tls_handler *t, struct channel *ch, struct tls_stream *stream,
                       const struct tls_handler_conf *conf);

/*
 * tls_handler_rest_bytes(t):
 * Bytes received behind the handshake and not passed on.
 *
 * Thread: loop
 */
size_t tls_handler_rest_bytes(const struct tls_handler *t);

#endif
