/*
 * stats/session_id: unique 128-bit session IDs, in hex.
 */
#ifndef STATS_SESSION_ID_H
#define STATS_SESSION_ID_H

#include <stdint.h>

#include "base/must.h"

struct session_id {
    uint64_t high, low; /* both 0: none */
};

#define SESSION_ID_TEXT_BYTES 33

/*
 * session_id_make(out):
 * Make an ID: the upper half is random, one per thread; the lower half differs each time.
 */
void session_id_make(struct session_id *out);

/*
 * session_id_parse(out, text):
 * Parse 32 lower-case hex digits.
 *
 * Errors: 0; -EINVAL
 */
int session_id_parse(struct session_id *out, const char *text) NODISCARD;

/*
 * session_id_format(text, id):
 * Write 32 hex digits to SESSION_ID_TEXT_BYTES at ${text}; return ${text}.
 */
const char *session_id_format(char *text, const struct session_id *id);

#endif
