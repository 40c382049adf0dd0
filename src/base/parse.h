/*
 * base/parse: strict conversion of words to numbers.
 *
 * A word is taken whole or not at all: no leading or trailing blanks, no sign, no octal, no rest
 * after the unit. On error the out-parameter keeps its value.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/*
 * parse_uint(out, word, max):
 * A decimal number from 0 to ${max}.
 *
 * Thread: any
 * Errors: 0; -EINVAL (not a decimal number); -ERANGE (above ${max})
 */
int parse_uint(uint64_t *out, const char *word, uint64_t max) NODISCARD;

/*
 * parse_size(out_bytes, word, max_bytes):
 * A number of bytes with an optional unit: none or b, k (1024), m (1024^2), g (1024^3), in either
 * case.
 *
 * Thread: any
 * Units:  bytes
 * Errors: 0; -EINVAL (not a number, or no such unit); -ERANGE (above ${max_bytes})
 */
int parse_size(uint64_t *out_bytes, const char *word, uint64_t max_bytes) NODISCARD;

/*
 * parse_duration(out_ns, word, max_ns):
 * A duration with its unit: us, ms, s, m, h or d. The unit may be left out only for 0.
 *
 * Thread: any
 * Units:  ns
 * Errors: 0; -EINVAL (not a number, or no such unit); -ERANGE (above ${max_ns})
 */
int parse_duration(int64_t *out_ns, const char *word, int64_t max_ns) NODISCARD;

/*
 * parse_percent(out, word):
 * A number from 0 to 100, with or without a percent sign.
 *
 * Thread: any
 * Errors: 0; -EINVAL (not a number); -ERANGE (above 100)
 */
int parse_percent(unsigned *out, const char *word) NODISCARD;

/*
 * parse_bool(out, word):
 * yes, on, true, 1 or no, off, false, 0, in either case.
 *
 * Thread: any
 * Errors: 0; -EINVAL (none of these)
 */
int parse_bool(bool *out, const char *word) NODISCARD;

#endif
