#include "tls/tls_handler.h"

#include <errno.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "net/channel.h"
#include "net/memory_account.h"
#include "tls/tls_counters.h"
#include "tls/tls_handshakes.h"
#include "tls/tls_hello.h"
#include "tls/tls_step.h"
#include "tls/tls_stream.h"

#define TLS_HANDLER_PLAIN_BYTES NETLOOP_SCRATCH_BYTES

static _Thread_local uint8_t tls_handler_plain[TLS_HANDLER_PLAIN_BYTES];

static struct tls_handler *tls_handler_of(struct handler *h)
{
    return CONTAINER_OF(h, struct tls_handler, handler);
}

static struct memory_account *tls_handler_account(const struct tls_handler *t)
{
    return channel_net(t->handler.channel)->buffered;
}

static int tls_handler_send(struct tls_handler *t)
{
    size_t n;
    const uint8_t *records = tls_stream_output(t->stream, &n);

    return n > 0 ? handler_write(&t->handler, records, n) : 0;
}

/* ---- the handshake ---- */

static void tls_handler_fail(struct tls_handler *t, int error)
{
    if (t->has_failed)
        return;
    t->has_failed = true;
    if (error == -ETIMEDOUT)
        tls_count(&t->conf.counters->timed_out);
    else
        tls_count(&t->conf.counters->failed);
    t->done(t, error);
}

static void tls_handler_opened(struct tls_handler *t)
{
    struct channel *ch = t->handler.channel;

    t->is_open = true;
    tls_step_free(t->step);
    t->step = NULL;
    tls_count(SSL_session_reused(tls_stream_ssl(t->stream)) ? &t->conf.counters->resumed
                                                            : &t->conf.counters->full);
    t->done(t, 0);
    if (!t->is_released)
        channel_stop_reading(ch, CHANNEL_STOP_HANDLER);
}

static void tls_handler_advance(struct tls_handler *t);

/* Put the records that the step has left unread in front of those received meanwhile. */
static int tls_handler_put_back(struct tls_handler *t)
{
    struct buffer *left = &t->step->in;
    struct buffer later = t->in;
    int rc;

    if (buffer_bytes(left) == 0) {
        buffer_clear(left);
        return 0;
    }
    memory_account_charge(tls_handler_account(t), 0, left->cap);
    t->in = *left;
    buffer_init(left);
    rc = buffer_bytes(&later) > 0
             ? memory_account_append(tls_handler_account(t), &t->in, buffer_front(&later),
                                     buffer_bytes(&later))
             : 0;
    memory_account_clear(tls_handler_account(t), &later);
    return rc;
}

static void tls_handler_step_done(struct tls_step *step)
{
    struct tls_handler *t = step->cookie;
    int error = step->error;

    t->in_step = false;
    if (tls_handler_put_back(t) < 0)
        error = -ENOMEM;
    if (buffer_bytes(&step->out) > 0 &&
        handler_write(&t->handler, buffer_front(&step->out), buffer_bytes(&step->out)) == -ENOMEM)
        return; /* the channel is aborted */
    buffer_clear(&step->out);
    if (channel_discards(t->handler.channel))
        return;
    channel_resume_reading(t->handler.channel, CHANNEL_STOP_HANDLER); /* see tls_handler_hold() */
    if (error < 0)
        tls_handler_fail(t, error);
    else if (step->result == TLS_STREAM_DONE)
        tls_handler_opened(t);
    else if (step->result == TLS_STREAM_INPUT)
        tls_handler_advance(t);
    else
        tls_handler_fail(t, -EPROTO);
}

/* Move whole records to the step. */
static int tls_handler_give(struct tls_handler *t)
{
    size_t n = t->flight.records_end;

    if (n == buffer_bytes(&t->in)) {
        memory_account_charge(tls_handler_account(t), t->in.cap, 0);
        t->step->in = t->in;
        buffer_init(&t->in);
    } else {
        if (buffer_append(&t->step->in, buffer_front(&t->in), n) < 0)
            return -ENOMEM;
        memory_account_consume(tls_handler_account(t), &t->in, n);
    }
    tls_flight_take(&t->flight);
    return 0;
}

