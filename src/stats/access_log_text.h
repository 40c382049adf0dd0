/*
 * stats/access_log_text: writes escaped values and numbers, without printf(3).
 *
 *   ACCESS_LOG_TEXT_PLAIN  unquoted; blanks, `"`, `\` and all but printable ASCII become \xNN, so
 *                          that no value can end a line or field; a missing value is `-`
 *   ACCESS_LOG_TEXT_JSON   JSON values; invalid UTF-8 becomes U+FFFD; a missing value is null
 *
 * The caller provides enough space (access_log_format.h).
 */
#ifndef STATS_ACCESS_LOG_TEXT_H
#define STATS_ACCESS_LOG_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum access_log_text_style { ACCESS_LOG_TEXT_PLAIN, ACCESS_LOG_TEXT_JSON };

/* Longest escaped byte (\u00NN); longest number. */
#define ACCESS_LOG_TEXT_ESCAPE_BYTES 6
#define ACCESS_LOG_TEXT_NUMBER_BYTES 27 /* seconds: 20 digits, point, 6 digits */

struct access_log_text {
    enum access_log_text_style style;
    char *at;
    char *end;
};

/* access_log_text_copy(t, bytes, len): write ${bytes} unescaped. Thread: owner */
void access_log_text_copy(struct access_log_text *t, const char *bytes, size_t len);

/*
 * access_log_text_value(t, bytes, len):
 * Write ${bytes} as a value, escaped.
 *
 * Thread: owner
 * Source: RFC 8259, section 7; RFC 3629, section 4 (UTF-8)
 */
void access_log_text_value(struct access_log_text *t, const char *bytes, size_t len);

/* access_log_text_missing(t): write a missing value. Thread: owner */
void access_log_text_missing(struct access_log_text *t);

/*
 * access_log_text_number(t, n) / access_log_text_seconds(t, ns):
 * Write ${n} / write ${ns} >= 0 as seconds with six decimals.
 *
 * Thread: owner
 */
void access_log_text_number(struct access_log_text *t, uint64_t n);
void access_log_text_seconds(struct access_log_text *t, int64_t ns);

/* access_log_text_digits(t, n, width): write ${n} zero-padded to ${width} digits. Thread: owner */
void access_log_text_digits(struct access_log_text *t, uint64_t n, unsigned width);

#endif
