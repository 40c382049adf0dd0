/*
 * config/option_bytes: the kind of value that is any bytes, such as what a health check sends.
 *
 * They are written as text, in which \r \n \t \0 and \\ stand for what they do in C, and \xNN for
 * the byte with the two hexadecimal digits NN. Every other character is itself. Blanks at the ends,
 * a `#` or `;`, and a backslash at the end of a line need quotes around the value, as everywhere in
 * a file; \x22 and \x27 are the quotes themselves. See option.h for the contract of
 * option_kind.set.
 */
#ifndef CONFIG_OPTION_BYTES_H
#define CONFIG_OPTION_BYTES_H

#include "config/option.h"

/* struct check_bytes, of at most option.max bytes */
extern const struct option_kind option_bytes;

/*
 * option_bytes_read(out, v, text):
 * For an option_kind: write the bytes that ${text}, a part of ${v}->text, stands for to ${out},
 * which has room for strlen(text) of them. Returns their number.
 *
 * Thread: before start
 * Errors: -EINVAL (${v}->problem is filled)
 */
int option_bytes_read(uint8_t *out, struct option_value *v, const char *text) NODISCARD;

#endif
