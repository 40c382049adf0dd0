/*
 * base/parse: strict conversion of words to numbers and booleans.
 *
 * Blanks, signs, leading zeros and trailing characters are errors. After an error the out-parameter
 * is unchanged.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/*
 * parse_uint(out, word, max):
 * Parse a decimal number from 0 to ${max}.
 *
 * Errors: 0; -EINVAL; -ERANGE (above ${max})
 */
int parse_uint(uint64_t *out, const char *word, uint64_t max) NODISCARD;

/*
 * parse_size(out_bytes, word, max_bytes):
 * Parse a number of bytes with an optional unit in upper or lower case: b, k (1024), m (1024^2), g
 * (1024^3).
 *
 * Errors: 0; -EINVAL; -ERANGE (above ${max_bytes})
 */
int parse_size(uint64_t *out_bytes, const char *word, uint64_t max_bytes) NODISCARD;

/*
 * parse_duration(out_ns, word, max_ns):
 * Parse a duration with its unit: us, ms, s, m, h or d. Only 0 may omit the unit.
 *
 * Errors: 0; -EINVAL; -ERANGE (above ${max_ns})
 */
int parse_duration(int64_t *out_ns, const char *word, int64_t max_ns) NODISCARD;

/*
 * parse_percent(out, word):
 * Parse 0 to 100, with or without a percent sign.
 *
 * Errors: 0; -EINVAL; -ERANGE (above 100)
 */
int parse_percent(unsigned *out, const char *word) NODISCARD;

/* parse_hex_digit(c): return the value of a hexadecimal digit; -1: ${c} is none. */
int parse_hex_digit(char c);

/*
 * parse_bool(out, word):
 * Parse yes, on, true, 1 or no, off, false, 0, in upper or lower case.
 *
 * Errors: 0; -EINVAL
 */
int parse_bool(bool *out, const char *word) NODISCARD;

#endif
