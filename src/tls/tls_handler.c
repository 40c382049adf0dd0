#include "tls/tls_handler.h"

#include <errno.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "tls/tls_counters.h"
#include "tls/tls_handler_internal.h"
#include "tls/tls_step.h"

#define TLS_HANDLER_PLAIN_BYTES NETLOOP_SCRATCH_BYTES

static _Thread_local uint8_t tls_handler_plain[TLS_HANDLER_PLAIN_BYTES];

static struct tls_handler *tls_handler_of(struct handler *h)
{
    return CONTAINER_OF(h, struct tls_handler, handler);
}

/* ---- the stream ---- */

static void tls_handler_tell_failure(struct tls_handler *t)
{
    if (t->has_failed)
        return;
    t->has_failed = true;
    if (t->failed)
        t->failed(t);
}

/* The peer has sent an alert, or broken the protocol: then an alert, if any, has been sent. */
static void tls_handler_broken(struct tls_handler *t)
{
    tls_handler_tell_failure(t);
    handler_ended(t->handler.next, HANDLER_REJECTED, -EBADMSG);
}

static void tls_handler_confirm(struct tls_handler *t)
{
    t->is_confirmed = true;
    if (t->confirmed)
        t->confirmed(t);
}

/*
 * Pass on close_notify as end of file. After the channel's own end of file, tell only the next
 * handler.
 */
static void tls_handler_closed(struct tls_handler *t)
{
    if (t->peer_closed)
        return;
    t->peer_closed = true;
    if (t->has_ended)
        handler_ended(t->handler.next, HANDLER_EOF, 0);
    else
        channel_end_input(t->handler.channel, t->handler.next);
}

/* Decrypt ${data} and pass it on; the library keeps an incomplete record. */
static void tls_handler_decrypt(struct tls_handler *t, const uint8_t *data, size_t len)
{
    struct channel *ch = t->handler.channel;
    enum tls_stream_result result;
    size_t n;

    tls_stream_input(t->stream, data, len);
    do {
        result = tls_stream_read(t->stream, tls_handler_plain, sizeof(tls_handler_plain), &n);
        (void)!tls_handler_send(t); /* the channel reports a failure */
        if (!t->is_confirmed && (result == TLS_STREAM_CLOSED || tls_stream_is_confirmed(t->stream)))
            tls_handler_confirm(t);
        if (n > 0 && !channel_discards(ch))
            handler_read(t->handler.next, tls_handler_plain, n);
    } while ((result == TLS_STREAM_DONE || result == TLS_STREAM_OUTPUT) && !channel_discards(ch));
    tls_stream_input(t->stream, NULL, 0);
    if (channel_discards(ch))
        return;
    if (result == TLS_STREAM_CLOSED)
        tls_handler_closed(t);
    else if (result == TLS_STREAM_FAILED)
        tls_handler_broken(t);
}

static void tls_handler_truncated(struct tls_handler *t)
{
    tls_count(&t->conf.counters->truncated);
    if (t->conf.truncated_is_reset)
        handler_ended(t->handler.next, HANDLER_REJECTED, -ECONNRESET);
    else
        handler_ended(t->handler.next, HANDLER_EOF, 0);
}

void tls_handler_release(struct tls_handler *t)
{
    struct channel *ch = t->handler.channel;
    struct buffer held = t->in;

    MUST(t->is_open && !t->is_released);
    t->is_released = true;
    buffer_init(&t->in);
    channel_resume_reading(ch, CHANNEL_STOP_HANDLER);
    handler_active(t->handler.next);
    if (buffer_bytes(&held) > 0 && !channel_discards(ch))
        tls_handler_decrypt(t, buffer_front(&held), buffer_bytes(&held));
    memory_account_clear(tls_handler_account(t), &held);
    if (t->has_ended && !t->peer_closed && !t->has_failed && !channel_discards(ch))
        tls_handler_truncated(t);
}

size_t tls_handler_rest_bytes(const struct tls_handler *t)
{
    return buffer_bytes(&t->in);
}

/* ---- operations ---- */

static void tls_handler_active(struct handler *h)
{
    struct tls_handler *t = tls_handler_of(h);

    if (t->is_released) /* by tls_handler_adopt() */
        handler_active(h->next);
    else if (!t->accepts && !t->step)
        tls_handler_begin_step(t); /* our ClientHello */
}

