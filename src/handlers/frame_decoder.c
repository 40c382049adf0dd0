#include "handlers/frame_decoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FRAME_DECODER_FIRST_BYTES 256

static unsigned frame_header_bytes(const struct frame_decoder_conf *conf)
{
    return conf->length_offset + conf->length_width;
}

static void frame_use(struct frame_decoder_bytes *in, size_t n)
{
    in->data += n;
    in->len -= n;
}

static void frame_drop_piece(struct frame_decoder *d)
{
    free(d->piece);
    d->piece = NULL;
    d->piece_bytes = d->piece_capacity = 0;
    d->is_out = false;
}

static bool frame_grow_piece(struct frame_decoder *d, size_t need, size_t whole)
{
    size_t capacity = 2 * (size_t)d->piece_capacity;
    uint8_t *piece;

    if (capacity < FRAME_DECODER_FIRST_BYTES)
        capacity = FRAME_DECODER_FIRST_BYTES;
    if (capacity < need)
        capacity = need;
    if (capacity > whole)
        capacity = whole;
    piece = realloc(d->piece, capacity);
    if (!piece)
        return false;
    d->piece = piece;
    d->piece_capacity = (uint32_t)capacity;
    return true;
}

static bool frame_fill_piece(struct frame_decoder *d, struct frame_decoder_bytes *in, size_t whole)
{
    size_t n = whole - d->piece_bytes;

    if (n > in->len)
        n = in->len;
    if (n == 0)
        return true;
    if (d->piece_bytes + n > d->piece_capacity && !frame_grow_piece(d, d->piece_bytes + n, whole))
        return false;
    memcpy(d->piece + d->piece_bytes, in->data, n);
    d->piece_bytes += (uint32_t)n;
    frame_use(in, n);
    return true;
}

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
 * Set ${bytes} to the length of the frame; for a bad frame, to the number of bytes to discard. The
 * sum cannot overflow: ${value} is below 2^63.
 */
static enum frame_decoder_result frame_measure(const struct frame_decoder_conf *conf,
                                               unsigned header_bytes, uint64_t value,
                                               uint64_t *bytes)
{
    uint64_t minus = conf->length_adjustment < 0 ? (uint64_t)-conf->length_adjustment : 0;
    uint64_t plus = conf->length_adjustment > 0 ? (uint64_t)conf->length_adjustment : 0;

    *bytes = header_bytes;
    if (value > INT64_MAX)
        return FRAME_DECODER_NEGATIVE;
    if (value + plus < minus)
        return FRAME_DECODER_SHORT;
    *bytes += value + plus - minus;
    return *bytes > conf->max_length ? FRAME_DECODER_LONG : FRAME_DECODER_FRAME;
}

/* Discard ${bytes}: first the piece, then input. True: report ${why} now; false: afterwards. */
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

static enum frame_decoder_result frame_refuse_to_end(struct frame_decoder *d,
                                                     const struct frame_decoder_conf *conf,
                                                     enum frame_decoder_result why)
{
    d->discards_to_end = true;
    frame_drop_piece(d);
    if (conf->fail_fast)
        return why;
    d->to_be_told = why;
    return FRAME_DECODER_MORE;
}

static void frame_keep_tail(struct frame_decoder *d, const uint8_t *data, size_t len)
{
    size_t kept = d->tail_bytes;

    if (len > sizeof(d->tail)) {
        data += len - sizeof(d->tail);
        len = sizeof(d->tail);
    }
    if (kept > sizeof(d->tail) - len)
        kept = sizeof(d->tail) - len;
    memmove(d->tail, d->tail + d->tail_bytes - kept, kept);
    if (len > 0)
        memcpy(d->tail + kept, data, len);
    d->tail_bytes = (uint8_t)(kept + len);
}

static bool frame_discard_to_end(struct frame_decoder *d, const struct frame_decoder_conf *conf,
                                 struct frame_decoder_bytes *in)
{
    size_t end = 0;

