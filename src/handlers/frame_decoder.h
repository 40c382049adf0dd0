/*
 * handlers/frame_decoder: splits a stream into frames by length (binary or decimal) or delimiters.
 *
 * FRAME_DECODER_LENGTH:
 *   0      length_offset        + length_width                            frame length
 *   | ...  | the length field   | the rest                                |
 *
 *   frame length = value of the field + length_adjustment + length_offset + length_width
 *
 * FRAME_DECODER_TEXT_LENGTH: octet counting: 1 to 10 digits without a leading zero, then
 * length_end.
 *   0       header                           frame length
 *   | 11 SP   | hello world                  |   frame length = header + number + length_adjustment
 *
 * FRAME_DECODER_DELIMITER: see frame_delimiter.h.
 *
 * A frame that is complete in the input is returned in place. A partial frame is copied to memory
 * that grows up to max_length and is freed after the frame.
 *
 * A bad frame is reported once and discarded. If its end is unknown, the decoder discards:
 *
 *   frame length negative, or below the header's   the header
 *   text length not a number                       all through the next length_end
 *   no delimiter within max_length                 all through the next delimiter
 *
 * Source: RFC 6587, 3.4.1 and 3.4.2; Netty LengthFieldBasedFrameDecoder.
 */
#ifndef HANDLERS_FRAME_DECODER_H
#define HANDLERS_FRAME_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "handlers/frame_delimiter.h"

/* Longest text header: 10 digits and length_end. */
#define FRAME_DECODER_TEXT_BYTES 11

enum frame_decoder_by { FRAME_DECODER_LENGTH, FRAME_DECODER_TEXT_LENGTH, FRAME_DECODER_DELIMITER };

enum frame_decoder_order { FRAME_DECODER_BIG, FRAME_DECODER_LITTLE };

/*
 * Settings. max_length is at least `strip` and the longest header: length_offset + length_width, or
 * FRAME_DECODER_TEXT_BYTES. All lengths are below 2^31.
 */
struct frame_decoder_conf {
    enum frame_decoder_by by;
    unsigned max_length; /* of a frame, before stripping */
    unsigned length_offset;
    unsigned length_width;     /* 1, 2, 3, 4 or 8 */
    int64_t length_adjustment; /* also for text lengths */
    unsigned strip;            /* bytes to remove from the front, with FRAME_DECODER_LENGTH */
    enum frame_decoder_order byte_order;
    uint8_t length_end; /* ends a text length; not a digit */
    bool strip_length;  /* remove the text length header */
    struct frame_delimiter_list delimiters;
    bool strip_delimiter;
    bool fail_fast; /* report a bad frame before discarding it */
};

enum frame_decoder_result {
    FRAME_DECODER_MORE,
    FRAME_DECODER_FRAME,
    FRAME_DECODER_NEGATIVE, /* bad: the length is negative */
    FRAME_DECODER_SHORT,    /* bad: shorter than its header */
    FRAME_DECODER_LONG,     /* bad: longer than max_length */
    FRAME_DECODER_SHORTER_THAN_STRIP,
    FRAME_DECODER_NOT_NUMBER,
    FRAME_DECODER_NO_MEMORY /* the stream cannot go on */
};

struct frame_decoder_bytes {
    const uint8_t *data;
    size_t len;
};

/* State of one stream; initialize it with zeros. */
struct frame_decoder {
    uint8_t *piece; /* partial frame; NULL: none */
    uint32_t piece_bytes;
    uint32_t piece_capacity;
    uint32_t frame_bytes;                 /* length of the current frame; 0: unknown */
    uint32_t strip_front;                 /* bytes to remove from the frame's front */
    uint8_t strip_back;                   /* bytes to remove from the frame's end */
    bool is_out;                          /* the piece was returned as a frame */
    enum frame_decoder_result to_be_told; /* error to report after discarding; MORE: none */
    uint64_t discard_bytes;
    bool discards_to_end; /* discard up to the next length_end or delimiter */
    uint8_t tail_bytes;
    uint8_t tail[FRAME_DELIMITER_BYTES - 1]; /* last discarded bytes: a delimiter may begin there */
};

/*
 * frame_decoder_next(d, conf, in, out):
 * Consume ${in} up to the end of a good or bad frame. FRAME sets ${out} to the frame, which may be
 * empty. Call again until the result is MORE.
 *
 * Thread: owner of ${d}
 * Owns:   ${out} is valid until the next call or the end of ${in}
 * Errors: NEGATIVE; SHORT; LONG; SHORTER_THAN_STRIP; NOT_NUMBER; NO_MEMORY
 */
enum frame_decoder_result frame_decoder_next(struct frame_decoder *d,
                                             const struct frame_decoder_conf *conf,
                                             struct frame_decoder_bytes *in,
                                             struct frame_decoder_bytes *out) NODISCARD;

/*
 * frame_decoder_is_between(d) / frame_decoder_has_part(d):
 * Is the stream at a frame boundary? / Is a partial frame held?
 *
 * Thread: owner of ${d}
 */
bool frame_decoder_is_between(const struct frame_decoder *d);
bool frame_decoder_has_part(const struct frame_decoder *d);

/* frame_decoder_clear(d): reset ${d} and free its memory. Thread: owner of ${d} */
void frame_decoder_clear(struct frame_decoder *d);

/*
 * frame_decoder_fingerprint(conf):
 * Return a hash of all settings: with equal ones two processes cut a stream alike.
 */
uint64_t frame_decoder_fingerprint(const struct frame_decoder_conf *conf);

#endif
