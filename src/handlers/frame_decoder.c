/* handlers/frame_decoder: see frame_decoder.h. */
#include "handlers/frame_decoder.h"

#include <stdlib.h>
#include <string.h>

/* The least room for a piece: most are short. */
#define FRAME_DECODER_FIRST_BYTES 256

static unsigned frame_header_bytes(const struct frame_decoder_conf *conf)
{
    return conf->length_offset + conf->length_width;
}

/* ---- the piece ---- */

static void frame_drop_piece(struct frame_decoder *d)
{
    free(d->piece);
    d->piece = NULL;
    d->piece_bytes = d->piece_room = 0;
    d->is_out = false;
}

/*
 * Room for ${need} bytes of a piece that will have ${whole}: twice as much as before, but none that
 * it cannot fill.
 */
static bool frame_grow_piece(struct frame_decoder *d, size_t need, size_t whole)
{
    size_t room = 2 * (size_t)d->piece_room;
    uint8_t *piece;

    if (room < FRAME_DECODER_FIRST_BYTES)
        room = FRAME_DECODER_FIRST_BYTES;
    if (room < need)
        room = need;
    if (room > whole)
        room = whole;
    piece = realloc(d->piece, room);
    if (!piece)
        return false;
    d->piece = piece;
    d->piece_room = (uint32_t)room;
    return true;
}

/* Take from ${in} until the piece has ${whole} bytes. */
static bool frame_fill_piece(struct frame_decoder *d, struct frame_decoder_bytes *in, size_t whole)
{
    size_t n = whole - d->piece_bytes;

    if (n > in->len)
        n = in->len;
    if (n == 0)
        return true;
    if (d->piece_bytes + n > d->piece_room && !frame_grow_piece(d, d->piece_bytes + n, whole))
        return false;
    memcpy(d->piece + d->piece_bytes, in->data, n);
    d->piece_bytes += (uint32_t)n;
    in->data += n;
    in->len -= n;
    return true;
}

/* ---- the header ---- */

static uint64_t frame_length_field(const struct frame_decoder_conf *conf, const uint8_t *header)
{
    const uint8_t *field = header + conf->length_offset;
    uint64_t value = 0;

    for (unsigned i = 0; i < conf->length_width; i++) {
        unsigned at = conf->byte_order == FRAME_DECODER_BIG ? i : conf->length_width - 1 - i;

        value = value << 8 | field[at];
    }
    return value;
}

/*
 * How long the frame is whose header is there, or how much of a bad one is to be discarded. Below
 * 2^63 the field plus its adjustment and header is never more than 64 bits take.
 */
static enum frame_decoder_result frame_measure(const struct frame_decoder_conf *conf,
                                               const uint8_t *header, uint64_t *bytes)
{
    uint64_t value = frame_length_field(conf, header);
    uint64_t minus = conf->length_adjustment < 0 ? (uint64_t)-conf->length_adjustment : 0;
    uint64_t plus = conf->length_adjustment > 0 ? (uint64_t)conf->length_adjustment : 0;

    *bytes = frame_header_bytes(conf);
    if (value > INT64_MAX)
        return FRAME_DECODER_NEGATIVE;
    if (value + plus < minus)
        return FRAME_DECODER_SHORT;
    *bytes += value + plus - minus;
    if (*bytes > conf->max_length)
        return FRAME_DECODER_LONG;
    return *bytes < conf->strip ? FRAME_DECODER_BARE : FRAME_DECODER_FRAME;
}

/* ---- bad frames ---- */

/*
 * ${bytes} of the stream, which begin with the piece or at ${in}, are no frame, for ${why}. True if
 * that is told now.
 */
static bool frame_refuse(struct frame_decoder *d, const struct frame_decoder_conf *conf,
                         enum frame_decoder_result why, uint64_t bytes)
{
    d->discard_bytes = bytes - d->piece_bytes;
    d->frame_bytes = 0;
    frame_drop_piece(d);
    if (conf->fail_fast || d->discard_bytes == 0)
        return true;
    d->to_be_told = why;
    return false;
}