    if (conf->by == FRAME_DECODER_DELIMITER) {
        end =
            frame_delimiter_find(&conf->delimiters, d->tail, d->tail_bytes, in->data, in->len).end;
    } else if (in->len > 0) {
        const uint8_t *at = memchr(in->data, conf->length_end, in->len);

        end = at ? (size_t)(at - in->data) + 1 : 0;
    }
    d->discards_to_end = end == 0;
    if (d->discards_to_end)
        frame_keep_tail(d, in->data, in->len);
    else
        d->tail_bytes = 0;
    frame_use(in, d->discards_to_end ? in->len : end);
    return !d->discards_to_end;
}

/* Discard input. True: nothing is left to discard. */
static bool frame_discard(struct frame_decoder *d, const struct frame_decoder_conf *conf,
                          struct frame_decoder_bytes *in)
{
    size_t n = d->discard_bytes < in->len ? (size_t)d->discard_bytes : in->len;

    if (d->discards_to_end)
        return frame_discard_to_end(d, conf, in);
    frame_use(in, n);
    d->discard_bytes -= n;
    return d->discard_bytes == 0;
}

static enum frame_decoder_result frame_judge(struct frame_decoder *d,
                                             const struct frame_decoder_conf *conf,
                                             enum frame_decoder_result result, uint64_t bytes)
{
    if (result == FRAME_DECODER_FRAME)
        d->frame_bytes = (uint32_t)bytes;
    else if (!frame_refuse(d, conf, result, bytes))
        return FRAME_DECODER_MORE;
    return result;
}

static enum frame_decoder_result frame_begin_length(struct frame_decoder *d,
                                                    const struct frame_decoder_conf *conf,
                                                    struct frame_decoder_bytes *in)
{
    unsigned header_bytes = frame_header_bytes(conf);
    const uint8_t *header = in->data;
    enum frame_decoder_result result;
    uint64_t bytes;

    if (d->piece_bytes > 0 || in->len < header_bytes) {
        if (!frame_fill_piece(d, in, header_bytes))
            return FRAME_DECODER_NO_MEMORY;
        if (d->piece_bytes < header_bytes)
            return FRAME_DECODER_MORE;
        header = d->piece;
    }
    result = frame_measure(conf, header_bytes, frame_length_field(conf, header), &bytes);
    if (result == FRAME_DECODER_FRAME && bytes < conf->strip)
        result = FRAME_DECODER_SHORTER_THAN_STRIP;
    d->strip_front = conf->strip;
    return frame_judge(d, conf, result, bytes);
}

static bool frame_is_digit(uint8_t byte, size_t at)
{
    return byte >= (at == 0 ? '1' : '0') && byte <= '9' && at < FRAME_DECODER_TEXT_BYTES - 1;
}

static uint64_t frame_number(uint64_t value, const uint8_t *digits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        value = 10 * value + (digits[i] - '0');
    return value;
}

static enum frame_decoder_result frame_begin_text_length(struct frame_decoder *d,
                                                         const struct frame_decoder_conf *conf,
                                                         struct frame_decoder_bytes *in)
{
    size_t before = d->piece_bytes, n = 0;
    enum frame_decoder_result result;
    uint64_t bytes, value;

    while (n < in->len && frame_is_digit(in->data[n], before + n))
        n++;
    if (n == in->len)
        return frame_fill_piece(d, in, FRAME_DECODER_TEXT_BYTES) ? FRAME_DECODER_MORE
                                                                 : FRAME_DECODER_NO_MEMORY;
    if (before + n == 0 || in->data[n] != conf->length_end) {
        frame_use(in, n);
        return frame_refuse_to_end(d, conf, FRAME_DECODER_NOT_NUMBER);
    }
    value = frame_number(frame_number(0, d->piece, before), in->data, n);
    result = frame_measure(conf, (unsigned)(before + n + 1), value, &bytes);
    d->strip_front = conf->strip_length ? (uint32_t)(before + n + 1) : 0;
    return frame_judge(d, conf, result, bytes);
}

/* Search only the new bytes; the piece was searched before. */
static enum frame_decoder_result frame_begin_delimiter(struct frame_decoder *d,
                                                       const struct frame_decoder_conf *conf,
                                                       struct frame_decoder_bytes *in)
{
    size_t n = conf->max_length - d->piece_bytes;
    struct frame_delimiter_match match;

