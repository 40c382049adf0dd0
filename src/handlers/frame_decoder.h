/*
 * handlers/frame_decoder: splits a stream into frames: by a binary length field, by a length in
 * text, or by delimiters.
 *
 * FRAME_DECODER_LENGTH:
 *   0        length_offset          + length_width                          frame length
 *   | ...    | the length field     | the rest                              |
 *
 *   frame length = value of the field + length_adjustment + length_offset + length_width
 *
 * FRAME_DECODER_TEXT_LENGTH: octet counting. The header is the length, decimal, 1 to 10 digits
 * without a leading zero, and length_end:
 *   0         header                            frame length
 *   | 11 SP   | hello world                     |      frame length = number + length_adjustment +
 *   header
 *
 * FRAME_DECODER_DELIMITER: a frame ends with one of the delimiters (frame_delimiter.h has the order
 * in which they count).
 *
 * It knows bytes only, no channel. Frames that lie in the input are given out where they lie; only
 * one that comes in pieces is put together, in memory that grows with what has come, never above
 * the frame's length or max_length. Between frames there is none. Every byte is searched once.
 *
 * A bad frame is told once, discarded exactly, and the next one begins behind it. Where its end is
 * not known, this is discarded: of a binary length that is negative or less than the header, the
 * header; of a text length that is not a number, all up to the next length_end; of a frame without
 * a delimiter within max_length, all up to the next delimiter.
 *
 * Source: Netty LengthFieldBasedFrameDecoder; there a frame shorter than what is to be stripped
 *         leaves its length behind
 * for the next one, a length that overflows is read as another one, and what came behind a bad
 * frame waits for the next read. RFC 6587, 3.4.1 (octet counting) and 3.4.2 (delimiters); Netty
 * DelimiterBasedFrameDecoder.
 */
#ifndef HANDLERS_FRAME_DECODER_H
#define HANDLERS_FRAME_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "handlers/frame_delimiter.h"

/* The longest header of a text length: 10 digits and length_end. */
#define FRAME_DECODER_TEXT_BYTES 11

enum frame_decoder_by { FRAME_DECODER_LENGTH, FRAME_DECODER_TEXT_LENGTH, FRAME_DECODER_DELIMITER };

enum frame_decoder_order { FRAME_DECODER_BIG, FRAME_DECODER_LITTLE };

/*
 * For each kind of framing its own fields count, and max_length, fail_fast. The longest header,
 * length_offset + length_width or FRAME_DECODER_TEXT_BYTES, is <= max_length, and strip too; the
 * lengths are below 2^31.
 */
struct frame_decoder_conf {
    enum frame_decoder_by by;
    unsigned max_length; /* of a whole frame, before it is stripped */
    unsigned length_offset;
    unsigned length_width;     /* 1, 2, 3, 4 or 8 */
    int64_t length_adjustment; /* of text lengths too */
    unsigned strip;            /* so many bytes of each frame are not passed on */
    enum frame_decoder_order byte_order;
    uint8_t length_end; /* what follows the digits of a text length; no digit */
    bool strip_length;  /* the header of a text length is not passed on */
    struct frame_delimiter_list delimiters;
    bool strip_delimiter;
    bool fail_fast; /* tell of a bad frame when it is known to be one, not when it was discarded */
};

enum frame_decoder_result {
    FRAME_DECODER_MORE,       /* the input was used up */
    FRAME_DECODER_FRAME,      /* here is one */
    FRAME_DECODER_NEGATIVE,   /* a bad one: its length field is below 0 (of 8 bytes only) */
    FRAME_DECODER_SHORT,      /* is shorter than its header */
    FRAME_DECODER_LONG,       /* is longer than max_length */
    FRAME_DECODER_BARE,       /* has less than is to be stripped */
    FRAME_DECODER_NOT_NUMBER, /* its text length is not a number */
    FRAME_DECODER_NO_MEMORY   /* for a piece; the stream cannot be gone on with */
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
    uint32_t strip_front;                 /* of these bytes, so many are not given out */
    uint8_t strip_back;                   /* and so many at the end */
    bool is_out;                          /* the piece is a whole frame that was given out */
    enum frame_decoder_result to_be_told; /* when its frame was discarded; MORE: nothing is */
    uint64_t discard_bytes;
    bool discards_to_end; /* of the header of a text length, or to a delimiter */
    uint8_t tail_bytes;
    uint8_t
        tail[FRAME_DELIMITER_BYTES - 1]; /* the last discarded bytes: a delimiter may begin there */
};

/*
 * frame_decoder_next(d, conf, in, out):
 * Take from ${in} what there is up to the end of a frame, or of a bad one; on FRAME it is ${out},
 * which may be empty. To be called until it says MORE.
 *
 * Thread: owner of ${d}
 * Owns:   nothing; ${out} is valid until the next call, and no longer than ${in}
 * Errors: NEGATIVE; SHORT; LONG; BARE; NOT_NUMBER; NO_MEMORY
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
