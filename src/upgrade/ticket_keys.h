/*
 * upgrade/ticket_keys: hands the keys of session tickets to the process that replaces this one, so
 * that clients resume their TLS sessions there.
 *
 * The keys are in a memory file, which the new process erases when it has read it. Keys from files
 * (ticket_keys) are not handed over: the new process reads the files.
 */
#ifndef UPGRADE_TICKET_KEYS_H
#define UPGRADE_TICKET_KEYS_H

#include "base/must.h"

/*
 * ticket_keys_lend(out_fd):
 * Write the keys to a new memory file; -1: there are none.
 *
 * Owns:   the caller owns ${out_fd}
 * Errors: 0; as hand_over_write_state()
 */
int ticket_keys_lend(int *out_fd) NODISCARD;

/*
 * ticket_keys_take():
 * Use the keys that LISTEN_FDNAMES names, if any, and erase their file. A failure is logged.
 *
 * Thread: main, before inherited_read()
 */
void ticket_keys_take(void);

#endif
