/*
 * support/frame_model: what handlers/frame_decoder has to find, by looking at a stream as a whole.
 * Slow and plain; in a header, for fuzz targets too.
 */
#ifndef SUPPORT_FRAME_MODEL_H
#define SUPPORT_FRAME_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "handlers/frame_decoder.h"

struct frame_model {
    struct frame_decoder_conf conf;
    const uint8_t *stream;
    size_t len;
};

/* A frame is ${len} bytes of the stream from ${at} on. */
struct frame_model_event {
    enum frame_decoder_result result;
    size_t at, len;
};

__extension__ typedef __int128 frame_model_number;

static inline frame_model_number frame_model_field(const struct frame_decoder_conf *conf,
                                                   const uint8_t *field)
{
    frame_model_number value = 0;

    for (unsigned i = 0; i < conf->length_width; i++) {
        unsigned shift = conf->byte_order == FRAME_DECODER_BIG ? conf->length_width - 1 - i : i;

        value += (frame_model_number)field[i] << (8 * shift);
    }
    if (conf->length_width == 8 && value >> 63)
        value -= (frame_model_number)1 << 64;
    return value;
}

/*
 * frame_model_next(m, at, e):
 * What comes at ${at} of the stream, and ${at} goes behind it; false: nothing that is told.
 *
 * Thread: any
 */
static inline bool frame_model_next(const struct frame_model *m, size_t *at,
                                    struct frame_model_event *e)
{
    const struct frame_decoder_conf *conf = &m->conf;
    frame_model_number header = (frame_model_number)conf->length_offset + conf->length_width;
    frame_model_number left = m->len - *at, value, frame;
    bool bad;

    if (left < header)
        return false;
    value = frame_model_field(conf, m->stream + *at + conf->length_offset);
    frame = value + conf->length_adjustment + header;
    *e = (struct frame_model_event){.result = FRAME_DECODER_FRAME, .at = *at + conf->strip};
    if (value < 0)
        e->result = FRAME_DECODER_NEGATIVE;
    else if (frame < header)
        e->result = FRAME_DECODER_SHORT;
    else if (frame > conf->max_length)
        e->result = FRAME_DECODER_LONG;
    else if (frame < conf->strip)
        e->result = FRAME_DECODER_BARE;
    bad = e->result != FRAME_DECODER_FRAME;
    if (e->result == FRAME_DECODER_NEGATIVE || e->result == FRAME_DECODER_SHORT)
        frame = header;
    if (left < frame && !(bad && conf->fail_fast))
        return false;
    e->len = bad ? 0 : (size_t)(frame - conf->strip);
    *at += (size_t)(left < frame ? left : frame);
    return true;
}

/* What ${d} said must be what the model finds next. */
static inline void frame_model_compare(const struct frame_model *m,
                                       enum frame_decoder_result result,
                                       const struct frame_decoder_bytes *out, size_t *at)
{
    struct frame_model_event e;

    MUST(frame_model_next(m, at, &e));
    MUST(e.result == result);
    if (result != FRAME_DECODER_FRAME)
        return;
    MUST(e.len == out->len);
    MUST(e.len == 0 || memcmp(m->stream + e.at, out->data, e.len) == 0);
}

/*
 * frame_model_check(m, chunk, cookie):
 * Give the stream to a decoder in pieces, each as long as ${chunk} says, and see that it finds what
 * the model does, keeps no more than it may, and nothing between frames. Each piece lies in memory
 * of its own, so that a read behind its end is seen.
 *
 * Thread: any
 * Errors: none (aborts)
 */
static inline void frame_model_check(const struct frame_model *m,
                                     size_t (*chunk)(void *cookie, size_t left), void *cookie)
{
    struct frame_decoder d = {.piece = NULL};
    struct frame_model_event e;
    size_t at = 0, fed = 0;

    while (fed < m->len) {
        size_t n = chunk(cookie, m->len - fed);
        uint8_t *piece = malloc(n);
        struct frame_decoder_bytes in = {piece, n}, out;
        enum frame_decoder_result result;

        MUST(piece && n > 0 && n <= m->len - fed);
        memcpy(piece, m->stream + fed, n);
        fed += n;
        while ((result = frame_decoder_next(&d, &m->conf, &in, &out)) != FRAME_DECODER_MORE)
            frame_model_compare(m, result, &out, &at);
        MUST(in.len == 0);
        MUST(d.piece_room <= m->conf.max_length && (d.piece != NULL) == (d.piece_bytes > 0));
        MUST(!frame_decoder_is_between(&d) || d.piece == NULL);
        free(piece);
    }
    MUST(!frame_model_next(m, &at, &e));
    frame_decoder_clear(&d);
}

#endif
