/*
 * support/framed: a frame decoder, and the frames that it found.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_FRAMED_H
#define SUPPORT_FRAMED_H

#include <stddef.h>

#include "handlers/frame_decoder.h"

#define STREAM(text) (text), sizeof(text) - 1
#define LINES                                                                   \
    {                                                                           \
        .n = 2, .last_n = 1, .list = {{1, "\n"}, {2, "\r\n"}}, .last = { '\n' } \
    }
#define DELIMITED .by = FRAME_DECODER_DELIMITER

struct framed {
    struct frame_decoder decoder;
};

extern struct framed framed;

void framed_teardown(void);

/* What it finds: a frame as it is, in <>, and bad ones as letters. */
const char *framed_found(const struct frame_decoder_conf *conf, const char *stream, size_t len);

#endif
