/* ini/ini_value: reads the value of a line: quotes, blanks and comment. */
#ifndef INI_INI_VALUE_H
#define INI_INI_VALUE_H

#include "base/must.h"

/* ini_value_strip(text): cut blanks off both ends of ${text}; return its begin. */
char *ini_value_strip(char *text);

/*
 * ini_value_read(out, text):
 * Find the value in ${text}, the rest of a line after the '=': without quotes, blanks and comment.
 * Return NULL, or the problem.
 *
 * Owns:   ${out} points into ${text}
 */
const char *ini_value_read(const char **out, char *text) NODISCARD;

#endif
