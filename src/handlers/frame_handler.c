#include "handlers/frame_handler.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/memory_account.h"
#include "stats/figure.h"

#define FRAME_LOG_INTERVAL_NS (1 * NS_PER_S)

#define FRAME_SMALL_BYTES 4096

enum frame_fault { FRAME_TOO_LONG, FRAME_CORRUPT, FRAME_CUT_OFF, FRAME_FAULTS };

struct frame_shared {
    _Atomic uint64_t faults[FRAME_FAULTS];
    struct log_limit log_limit;
};

struct frame_handler {
    struct handler handler;
    struct handler_context *context;
    const struct frame_handler_conf *conf;
    struct frame_shared *shared;
    struct frame_decoder decoder;
    bool failed;      /* after a bad frame: discard input */
    bool holds_input; /* holds a partial frame; see frame_update_pending() */
};

static struct frame_handler *frame_of(struct handler *h)
{
    return CONTAINER_OF(h, struct frame_handler, handler);
}

static void frame_log_fault(struct frame_handler *f, const char *what)
{
    const struct handler_context *context = f->context;
    char peer[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&f->shared->log_limit, FRAME_LOG_INTERVAL_NS, &suppressed))
        log_warning("listen %s: client %s: %s; %s%s", context->listener,
                    address_format(peer, sizeof(peer), context->peer), what,
                    f->conf->on_error == FRAME_HANDLER_SKIP ? "the frame is skipped"
                                                            : "the connection is reset",
                    LOG_SUPPRESSED(suppressed));
}

static void frame_count_fault(struct frame_handler *f, enum frame_fault fault)
{
    atomic_fetch_add_explicit(&f->shared->faults[fault], 1, memory_order_relaxed);
}

static void frame_fault(struct frame_handler *f, enum frame_fault fault, const char *what)
{
    frame_count_fault(f, fault);
    frame_log_fault(f, what);
    if (f->conf->on_error == FRAME_HANDLER_SKIP)
        return;
    f->failed = true;
    handler_ended(f->handler.next, HANDLER_REJECTED, fault == FRAME_TOO_LONG ? -EMSGSIZE : -EPROTO);
}

static void frame_bad(struct frame_handler *f, enum frame_decoder_result result)
{
    switch (result) {
    case FRAME_DECODER_LONG:
        frame_fault(f, FRAME_TOO_LONG, "a frame is longer than frame_max_length");
        break;
    case FRAME_DECODER_NEGATIVE:
        frame_fault(f, FRAME_CORRUPT, "the length of a frame is negative");
        break;
    case FRAME_DECODER_SHORT:
        frame_fault(f, FRAME_CORRUPT, "a frame is shorter than its header");
        break;
    case FRAME_DECODER_SHORTER_THAN_STRIP:
        frame_fault(f, FRAME_CORRUPT, "a frame is shorter than frame_strip");
        break;
    case FRAME_DECODER_NOT_NUMBER:
        frame_fault(f, FRAME_CORRUPT, "the length of a frame is not a number");
        break;
    case FRAME_DECODER_MORE:
    case FRAME_DECODER_FRAME:
    case FRAME_DECODER_NO_MEMORY: f->context->ops->abort(f->context, SESSION_ERROR); break;
    }
}

static void frame_count(const struct frame_handler *f, size_t before)
{
    memory_account_charge(channel_net(f->handler.channel)->buffered, before,
                          f->decoder.piece_capacity);
}

/* A partial frame is pending input: the session's end cuts it off. */
static void frame_update_pending(struct frame_handler *f)
{
    bool holds_input = frame_decoder_has_part(&f->decoder);

    if (holds_input != f->holds_input)
        channel_set_input_pending(f->handler.channel, f->holds_input = holds_input);
}

static size_t frame_held(const struct handler *h)
{
    return CONTAINER_OF(h, const struct frame_handler, handler)->decoder.piece_capacity;
}

static void frame_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct frame_handler *f = frame_of(h);
    struct frame_decoder_bytes in = {data, len}, frame;
    enum frame_decoder_result result = FRAME_DECODER_FRAME;
    size_t before = f->decoder.piece_capacity;
    bool burst = false;

    /* A frame's receiver may end the session. */
    while (result != FRAME_DECODER_MORE && !f->failed && !channel_discards(h->channel)) {
        result = frame_decoder_next(&f->decoder, &f->conf->decoder, &in, &frame);
        if (!burst && result == FRAME_DECODER_FRAME && in.len > 0 && frame.len < FRAME_SMALL_BYTES)
            handler_burst(h->next, burst = true);
        if (result == FRAME_DECODER_FRAME && frame.len > 0)
            handler_read(h->next, frame.data, frame.len);
        else if (result != FRAME_DECODER_FRAME && result != FRAME_DECODER_MORE)
            frame_bad(f, result);
    }
    if (burst)
        handler_burst(h->next, false);
    frame_count(f, before);
    frame_update_pending(f);
}

