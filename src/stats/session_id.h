/*
 * stats/session_id: a name for a session that no other has, here or elsewhere: 128 bits, in hex
 * where it is shown.
 */
#ifndef STATS_SESSION_ID_H
#define STATS_SESSION_ID_H

#include <stdint.h>

struct session_id {
    uint64_t high, low; /* both 0: none */
};

/* Room for the text of one, its NUL included. */
#define SESSION_ID_TEXT_BYTES 33

/*
 * session_id_make(out):
 * A new one. The upper half is drawn once for a thread; the lower half of the next ID is another
 * one each time.
 *
 * Thread: any
 */
void session_id_make(struct session_id *out);

/*
 * session_id_format(text, id):
 * Write ${id} as 32 digits. Returns ${text}.
 *
 * Thread: any
 * Units:  SESSION_ID_TEXT_BYTES of room
 */
const char *session_id_format(char *text, const struct session_id *id);

#endif
