/*
 * option/option_bytes: option kind: arbitrary bytes, such as a check's request.
 *
 * Escapes: \r \n \t \0 \\ as in C, and \xNN. Outer blanks, `#`, `;` and a final backslash need
 * quotes around the value; \x22 and \x27 stand for quotes.
 */
#ifndef OPTION_OPTION_BYTES_H
#define OPTION_OPTION_BYTES_H

#include "option/option.h"

/* struct check_bytes, at most option.max bytes */
extern const struct option_kind option_bytes;

/*
 * option_bytes_read(out, v, text):
 * Unescape ${text}, part of ${v}->text, into ${out}, which has space for strlen(text) bytes. Return
 * the number of bytes written.
 *
 * Errors: -EINVAL (see ${v}->problem)
 */
int option_bytes_read(uint8_t *out, struct option_value *v, const char *text) NODISCARD;

#endif