    if (n > in->len)
        n = in->len;
    match = frame_delimiter_find(&conf->delimiters, d->piece, d->piece_bytes, in->data, n);
    if (match.end > 0) {
        d->frame_bytes = d->piece_bytes + (uint32_t)match.end;
        d->strip_back = conf->strip_delimiter ? (uint8_t)match.len : 0;
        return FRAME_DECODER_FRAME;
    }
    if (d->piece_bytes + n < conf->max_length)
        return frame_fill_piece(d, in, conf->max_length) ? FRAME_DECODER_MORE
                                                         : FRAME_DECODER_NO_MEMORY;
    frame_keep_tail(d, d->piece, d->piece_bytes);
    frame_keep_tail(d, in->data, n);
    frame_use(in, n);
    return frame_refuse_to_end(d, conf, FRAME_DECODER_LONG);
}

/* Find the length of the next frame. MORE: it is not known yet, or bytes are being discarded. */
static enum frame_decoder_result frame_begin(struct frame_decoder *d,
                                             const struct frame_decoder_conf *conf,
                                             struct frame_decoder_bytes *in)
{
    if (d->frame_bytes > 0)
        return FRAME_DECODER_FRAME;
    switch (conf->by) {
    case FRAME_DECODER_LENGTH: return frame_begin_length(d, conf, in);
    case FRAME_DECODER_TEXT_LENGTH: return frame_begin_text_length(d, conf, in);
    case FRAME_DECODER_DELIMITER: break;
    }
    return frame_begin_delimiter(d, conf, in);
}

static void frame_give_out(struct frame_decoder *d, const uint8_t *frame,
                           struct frame_decoder_bytes *out)
{
    out->data = frame + d->strip_front;
    out->len = d->frame_bytes - d->strip_front - d->strip_back;
    d->frame_bytes = 0;
}

static enum frame_decoder_result frame_finish(struct frame_decoder *d,
                                              struct frame_decoder_bytes *in,
                                              struct frame_decoder_bytes *out)
{
    if (d->piece_bytes == 0 && in->len >= d->frame_bytes) {
        const uint8_t *frame = in->data;

        frame_use(in, d->frame_bytes);
        frame_give_out(d, frame, out);
        return FRAME_DECODER_FRAME;
    }
    if (!frame_fill_piece(d, in, d->frame_bytes))
        return FRAME_DECODER_NO_MEMORY;
    if (d->piece_bytes < d->frame_bytes)
        return FRAME_DECODER_MORE;
    d->is_out = true;
    frame_give_out(d, d->piece, out);
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

        if (!frame_discard(d, conf, in))
            return FRAME_DECODER_MORE;
        d->to_be_told = FRAME_DECODER_MORE;
        if (result == FRAME_DECODER_MORE && in->len > 0)
            result = frame_begin(d, conf, in);
        if (result == FRAME_DECODER_FRAME)
            result = frame_finish(d, in, out);
        if (result != FRAME_DECODER_MORE || (d->discard_bytes == 0 && !d->discards_to_end))
            return result;
    }
}

bool frame_decoder_is_between(const struct frame_decoder *d)
{
    return !frame_decoder_has_part(d) && d->discard_bytes == 0 && !d->discards_to_end;
}

bool frame_decoder_has_part(const struct frame_decoder *d)
{
    return d->piece_bytes > 0 && !d->is_out;
}

void frame_decoder_clear(struct frame_decoder *d)
{
    frame_drop_piece(d);
    *d = (struct frame_decoder){.piece = NULL};
}

uint64_t frame_decoder_fingerprint(const struct frame_decoder_conf *conf)
{
    const struct frame_delimiter_list *all = &conf->delimiters;
    const int64_t values[] = {conf->by,
                              conf->max_length,
                              conf->length_offset,
                              conf->length_width,
                              conf->length_adjustment,
                              conf->strip,
                              conf->byte_order,
                              conf->length_end,
                              conf->strip_length,
                              conf->strip_delimiter,
                              conf->fail_fast,
                              all->n};
    uint64_t hash = hash_stable(values, sizeof(values));

    for (unsigned i = 0; i < all->n; i++)
        hash = hash_mix(hash ^ hash_stable(all->list[i].bytes, all->list[i].len));
    return hash;
}
