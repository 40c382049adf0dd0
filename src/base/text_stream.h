/*
 * base/text_stream: the end of a text that open_memstream() collects.
 */
#ifndef BASE_TEXT_STREAM_H
#define BASE_TEXT_STREAM_H

#include <stdio.h>

/*
 * text_stream_close(f, text):
 * Close ${f}, which open_memstream(${text}, ...) returned.
 *
 * Owns:   the caller frees ${*text}; after an error it is NULL
 * Errors: 0; -ENOMEM: a part of the text is missing
 */
int text_stream_close(FILE *f, char **text);

#endif
