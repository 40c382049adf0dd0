/*
 * base/text: growing text buffer, such as the body of an HTTP response.
 *
 * A failed allocation sets `failed`, and text added afterwards is ignored: check `failed` once, at
 * the end. Large texts grow without a copy: realloc() uses mremap(2).
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

/* Zero-initialised: empty. */
struct text {
    char *bytes; /* NUL-terminated; NULL before the first addition */
    size_t n;
    size_t size;
    bool failed;
};

/*
 * text_add(t, bytes, n) / text_puts(t, string) / text_printf(t, format, ...):
 * Append bytes / a string / formatted text.
 *
 * Thread: owner of ${t}
 */
void text_add(struct text *t, const char *bytes, size_t n);
void text_puts(struct text *t, const char *string);
void text_printf(struct text *t, const char *format, ...) PRINTF_LIKE(2, 3);

/* text_free(t): free the bytes; ${t} is empty again. Thread: owner of ${t} */
void text_free(struct text *t);

/*
 * text_character_bytes(string):
 * Return the length of the UTF-8 character at ${string} (RFC 3629); 0: invalid, or the final NUL.
 */
unsigned text_character_bytes(const char *string);

#endif
