/*
 * ctl/ctl_text: text of the daemon made harmless for a terminal.
 *
 * Bytes that the user's locale cannot print become \xHH: control characters, invalid UTF-8,
 * characters without width.
 */
#ifndef CTL_CTL_TEXT_H
#define CTL_CTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * ctl_text_put(out, text, len, keep_lines):
 * Write ${len} bytes, with newlines and tabs as they are if ${keep_lines}.
 */
void ctl_text_put(FILE *out, const char *text, size_t len, bool keep_lines);

/*
 * ctl_text_clean(text):
 * Return a harmless copy of ${text}.
 *
 * Owns:   the caller frees the copy
 */
char *ctl_text_clean(const char *text);

/*
 * ctl_text_columns(clean) / ctl_text_cut(clean, columns):
 * Return the columns that the harmless text ${clean} takes / the bytes of ${clean} that fit in
 * ${columns}.
 */
unsigned ctl_text_columns(const char *clean);
size_t ctl_text_cut(const char *clean, unsigned columns);

#endif
