/*
 * handover/session_record: the state of a session as bytes, for another process on this host.
 *
 *   magic, version, length | fields in the order of a table: numbers as in memory, texts and
 *                            addresses behind their length
 *
 * The bytes are not trusted: each field is checked, and the record must have no byte more.
 */
#ifndef HANDOVER_SESSION_RECORD_H
#define HANDOVER_SESSION_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct session_state;

/* Changed with each field: processes of different versions do not hand sessions over. */
#define SESSION_RECORD_VERSION 2

/* Limits of a record and of its texts. */
#define SESSION_RECORD_MAX_BYTES  (8 << 20)
#define SESSION_RECORD_TEXT_BYTES 1024

/*
 * session_record_encode(out, n, st):
 * Write ${st} to memory that the caller frees.
 *
 * Errors: 0; -ENOMEM; -EMSGSIZE (longer than the limits above)
 */
int session_record_encode(uint8_t **out, size_t *n, const struct session_state *st) NODISCARD;

/*
 * session_record_decode(st, data, n):
 * Read ${n} bytes; texts and unsent bytes of ${st} point into ${data}.
 *
 * Errors: 0; -EPROTONOSUPPORT (another version); -EMSGSIZE (shorter or longer than it says, or
 *         than its fields); -EINVAL (no record, or a value is impossible)
 */
int session_record_decode(struct session_state *st, const uint8_t *data, size_t n) NODISCARD;

#endif
