/* config/quote: see quote.h. */
#include "config/quote.h"

#include <stdio.h>
#include <string.h>

const char *quote_bytes(struct quote *q, const char *text, size_t len)
{
    size_t shown = len < QUOTE_SHOWN_BYTES ? len : QUOTE_SHOWN_BYTES;
    char *out = q->text;

    *out++ = '\'';
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= ' ' && c <= '~')
            *out++ = (char)c;
        else
            out += sprintf(out, "\\x%02x", c);
    }
    strcpy(out, shown < len ? "...'" : "'");
    return q->text;
}

const char *quote_text(struct quote *q, const char *text)
{
    return quote_bytes(q, text, strlen(text));
}
