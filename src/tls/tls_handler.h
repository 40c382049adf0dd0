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

/* Limit of a peer's handshake bytes; the library takes 100 KiB of certificates. */
#define TLS_HANDLER_MAX_BYTES (128 * 1024)

struct tls_handler_conf {
    struct tls_handshakes *handshakes;
    struct tls_counters *counters;
    bool truncated_is_reset; /* pass on end of file without close_notify as a reset */
};

struct tls_handler {
    struct handler handler;
    struct tls_handler_conf conf;
    struct tls_stream *stream; /* NULL before choose(), and after the channel's end */
    struct tls_step *step;     /* NULL: before the first step, and after the handshake */
    struct buffer in;          /* received records, not yet given to the stream */
    struct tls_flight flight;
    struct tls_hello *hello;  /* client's; NULL: not read. Released by the handler's owner */
    uint32_t handshake_bytes; /* bytes received during the handshake */
    int64_t began_at_ns;      /* added, or if it accepts: received the first byte */
    int64_t deadline_ns;      /* for the handshake; CLOCK_NEVER: no deadline */
    /* Called with the first byte received: may set `deadline_ns`. NULL: not called. */
    void (*began)(struct tls_handler *t);
    /*
     * If it accepts: called once the first message is there, or cannot be one: return an SSL for
     * the client, whose ClientHello is in `hello` (NULL: it cannot be read); NULL: no memory. May
     * change `conf`.
     */
    struct ssl_st *(*choose)(struct tls_handler *t);
    /*
     * Called when the handshake is done or has failed. ${error}: 0; -EPROTO (see
     * tls_stream_failure()); -ETIMEDOUT; -EBUSY (refused by the pool: tls_handler_retry() may
     * follow); -ENODATA (end of file before any byte); -ECONNRESET (later end of file); -EMSGSIZE
     * (above TLS_HANDLER_MAX_BYTES); -ENOMEM; -EAGAIN; -ESHUTDOWN. Not called after the channel's
     * end. May call tls_handler_release().
     */
    void (*done)(struct tls_handler *t, int error);
    /* Called when a peer that was not confirmed at done() is: see tls_stream_is_confirmed(). */
    void (*confirmed)(struct tls_handler *t);
    /*
     * Called when TLS fails after the handshake: see tls_stream_failure(). HANDLER_REJECTED with
     * -EBADMSG follows, or if sending failed, HANDLER_CLOSED. Both may be NULL.
     */
    void (*failed)(struct tls_handler *t);
    bool accepts;
    bool in_step;    /* a submitted step owns the stream */
    bool is_refused; /* the pool refused the step; it waits for tls_handler_retry() */
    bool is_open;    /* the handshake is done */
    bool is_confirmed;
    bool is_released;
    bool has_failed;
    bool has_ended;   /* the channel has reported end of file */
    bool peer_closed; /* close_notify was received */
    bool write_ended; /* close_notify was sent */
};

/*
 * tls_handler_add(t, ch, ssl, conf):
 * Add ${t} to the pipeline of ${ch}, before its tail. The caller has set t->accepts, done and
 * deadline_ns. If ${t} accepts, the handshake begins with the client's first message, on the SSL of
 * t->choose(), and ${ssl} is NULL; else it begins with `active`.
 *
 * Thread: loop of ${ch}
 * Owns:   ${t} must live as long as ${ch}; it owns ${ssl}, which an error frees, and copies ${conf}
 * Errors: 0; -ENOMEM
 */
int tls_handler_add(struct tls_handler *t, struct channel *ch, struct ssl_st *ssl,
                    const struct tls_handler_conf *conf) NODISCARD;

/* tls_handler_retry(t): after done(t, -EBUSY): submit the step again. Thread: loop */
void tls_handler_retry(struct tls_handler *t);

/*
 * tls_handler_give_up(t):
 * Fail a handshake that takes too long: calls done(t, -ETIMEDOUT). No-op if it is done or has
 * failed, or after the channel's end.
 *
 * Thread: loop
 */
void tls_handler_give_up(struct tls_handler *t);

/*
 * tls_handler_release(t):
 * After done(t, 0): pass on `active`, then the plain bytes received so far and later.
 *
 * Thread: loop
 */
void tls_handler_release(struct tls_handler *t);

/*
 * tls_handler_detach(t) / tls_handler_adopt(t, ch, stream, conf):
 * Return the stream of a released ${t}, after channel_detach() / add ${t} to the unstarted ${ch},
 * for a ${stream} after its handshake.
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
 * Return how many bytes received after the handshake were not passed on.
 *
 * Thread: loop
 */
size_t tls_handler_rest_bytes(const struct tls_handler *t);

#endif
