/*
 * config/quote: bytes of a configuration file as they may be shown to a person.
 */
#ifndef CONFIG_QUOTE_H
#define CONFIG_QUOTE_H

#include <stddef.h>

/* How much of a text is shown; the rest is "...". */
#define QUOTE_SHOWN_BYTES 64

struct quote {
    char text[4 * QUOTE_SHOWN_BYTES + sizeof("'...'")];
};

/*
 * quote_text(q, text) / quote_bytes(q, text, len):
 * `'text'`, where every byte that is not printable ASCII is written \xNN and a long text is cut.
 * Returns ${q}->text, so that it can stand in an argument list.
 *
 * Thread: any
 * Units:  ${len} bytes
 */
const char *quote_text(struct quote *q, const char *text);
const char *quote_bytes(struct quote *q, const char *text, size_t len);

/* quote_text() with memory of its own, which lasts until the end of the block that it stands in. */
#define QUOTE_TEXT(text) quote_text(&(struct quote){{0}}, (text))

#endif