static void frame_clear(struct frame_handler *f)
{
    size_t before = f->decoder.piece_capacity;

    frame_decoder_clear(&f->decoder);
    frame_count(f, before);
}

static bool frame_is_within(const struct frame_handler *f)
{
    return !f->failed && !frame_decoder_is_between(&f->decoder);
}

static void frame_ended(struct handler *h, enum handler_end what, int error)
{
    struct frame_handler *f = frame_of(h);

    if (what == HANDLER_EOF && frame_is_within(f))
        frame_fault(f, FRAME_CUT_OFF, "the client has ended within a frame");
    else if (what == HANDLER_CLOSED && frame_is_within(f) && !channel_has_vanished(h->channel))
        frame_count_fault(f, FRAME_CUT_OFF);
    if (what == HANDLER_EOF || what == HANDLER_CLOSED)
        frame_clear(f);
    if (what != HANDLER_EOF || !f->failed)
        handler_ended(h->next, what, error);
    if (what == HANDLER_EOF)
        frame_update_pending(f);
}

/* A bad frame that is being discarded is finished here. */
static int frame_save(const struct handler *h, struct handler_state *st)
{
    const struct frame_handler *f = CONTAINER_OF(h, const struct frame_handler, handler);

    if (f->failed || (frame_is_within(f) && !f->holds_input))
        return -EBUSY;
    st->values[0] = (int64_t)frame_decoder_fingerprint(&f->conf->decoder);
    if (f->holds_input) {
        st->bytes = f->decoder.piece;
        st->n = f->decoder.piece_bytes;
    }
    return 0;
}

/* The bytes must be what a client could have sent of one frame. */
static int frame_continue(struct frame_handler *f, const struct handler_state *st)
{
    struct frame_decoder_bytes in = {st->bytes, st->n}, frame;
    enum frame_decoder_result result =
        frame_decoder_next(&f->decoder, &f->conf->decoder, &in, &frame);

    frame_count(f, 0);
    frame_update_pending(f);
    if (result == FRAME_DECODER_NO_MEMORY)
        return -ENOMEM;
    return result == FRAME_DECODER_MORE && f->decoder.piece_bytes == st->n ? 0 : -EINVAL;
}

static int frame_restore(struct handler *h, const struct handler_state *st)
{
    struct frame_handler *f = frame_of(h);

    if ((uint64_t)st->values[0] != frame_decoder_fingerprint(&f->conf->decoder))
        return -ESTALE;
    return st->n > 0 ? frame_continue(f, st) : 0;
}

static const struct handler_ops frame_ops = {.name = "frame",
                                             .read = frame_read,
                                             .ended = frame_ended,
                                             .held = frame_held,
                                             .save = frame_save,
                                             .restore = frame_restore};

static void frame_add(void *state, struct channel *ch, struct handler_context *context,
                      const struct handler_step *step)
{
    struct frame_handler *f = state;

    f->context = context;
    f->conf = step->conf;
    f->shared = step->shared;
    pipeline_add(&ch->pipeline, &f->handler, &frame_ops);
}

static const struct figure frame_rows[] = {
    FIGURE_LIVE(struct frame_shared, COUNTER, NUMBER, faults[FRAME_TOO_LONG], "too_long",
                "Frames longer than frame_max_length."),
    FIGURE_LIVE(struct frame_shared, COUNTER, NUMBER, faults[FRAME_CORRUPT], "corrupt",
                "Frames with an impossible length."),
    FIGURE_LIVE(struct frame_shared, COUNTER, NUMBER, faults[FRAME_CUT_OFF], "cut_off",
                "Frames cut off by the end of the connection."),
};

static const struct figure_table frame_table = {
    .word = "frame", .prefix = "frames_", FIGURE_LIVE_TABLE(0, frame_rows)};

const struct handler_type frame_handler_type = {.name = "frame",
                                                .state_bytes = sizeof(struct frame_handler),
                                                .shared_bytes = sizeof(struct frame_shared),
                                                .add = frame_add,
                                                .figures = &frame_table};
