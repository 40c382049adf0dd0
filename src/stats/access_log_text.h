/*
 * stats/access_log_text: the writing of one line: text that cannot be forged, and numbers, without
 * printf(3).
 *
 *   ACCESS_LOG_TEXT_PLAIN  values without quotes; a byte that is not printable ASCII, a blank, a
 *                          double quote and the
 *                      backslash are \xNN, so that no value ends a line or a field; what is missing
 *                      is `-`
 *   ACCESS_LOG_TEXT_JSON   values as JSON has them; bytes that are not UTF-8 are U+FFFD, what is
 *                          missing is null
 *
 * Whoever writes has made sure that there is room: see access_log_format.h.
 */
#ifndef STATS_ACCESS_LOG_TEXT_H
#define STATS_ACCESS_LOG_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum access_log_text_style { ACCESS_LOG_TEXT_PLAIN, ACCESS_LOG_TEXT_JSON };

/* What one byte of a value becomes at most (\u00NN), and what a number takes. */
#define ACCESS_LOG_TEXT_ESCAPE_BYTES 6
#define ACCESS_LOG_TEXT_NUMBER_BYTES 27 /* seconds: 20 digits, the point, 6 digits */

struct access_log_text {
    enum access_log_text_style style;
    char *at;
    char *end;
};

/*
 * access_log_text_copy(t, bytes, len):
 * ${bytes} as they are.
 *
 * Thread: the user of ${t}
 */
void access_log_text_copy(struct access_log_text *t, const char *bytes, size_t len);

/*
 * access_log_text_value(t, bytes, len):
 * A value that is text.
 *
 * Thread: the user of ${t}
 * Source: RFC 8259, section 7; RFC 3629, section 4 (what is UTF-8)
 */
void access_log_text_value(struct access_log_text *t, const char *bytes, size_t len);

/*
 * access_log_text_missing(t):
 * A value that there is none of.
 *
 * Thread: the user of ${t}
 */
void access_log_text_missing(struct access_log_text *t);

/*
 * access_log_text_number(t, n) / access_log_text_seconds(t, ns):
 * ${n}; ${ns} in seconds with six digits behind the point.
 *
 * Thread: the user of ${t}
 * Units:  ns, not negative
 */
void access_log_text_number(struct access_log_text *t, uint64_t n);
void access_log_text_seconds(struct access_log_text *t, int64_t ns);

/*
 * access_log_text_digits(t, n, width):
 * ${n} with exactly ${width} digits, zeros in front.
 *
 * Thread: the user of ${t}
 */
void access_log_text_digits(struct access_log_text *t, uint64_t n, unsigned width);

#endif