static void tls_handler_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct tls_handler *t = tls_handler_of(h);

    if (t->has_failed)
        return;
    if (t->is_released)
        tls_handler_decrypt(t, data, len);
    else
        tls_handler_hold(t, data, len);
}

static void tls_handler_close(struct tls_handler *t)
{
    memory_account_clear(tls_handler_account(t), &t->in);
    if (t->in_step) {
        tls_step_abandon(t->step);
    } else {
        tls_step_free(t->step);
        tls_stream_free(t->stream);
    }
    t->step = NULL;
    t->stream = NULL;
}

static void tls_handler_ended(struct handler *h, enum handler_end what, int error)
{
    struct tls_handler *t = tls_handler_of(h);

    if (what == HANDLER_EOF && !t->has_failed) {
        t->has_ended = true;
        if (t->is_released)
            tls_handler_truncated(t);
        else if (!t->is_open)
            tls_handler_advance(t);
        return;
    }
    if (what == HANDLER_CLOSED)
        tls_handler_close(t);
    handler_ended(h->next, what, error);
}

static int tls_handler_write(struct handler *h, const void *data, size_t len)
{
    struct tls_handler *t = tls_handler_of(h);
    enum tls_stream_result result;
    const uint8_t *at = data;

    if (!t->is_open || t->has_failed || channel_ended(h->channel))
        return -EPIPE;
    do {
        size_t n;
        int rc;

        result = tls_stream_write(t->stream, at, len, &n);
        rc = tls_handler_send(t);
        if (rc < 0)
            return rc;
        at += n;
        len -= n;
    } while (result == TLS_STREAM_OUTPUT);
    if (result == TLS_STREAM_DONE)
        return 0;
    tls_handler_tell_failure(t);
    channel_abort(h->channel, -EBADMSG);
    return -EPIPE;
}

static void tls_handler_shutdown_write(struct handler *h)
{
    struct tls_handler *t = tls_handler_of(h);

    if (t->is_open && !t->write_ended && !channel_ended(h->channel)) {
        tls_stream_shutdown_write(t->stream);
        (void)!tls_handler_send(t);
        t->write_ended = true;
    }
    handler_shutdown_write(h);
}

static size_t tls_handler_held(const struct handler *h)
{
    return CONTAINER_OF(h, const struct tls_handler, handler)->in.cap;
}

static bool tls_handler_may_move(const struct handler *h)
{
    const struct tls_handler *t = CONTAINER_OF(h, const struct tls_handler, handler);

    return t->is_released && !t->in_step;
}

static const struct handler_ops tls_handler_ops = {.name = "TLS",
                                                   .active = tls_handler_active,
                                                   .read = tls_handler_read,
                                                   .ended = tls_handler_ended,
                                                   .write = tls_handler_write,
                                                   .shutdown_write = tls_handler_shutdown_write,
                                                   .held = tls_handler_held,
                                                   .may_move = tls_handler_may_move};

int tls_handler_add(struct tls_handler *t, struct channel *ch, struct ssl_st *ssl,
                    const struct tls_handler_conf *conf)
{
    int rc = t->accepts ? 0 : tls_stream_create(&t->stream, ssl);

    MUST(!ssl == t->accepts && !t->choose == !t->accepts);
    if (rc < 0)
        return rc;
    t->conf = *conf;
    t->began_at_ns = clock_now_ns();
    t->flight.accepts = t->accepts;
    buffer_init(&t->in);
    pipeline_add(&ch->pipeline, &t->handler, &tls_handler_ops);
    return 0;
}

struct tls_stream *tls_handler_detach(struct tls_handler *t)
{
    struct tls_stream *stream = t->stream;

    MUST(t->is_released && buffer_bytes(&t->in) == 0);
    t->stream = NULL;
    return stream;
}

void tls_handler_adopt(struct tls_handler *t, struct channel *ch, struct tls_stream *stream,
                       const struct tls_handler_conf *conf)
{
    *t = (struct tls_handler){.conf = *conf,
                              .stream = stream,
                              .is_open = true,
                              .is_confirmed = tls_stream_is_confirmed(stream),
                              .is_released = true};
    buffer_init(&t->in);
    pipeline_add(&ch->pipeline, &t->handler, &tls_handler_ops);
}
