/*
 * handlers/frame_delimiter: a set of delimiters, and the search for the first one in a stream that
 * comes in pieces.
 *
 * The delimiter whose last byte comes first ends the frame; of several with the same last byte the
 * longest, so that the frame is the shortest. With "\n" and "\r\n" both kinds of lines are whole,
 * and the answer does not depend on how the stream was cut into reads. Every byte is looked at
 * once, by memchr(3).
 *
 * Source: Netty DelimiterBasedFrameDecoder; there each read searches the whole frame again, once
 *         for each delimiter.
 */
#ifndef HANDLERS_FRAME_DELIMITER_H
#define HANDLERS_FRAME_DELIMITER_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_DELIMITER_MAX   8  /* in a list */
#define FRAME_DELIMITER_BYTES 16 /* of one */

struct frame_delimiter {
    uint8_t len; /* 1 to FRAME_DELIMITER_BYTES */
    uint8_t bytes[FRAME_DELIMITER_BYTES];
};

/* All zero at first: no delimiter. */
struct frame_delimiter_list {
    unsigned n;
    unsigned last_n;
    struct frame_delimiter list[FRAME_DELIMITER_MAX];
    uint8_t last[FRAME_DELIMITER_MAX]; /* the last byte of each, without duplicates */
};

struct frame_delimiter_match {
    size_t end;   /* bytes of the input up to the end of the delimiter; 0: there is none */
    unsigned len; /* of the delimiter, which may begin before the input */
};

/*
 * frame_delimiter_add(list, bytes, len):
 * Add a delimiter. There must be room for it, and its length must be 1 to FRAME_DELIMITER_BYTES.
 *
 * Thread: before start
 */
void frame_delimiter_add(struct frame_delimiter_list *list, const uint8_t *bytes, size_t len);

/*
 * frame_delimiter_find(list, before, before_len, data, len):
 * Find the first delimiter that ends in ${data}. It may begin in ${before}, the bytes of the same
 * frame that came before and in which no delimiter ends.
 *
 * Thread: any
 */
struct frame_delimiter_match frame_delimiter_find(const struct frame_delimiter_list *list,
                                                  const uint8_t *before, size_t before_len,
                                                  const uint8_t *data, size_t len);

#endif
