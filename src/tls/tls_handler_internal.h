/*
 * tls/tls_handler_internal: shared by tls_handler.c (the stream) and tls_handler_handshake.c.
 */
#ifndef TLS_TLS_HANDLER_INTERNAL_H
#define TLS_TLS_HANDLER_INTERNAL_H

#include "net/channel.h"
#include "net/memory_account.h"
#include "tls/tls_handler.h"
#include "tls/tls_stream.h"

/* tls_handler_account(t): return the account of the loop's buffers. Thread: loop */
static inline struct memory_account *tls_handler_account(const struct tls_handler *t)
{
    return channel_net(t->handler.channel)->buffered;
}

/*
 * tls_handler_send(t):
 * Send the records of the stream's last call.
 *
 * Thread: loop
 * Errors: as channel_write()
 */
static inline int tls_handler_send(struct tls_handler *t)
{
    size_t n;
    const uint8_t *records = tls_stream_output(t->stream, &n);

    return n > 0 ? handler_write(&t->handler, records, n) : 0;
}

/*
 * tls_handler_begin_step(t) / tls_handler_advance(t):
 * Begin a step with the records received / begin one if they have a whole message, or fail.
 *
 * Thread: loop
 */
void tls_handler_begin_step(struct tls_handler *t);
void tls_handler_advance(struct tls_handler *t);

/* tls_handler_hold(t, data, len): keep ${data}, received before the release. Thread: loop */
void tls_handler_hold(struct tls_handler *t, const uint8_t *data, size_t len);

#endif
