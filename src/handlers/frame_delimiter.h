/*
 * handlers/frame_delimiter: finds the first of several delimiters in a stream.
 *
 * The delimiter that ends first ends the frame; if several end at the same byte, the longest
 * counts. So the list "\n", "\r\n" handles both line ends, wherever a read ends. Every byte is
 * searched once, by memchr(3).
 *
 * Source: Netty DelimiterBasedFrameDecoder.
 */
#ifndef HANDLERS_FRAME_DELIMITER_H
#define HANDLERS_FRAME_DELIMITER_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_DELIMITER_MAX   8
#define FRAME_DELIMITER_BYTES 16 /* maximum for a delimiter */

struct frame_delimiter {
    uint8_t len; /* 1 to FRAME_DELIMITER_BYTES */
    uint8_t bytes[FRAME_DELIMITER_BYTES];
};

/* Initialize with zeros: no delimiter. */
struct frame_delimiter_list {
    unsigned n;
    unsigned last_n;
    struct frame_delimiter list[FRAME_DELIMITER_MAX];
    uint8_t last[FRAME_DELIMITER_MAX]; /* last byte of each delimiter, without duplicates */
};

struct frame_delimiter_match {
    size_t end;   /* offset in ${data} behind the delimiter; 0: none found */
    unsigned len; /* of the delimiter, which may begin before ${data} */
};

/*
 * frame_delimiter_add(list, bytes, len):
 * Add a delimiter of 1 to FRAME_DELIMITER_BYTES bytes; the list must not be full.
 *
 * Thread: any, before other threads can use ${list}
 */
void frame_delimiter_add(struct frame_delimiter_list *list, const uint8_t *bytes, size_t len);

/*
 * frame_delimiter_find(list, before, before_len, data, len):
 * Find the first delimiter that ends in ${data}. It may begin in ${before}: earlier bytes of the
 * frame, already searched.
 */
struct frame_delimiter_match frame_delimiter_find(const struct frame_delimiter_list *list,
                                                  const uint8_t *before, size_t before_len,
                                                  const uint8_t *data, size_t len);

#endif
