/*
 * upgrade/hand_over: messages between an old process and the new process that replaces it.
 *
 * Each message is a packet of text. A state (counters, server health) is too long for that: it is
 * in a memory file, and the packet has the descriptor.
 *
 *   new -> old: log TEXT             a warning or error that it logs at its start
 *               ready [pid_file]     it accepts clients; pid_file: it has adopted the pid file
 *               taken                answer to go: ready to take over, waits for main
 *               drain | stop         to an old process that drains: act as on SIGTERM, SIGINT
 *   old -> new: go + state           request to take over; the state includes the settings
 *               bans                 bans that began since the start (upgrade/ban_files)
 *               history, events      what its admin interface remembers (upgrade/past)
 *               main                 systemd knows the new one as main process: take over
 *               sessions + socket    offer to hand open sessions over (upgrade/session_handoff)
 *               state + state        the state now, sent repeatedly while the old process drains
 *               end + state          the last state
 *
 * Unknown messages, from another version, are ignored. Any thread may call these functions.
 */
#ifndef UPGRADE_HAND_OVER_H
#define UPGRADE_HAND_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/must.h"

/* Names, in LISTEN_FDNAMES, of the descriptors that the new process gets. */
#define HAND_OVER_NAME      "reactord-upgrade" /* socket to the old process */
#define HAND_OVER_STATE     "reactord-state"   /* state of the old process */
#define HAND_OVER_OLD       "reactord-old"     /* socket to an older process that drains */
#define HAND_OVER_OLD_STATE "reactord-old-state"
#define HAND_OVER_PID_FILE  "reactord-pid-file" /* pid file, open and locked */
#define HAND_OVER_BANS      "reactord-bans"     /* bans of the old process; see ban_files.h */
#define HAND_OVER_LISTEN    "reactord-listen"   /* a listen socket; if unix, with its file */
#define HAND_OVER_TICKETS   "reactord-tickets"  /* keys of session tickets; see ticket_keys.h */

/* Longest text of a message, with NUL. */
#define HAND_OVER_TEXT_BYTES 2048

/*
 * hand_over_open(ends):
 * Create two connected sockets, non-blocking.
 *
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int hand_over_open(int ends[2]) NODISCARD;

/*
 * hand_over_send(fd, text, state_fd):
 * Send ${text}, truncated to HAND_OVER_TEXT_BYTES, and ${state_fd} unless it is -1.
 *
 * Errors: 0; -EAGAIN (the queue is full); -EPIPE, -ECONNRESET (the other process has ended)
 */
int hand_over_send(int fd, const char *text, int state_fd) NODISCARD;

/*
 * hand_over_receive(fd, text, state_fd):
 * Receive one message; ${text} has HAND_OVER_TEXT_BYTES. ${state_fd} gets -1 if the message has no
 * descriptor.
 *
 * Owns:   the caller owns ${state_fd}
 * Errors: 0; -EAGAIN (none); -EPIPE (the other process has ended)
 */
int hand_over_receive(int fd, char *text, int *state_fd) NODISCARD;

/*
 * hand_over_write_state(out_fd, text, len) / hand_over_read_state(out, fd):
 * Create a memory file with ${text} / read a whole memory file, and append NUL.
 *
 * Owns:   the caller owns ${out_fd}, and frees ${out}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE; -EINVAL (not a file, or too long); -errno of read(2) and
 *         write(2)
 */
int hand_over_write_state(int *out_fd, const char *text, size_t len) NODISCARD;
int hand_over_read_state(char **out, int fd) NODISCARD;

/*
 * hand_over_create_state(out_fd, out) / hand_over_finish_state(fd, f) / hand_over_read_bytes(out,
 * n, fd):
 * Create an empty memory file, and a stream that writes to it / close the stream / as
 * hand_over_read_state(), of bytes that may be NUL, and return their number.
 *
 * Owns:   hand_over_finish_state() also closes ${fd} after an error
 * Errors: 0; as above; -ENOSPC, -EIO (not all was written)
 */
int hand_over_create_state(int *out_fd, FILE **out) NODISCARD;
int hand_over_finish_state(int fd, FILE *f) NODISCARD;
int hand_over_read_bytes(char **out, size_t *n, int fd) NODISCARD;

/* hand_over_is_own(name): is ${name} one of the names above, except HAND_OVER_LISTEN? */
bool hand_over_is_own(const char *name);

/*
 * hand_over_is(text, word):
 * If ${word} is the first word of ${text}, return the text after it, else NULL.
 */
const char *hand_over_is(const char *text, const char *word);

#endif
