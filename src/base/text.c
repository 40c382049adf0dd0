#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_FIRST_BYTES 1024

/* Reserve ${n} more bytes and a NUL; false: this or an earlier allocation failed. */
static bool text_reserve(struct text *t, size_t n)
{
    size_t size = t->size > 0 ? t->size : TEXT_FIRST_BYTES;
    char *bytes;

    if (t->failed)
        return false;
    if (n < t->size - t->n)
        return true;
    while (size - t->n <= n && size <= SIZE_MAX / 2)
        size *= 2;
    bytes = size - t->n > n ? realloc(t->bytes, size) : NULL;
    if (!bytes) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->size = size;
    return true;
}

void text_add(struct text *t, const char *bytes, size_t n)
{
    if (!text_reserve(t, n))
        return;
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

void text_puts(struct text *t, const char *string)
{
    text_add(t, string, strlen(string));
}

void text_printf(struct text *t, const char *format, ...)
{
    va_list args;
    int n;

    if (!text_reserve(t, 0))
        return;
    va_start(args, format);
    n = vsnprintf(t->bytes + t->n, t->size - t->n, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n >= t->size - t->n) {
        if (!text_reserve(t, (size_t)n))
            return;
        va_start(args, format);
        n = vsnprintf(t->bytes + t->n, t->size - t->n, format, args);
        va_end(args);
    }
    if (n < 0)
        t->failed = true;
    else
        t->n += (size_t)n;
}

void text_free(struct text *t)
{
    free(t->bytes);
    *t = (struct text){.bytes = NULL};
}

static bool text_continues(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Rejects surrogates, overlong forms and code points above U+10FFFF (Unicode, table 3-7). */
unsigned text_character_bytes(const char *string)
{
    const unsigned char *s = (const unsigned char *)string;
    unsigned n;

    if (s[0] < 0x80)
        return s[0] != '\0';
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (unsigned i = 1; i < n; i++)
        if (!text_continues(s[i]))
            return 0;
    return n;
}
