/*
 * handover/session_message: messages by which a process hands its sessions to the one that has
 * replaced it, over a socket pair (SOCK_SEQPACKET).
 *
 *   new -> old: WANT      it takes sessions, `number` a second
 *               TAKEN     session `number` is its own: the old process must not touch it
 *               REFUSED   it did not touch session `number`, because of `why`
 *   old -> new: SESSION   a record (session_record.h) and the descriptors of client, server and
 *                         filled pipes
 *               FIGURES   how many were handed over so far (handoff_figures.h)
 *               OVER      no more sessions follow; the last figures
 *
 * note: commit. TAKEN is sent before the new process touches the session. A message that was sent
 * is received even if its sender dies, and once the other end is closed none can be sent. So each
 * session has one owner at every instant:
 *
 *   - TAKEN was sent: the new process. If it dies then, so does the session.
 *   - the old process reads the end of the stream, and no TAKEN before it: the old process. The
 *     new one closes its end only when it holds no session that it has not answered.
 *   - the old process is gone, so TAKEN cannot be sent: the new process, if it has the message.
 *     The old one closes its end only when no answer is outstanding, or at its own end.
 */
#ifndef HANDOVER_SESSION_MESSAGE_H
#define HANDOVER_SESSION_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

enum session_message_type {
    SESSION_MESSAGE_WANT = 1,
    SESSION_MESSAGE_SESSION,
    SESSION_MESSAGE_TAKEN,
    SESSION_MESSAGE_REFUSED,
    SESSION_MESSAGE_OVER,
    SESSION_MESSAGE_FIGURES
};

struct session_message {
    uint32_t type; /* enum session_message_type */
    uint32_t why;  /* of REFUSED: enum session_stay */
    uint64_t number;
};

/* A longer record is in a memory file, whose descriptor is the last one. */
#define SESSION_MESSAGE_INLINE_BYTES (32 * 1024)

#define SESSION_MESSAGE_FDS 7 /* client, server, two filled pipes, memory file */

/* What is beside the head; a receiver's buffer is at `data`. */
struct session_message_body {
    const uint8_t *data;
    size_t n;
    int fds[SESSION_MESSAGE_FDS];
    unsigned n_fds;
};

/* session_message_open(ends): create the socket pair. Errors: 0; -EMFILE, -ENFILE, -ENOMEM */
int session_message_open(int ends[2]) NODISCARD;

/*
 * session_message_send(fd, m, body):
 * Send ${m}, with ${body} unless it is NULL.
 *
 * Errors: 0; -EAGAIN (the queue is full); -ETOOMANYREFS, -ENOMEM, -EMFILE (not sent); -EPIPE,
 *         -ECONNRESET (the other end is closed)
 */
int session_message_send(int fd, const struct session_message *m,
                         const struct session_message_body *body) NODISCARD;

/*
 * session_message_receive(fd, m, body, buffer):
 * Receive one message; ${buffer} has SESSION_MESSAGE_INLINE_BYTES. A memory file is read to memory
 * that the caller frees: then body->data is not ${buffer}.
 *
 * Owns:   after 0 the caller owns the descriptors
 * Errors: 0; -EAGAIN (none); -EPIPE (the other end is closed); of a message whose head was read:
 *         -EMSGSIZE (cut short), -EMFILE (its descriptors were), -EINVAL, -ENOMEM (memory file)
 */
int session_message_receive(int fd, struct session_message *m, struct session_message_body *body,
                            uint8_t *buffer) NODISCARD;

/*
 * session_message_drop(body, buffer):
 * Close the descriptors of ${body}, received to ${buffer}, and free what was read from a memory
 * file.
 */
void session_message_drop(struct session_message_body *body, const uint8_t *buffer);

#endif
