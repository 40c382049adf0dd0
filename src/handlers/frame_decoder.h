/*
 * handlers/frame_decoder: from a stream to its frames, each with a field that says how long it is.
 *
 *   0        length_offset          + length_width                          frame length
 *   | ...    | the length field     | the rest                              |
 *
 *   frame length = value of the field + length_adjustment + length_offset + length_width
 *
 * It knows bytes only, no channel. Frames that lie in the input are given out where they lie; only
 * one that comes in pieces is put together, in memory that grows with what has come, never above
 * the frame's length or max_length. Between frames there is none.
 *
 * A frame that cannot be is told once, discarded exactly, and the next one begins behind it. Of one
 * whose length is negative or less than its own header, nobody knows where it ends: its header is
 * discarded.
 *
 * Source: Netty LengthFieldBasedFrameDecoder; there a frame shorter than what is to be stripped
 *         leaves its length behind
 * for the next one, a length that overflows is read as another one, and what came behind a bad
 * frame waits for the next read.
 */
#ifndef HANDLERS_FRAME_DECODER_H
#define HANDLERS_FRAME_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

enum frame_decoder_order { FRAME_DECODER_BIG, FRAME_DECODER_LITTLE };

/*
 * length_offset + length_width <= max_length, and strip <= max_length; the lengths are below 2^31.
 */
struct frame_decoder_conf {
    unsigned max_length; /* of a whole frame, before it is stripped */
    unsigned length_offset;
    unsigned length_width; /* 1, 2, 3, 4 or 8 */
    int64_t length_adjustment;
    unsigned strip; /* so many bytes of each frame are not passed on */
    enum frame_decoder_order byte_order;
    bool
        /* tell of a frame that is too long when its header is there, not when it was discarded */
        fail_fast;
};

enum frame_decoder_result {
    FRAME_DECODER_MORE,     /* the input was used up */
    FRAME_DECODER_FRAME,    /* here is one */
    FRAME_DECODER_NEGATIVE, /* a bad one: its length field is below 0 (of 8 bytes only) */
    FRAME_DECODER_SHORT,    /* is shorter than its header */
    FRAME_DECODER_LONG,     /* is longer than max_length */
    FRAME_DECODER_BARE,     /* has less than is to be stripped */
    FRAME_DECODER_NO_MEMORY /* for a piece; the stream cannot be gone on with */
};

struct frame_decoder_bytes {
    const uint8_t *data;
    size_t len;
};

/* All zero at first. */
struct frame_decoder {
    uint8_t *piece; /* NULL: no piece of a frame is kept */
    uint32_t piece_bytes;
    uint32_t piece_room;
    uint32_t frame_bytes;                 /* of the frame that comes; 0: not known yet */
    bool is_out;                          /* the piece is a whole frame that was given out */
    enum frame_decoder_result to_be_told; /* when its frame was discarded; MORE: nothing is */
    uint64_t discard_bytes;
};

/*
 * frame_decoder_next(d, conf, in, out):
 * Take from ${in} what there is up to the end of a frame, or of a bad one; on FRAME it is ${out},
 * which may be empty. To be called until it says MORE.
 *
 * Thread: owner of ${d}
 * Owns:   nothing; ${out} is valid until the next call, and no longer than ${in}
 * Errors: NEGATIVE; SHORT; LONG; BARE; NO_MEMORY
 */
enum frame_decoder_result frame_decoder_next(struct frame_decoder *d,
                                             const struct frame_decoder_conf *conf,
                                             struct frame_decoder_bytes *in,
                                             struct frame_decoder_bytes *out) NODISCARD;

/*
 * frame_decoder_is_between(d):
 * Is the stream between two frames, so that it may end there?
 *
 * Thread: owner of ${d}
 */
bool frame_decoder_is_between(const struct frame_decoder *d);

/*
 * frame_decoder_clear(d):
 * Forget what has come, and give back its memory.
 *
 * Thread: owner of ${d}
 */
void frame_decoder_clear(struct frame_decoder *d);

#endif