static void tls_handler_submit(struct tls_handler *t)
{
    bool first = !t->step->stream;
    int64_t limit_ns = t->deadline_ns - t->began_at_ns;
    int rc;

    t->step->stream = t->stream;
    if (!first && tls_stream_handshake_is_cheap(t->stream)) {
        tls_step_run_here(t->step); /* a thread switch would cost more */
        return;
    }
    t->in_step = true;
    t->step->job.on_loop = netloop_is_young(channel_net(t->handler.channel));
    rc = tls_step_submit(
        t->step, t->conf.handshakes,
        loop_due_ns(channel_net(t->handler.channel)->loop, t->began_at_ns, limit_ns), first);
    if (rc == 0)
        return;
    t->in_step = false;
    if (rc != -EBUSY) {
        tls_handler_fail(t, rc);
        return;
    }
    if (first)
        t->step->stream = NULL;
    t->is_refused = true;
    t->done(t, -EBUSY);
}

static void tls_handler_begin_step(struct tls_handler *t)
{
    int rc = 0;

    if (!t->step && t->accepts) {
        rc = tls_hello_create(&t->hello, buffer_front(&t->in), buffer_bytes(&t->in));
        rc = rc == -ENOMEM ? rc : 0;
        tls_stream_set_hello(t->stream, t->hello);
    }
    if (rc == 0 && !t->step)
        rc = tls_step_create(&t->step, channel_net(t->handler.channel)->loop, tls_handler_step_done,
                             t);
    if (rc == 0)
        rc = tls_handler_give(t);
    if (rc == 0)
        tls_handler_submit(t);
    else
        tls_handler_fail(t, rc);
}

static void tls_handler_advance(struct tls_handler *t)
{
    if (t->in_step || t->is_refused || t->has_failed)
        return;
    if (tls_flight_scan(&t->flight, buffer_front(&t->in), buffer_bytes(&t->in)))
        tls_handler_begin_step(t);
    else if (t->has_ended)
        tls_handler_fail(t, t->handshake_bytes == 0 ? -ENODATA : -ECONNRESET);
    else if (t->handshake_bytes > TLS_HANDLER_MAX_BYTES)
        tls_handler_fail(t, -EMSGSIZE);
}

void tls_handler_retry(struct tls_handler *t)
{
    MUST(t->is_refused && !t->in_step);
    t->is_refused = false;
    if (!channel_discards(t->handler.channel))
        tls_handler_submit(t);
}

void tls_handler_give_up(struct tls_handler *t)
{
    if (!t->is_open && !channel_discards(t->handler.channel))
        tls_handler_fail(t, -ETIMEDOUT);
}

/* ---- the stream ---- */

/* The peer broke the protocol; an alert, if any, has been sent. */
static void tls_handler_broken(struct tls_handler *t)
{
    t->has_failed = true;
    handler_ended(t->handler.next, HANDLER_REJECTED, -EPROTO);
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

static void tls_handler_begin(struct tls_handler *t)
{
    if (t->accepts)
        t->began_at_ns = clock_now_ns();
    if (t->began)
        t->began(t);
}

/* While a step waits, pause a peer that sends too much. */
static void tls_handler_hold(struct tls_handler *t, const uint8_t *data, size_t len)
{
    bool waits = t->in_step || t->is_refused;

    if (memory_account_append(tls_handler_account(t), &t->in, data, len) < 0) {
        channel_abort(t->handler.channel, -ENOMEM);
        return;
    }
    if (t->is_open)
        return;
    t->handshake_bytes += (uint32_t)len;
    if (t->handshake_bytes == len)
        tls_handler_begin(t);
    if (waits && buffer_bytes(&t->in) > TLS_HANDLER_MAX_BYTES)
        channel_stop_reading(t->handler.channel, CHANNEL_STOP_HANDLER);
    else
        tls_handler_advance(t);
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
    channel_abort(h->channel, -EIO);
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

static const struct handler_ops tls_handler_ops = {.name = "TLS",
                                                   .active = tls_handler_active,
                                                   .read = tls_handler_read,
                                                   .ended = tls_handler_ended,
                                                   .write = tls_handler_write,
                                                   .shutdown_write = tls_handler_shutdown_write,
                                                   .held = tls_handler_held};

int tls_handler_add(struct tls_handler *t, struct channel *ch, struct ssl_st *ssl,
                    const struct tls_handler_conf *conf)
{
    int rc = tls_stream_create(&t->stream, ssl, t->accepts);

    if (rc < 0)
        return rc;
    t->conf = *conf;
    t->began_at_ns = clock_now_ns();
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
    *t =
        (struct tls_handler){.conf = *conf, .stream = stream, .is_open = true, .is_released = true};
    buffer_init(&t->in);
    pipeline_add(&ch->pipeline, &t->handler, &tls_handler_ops);
}