/* True when nothing is left to discard. */
static bool frame_discard(struct frame_decoder *d, struct frame_decoder_bytes *in)
{
    size_t n = d->discard_bytes < in->len ? (size_t)d->discard_bytes : in->len;

    in->data += n;
    in->len -= n;
    d->discard_bytes -= n;
    return d->discard_bytes == 0;
}

/* ---- the next one ---- */

/*
 * See to it that frame_bytes is known. FRAME: it is; MORE: the header is not whole yet, or a bad
 * frame is being discarded.
 */
static enum frame_decoder_result frame_begin(struct frame_decoder *d,
                                             const struct frame_decoder_conf *conf,
                                             struct frame_decoder_bytes *in)
{
    unsigned header_bytes = frame_header_bytes(conf);
    const uint8_t *header = in->data;
    enum frame_decoder_result result;
    uint64_t bytes;

    if (d->frame_bytes > 0)
        return FRAME_DECODER_FRAME;
    if (d->piece_bytes > 0 || in->len < header_bytes) {
        if (!frame_fill_piece(d, in, header_bytes))
            return FRAME_DECODER_NO_MEMORY;
        if (d->piece_bytes < header_bytes)
            return FRAME_DECODER_MORE;
        header = d->piece;
    }
    result = frame_measure(conf, header, &bytes);
    if (result == FRAME_DECODER_FRAME)
        d->frame_bytes = (uint32_t)bytes;
    else if (!frame_refuse(d, conf, result, bytes))
        return FRAME_DECODER_MORE;
    return result;
}

static void frame_give_out(struct frame_decoder *d, const struct frame_decoder_conf *conf,
                           const uint8_t *frame, struct frame_decoder_bytes *out)
{
    out->data = frame + conf->strip;
    out->len = d->frame_bytes - conf->strip;
    d->frame_bytes = 0;
}

/* The rest of the frame whose length is known. */
static enum frame_decoder_result frame_finish(struct frame_decoder *d,
                                              const struct frame_decoder_conf *conf,
                                              struct frame_decoder_bytes *in,
                                              struct frame_decoder_bytes *out)
{
    if (d->piece_bytes == 0 && in->len >= d->frame_bytes) {
        const uint8_t *frame = in->data;

        in->data += d->frame_bytes;
        in->len -= d->frame_bytes;
        frame_give_out(d, conf, frame, out);
        return FRAME_DECODER_FRAME;
    }
    if (!frame_fill_piece(d, in, d->frame_bytes))
        return FRAME_DECODER_NO_MEMORY;
    if (d->piece_bytes < d->frame_bytes)
        return FRAME_DECODER_MORE;
    d->is_out = true;
    frame_give_out(d, conf, d->piece, out);
    return FRAME_DECODER_FRAME;
}

enum frame_decoder_result frame_decoder_next(struct frame_decoder *d,
                                             const struct frame_decoder_conf *conf,
                                             struct frame_decoder_bytes *in,
                                             struct frame_decoder_bytes *out)
{
    if (d->is_out)
        frame_drop_piece(d);
    for (;;) {
        enum frame_decoder_result result = d->to_be_told;

        if (!frame_discard(d, in))
            return FRAME_DECODER_MORE;
        d->to_be_told = FRAME_DECODER_MORE;
        if (result == FRAME_DECODER_MORE && in->len > 0)
            result = frame_begin(d, conf, in);
        if (result == FRAME_DECODER_FRAME)
            result = frame_finish(d, conf, in, out);
        if (result != FRAME_DECODER_MORE || d->discard_bytes == 0)
            return result;
    }
}

bool frame_decoder_is_between(const struct frame_decoder *d)
{
    return (d->piece_bytes == 0 || d->is_out) && d->discard_bytes == 0;
}

void frame_decoder_clear(struct frame_decoder *d)
{
    frame_drop_piece(d);
    *d = (struct frame_decoder){.piece = NULL};
}
