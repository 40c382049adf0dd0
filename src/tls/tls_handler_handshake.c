/* tls/tls_handler_handshake: the handshake of a TLS handler, in steps. See tls/tls_handler.h. */
#include <errno.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "tls/tls_counters.h"
#include "tls/tls_handler_internal.h"
#include "tls/tls_handshakes.h"
#include "tls/tls_hello.h"
#include "tls/tls_step.h"

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
    t->is_confirmed = tls_stream_is_confirmed(t->stream);
    tls_step_free(t->step);
    t->step = NULL;
    tls_count(SSL_session_reused(tls_stream_ssl(t->stream)) ? &t->conf.counters->resumed
                                                            : &t->conf.counters->full);
    t->done(t, 0);
    if (!t->is_released)
        channel_stop_reading(ch, CHANNEL_STOP_HANDLER);
}

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

static int tls_handler_choose(struct tls_handler *t)
{
    struct ssl_st *ssl = t->choose(t);

    return ssl ? tls_stream_create(&t->stream, ssl) : -ENOMEM;
}

void tls_handler_begin_step(struct tls_handler *t)
{
    int rc = 0;

    if (!t->step && t->accepts) {
        rc = tls_hello_create(&t->hello, buffer_front(&t->in), buffer_bytes(&t->in));
        rc = rc == -ENOMEM ? rc : tls_handler_choose(t);
        if (rc == 0)
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

static void tls_handler_refuse(struct tls_handler *t, int alert, const char *reason)
{
    int rc = t->stream ? 0 : tls_handler_choose(t);

    if (rc < 0) {
        tls_handler_fail(t, rc);
        return;
    }
    tls_stream_refuse(t->stream, alert, reason);
    (void)!tls_handler_send(t); /* the channel reports a failure */
    if (!channel_discards(t->handler.channel))
        tls_handler_fail(t, -EPROTO);
}

void tls_handler_advance(struct tls_handler *t)
{
    if (t->in_step || t->is_refused || t->has_failed)
        return;
    if (t->flight.is_broken)
        tls_handler_refuse(t, -1, "the record is malformed"); /* the library waits for its rest */
    else if (tls_flight_scan(&t->flight, buffer_front(&t->in), buffer_bytes(&t->in)))
        tls_handler_begin_step(t);
    else if (t->flight.fault)
        tls_handler_refuse(t, t->flight.fault->alert, t->flight.fault->reason);
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

static void tls_handler_begin(struct tls_handler *t)
{
    if (t->accepts)
        t->began_at_ns = clock_now_ns();
    if (t->began)
        t->began(t);
}

/* While a step waits, pause a peer that sends too much. */
void tls_handler_hold(struct tls_handler *t, const uint8_t *data, size_t len)
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
