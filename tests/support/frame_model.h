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

/* By delimiters: the frame ends where one of them does, the longest of those that end there. */
static inline bool frame_model_next_delimiter(const struct frame_model *m, size_t *at,
                                              struct frame_model_event *e)
{
    const struct frame_decoder_conf *conf = &m->conf;
    size_t begin = *at, delimiter = 0;

    *e = (struct frame_model_event){.result = FRAME_DECODER_FRAME, .at = begin};
    for (*at = begin + 1; *at <= m->len; ++*at) {
        for (unsigned i = 0; i < conf->delimiters.n; i++) {
            size_t len = conf->delimiters.list[i].len;

            if (len > delimiter && len <= *at - begin &&
                memcmp(m->stream + *at - len, conf->delimiters.list[i].bytes, len) == 0)
                delimiter = len;
        }
        if (delimiter > 0)
            break;
    }
    if (delimiter == 0)
        *at = m->len;
    e->len = *at - begin - (conf->strip_delimiter ? delimiter : 0);
    if (delimiter > 0 && *at - begin <= conf->max_length)
        return true;
    e->result = FRAME_DECODER_LONG;
    return *at - begin >= conf->max_length && (delimiter > 0 || conf->fail_fast);
}

/* The header of a text length. True: it is whole, and a number. */
static inline bool frame_model_text(const struct frame_model *m, size_t at,
                                    frame_model_number *value, size_t *header, bool *bad)
{
    *value = 0;
    for (*header = 0; at + *header < m->len; ++*header) {
        uint8_t byte = m->stream[at + *header];

        if (*header > 0 && byte == m->conf.length_end) {
            ++*header;
            return true;
        }
        *bad = byte < '0' || byte > '9' || (*header == 0 && byte == '0') || *header == 10;
        if (*bad)
            return false;
        *value = 10 * *value + byte - '0';
    }
    return false;
}

/* The header of a text length is no number: it goes up to its end. */
static inline bool frame_model_not_number(const struct frame_model *m, size_t *at,
                                          struct frame_model_event *e)
{
    bool told = m->conf.fail_fast;

    *e = (struct frame_model_event){.result = FRAME_DECODER_NOT_NUMBER};
    while (*at < m->len)
        if (m->stream[(*at)++] == m->conf.length_end)
            return true;
    return told;
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
    size_t header = conf->length_offset + conf->length_width, strip = conf->strip;
    frame_model_number left = m->len - *at, value, frame;
    bool bad = false;

    if (conf->by == FRAME_DECODER_DELIMITER)
        return frame_model_next_delimiter(m, at, e);
    if (conf->by == FRAME_DECODER_TEXT_LENGTH) {
        if (!frame_model_text(m, *at, &value, &header, &bad)) {
            *at += bad ? header : 0;
            return bad && frame_model_not_number(m, at, e);
        }
        strip = conf->strip_length ? header : 0;
    } else {
        if (left < (frame_model_number)header)
            return false;
        value = frame_model_field(conf, m->stream + *at + conf->length_offset);
    }
    frame = value + conf->length_adjustment + (frame_model_number)header;
    *e = (struct frame_model_event){.result = FRAME_DECODER_FRAME, .at = *at + strip};
    if (value < 0)
        e->result = FRAME_DECODER_NEGATIVE;
    else if (frame < (frame_model_number)header)
        e->result = FRAME_DECODER_SHORT;
    else if (frame > conf->max_length)
        e->result = FRAME_DECODER_LONG;
    else if (frame < (frame_model_number)strip)
        e->result = FRAME_DECODER_SHORTER_THAN_STRIP;
    bad = e->result != FRAME_DECODER_FRAME;
    if (e->result == FRAME_DECODER_NEGATIVE || e->result == FRAME_DECODER_SHORT)
        frame = (frame_model_number)header;
    if (left < frame && !(bad && conf->fail_fast))
        return false;
    e->len = bad ? 0 : (size_t)frame - strip;
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
        MUST(d.piece_capacity <= m->conf.max_length && (d.piece != NULL) == (d.piece_bytes > 0));
        MUST(!frame_decoder_is_between(&d) || d.piece == NULL);
        free(piece);
    }
    MUST(!frame_model_next(m, &at, &e));
    frame_decoder_clear(&d);
}

#endif
