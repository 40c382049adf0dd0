/*
 * upgrade/predecessors: the processes that this one replaces: the starter, which executed this
 * program and still serves, and processes that drain after earlier upgrades.
 *
 *   open -> attach -> [server_start()] -> ready -> step: taken over -> step ... -> close
 */
#ifndef UPGRADE_PREDECESSORS_H
#define UPGRADE_PREDECESSORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "system/launch.h"

struct past;
struct predecessors;
struct server;

/*
 * predecessors_open(out):
 * Find the predecessors' descriptors by LISTEN_FDS and LISTEN_FDNAMES, which stay in the
 * environment. Warnings and errors are also sent to the starter, until the take-over.
 *
 * Thread: main, before any other thread
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int predecessors_open(struct predecessors **out) NODISCARD;

/* predecessors_tell_lines(p, lines): send ${lines} to the starter, as if they were logged */
void predecessors_tell_lines(struct predecessors *p, const char *lines);

/*
 * predecessors_take_pid_file(p):
 * Return the starter's pid file, open and locked; -1: none.
 *
 * Owns:   the caller owns the descriptor
 */
int predecessors_take_pid_file(struct predecessors *p);

/*
 * predecessors_attach(p, sv):
 * Continue the predecessors' counters in ${sv}, and the starter's server health and settings.
 * Failures are logged.
 *
 * Thread: main, before server_start()
 * Owns:   ${sv} must outlive ${p}
 */
void predecessors_attach(struct predecessors *p, struct server *sv);

/*
 * predecessors_ready(p, has_pid_file):
 * Tell the starter that this process accepts clients, and whether it has adopted the pid file.
 * True: predecessors_step() handles the answer. False: there is no starter.
 */
bool predecessors_ready(struct predecessors *p, bool has_pid_file) NODISCARD;

/*
 * predecessors_fd(p) / predecessors_step(p):
 * Descriptor that is readable when there are messages / handle them; true if this process took over
 * from its starter just now.
 */
int predecessors_fd(const struct predecessors *p);
bool predecessors_step(struct predecessors *p) NODISCARD;

/* predecessors_is_pending(p): is there a starter from which this process has not taken over yet? */
bool predecessors_is_pending(const struct predecessors *p);

/*
 * predecessors_take_sessions(p):
 * Return the socket by which a replaced process offers its sessions; -1: none.
 *
 * Owns:   the caller owns the descriptor
 */
int predecessors_take_sessions(struct predecessors *p);

/* predecessors_past(p): what the starter's admin interface remembered, if it was received. */
struct past *predecessors_past(struct predecessors *p);

/* predecessors_draining(p): number of predecessors that drain. */
unsigned predecessors_draining(const struct predecessors *p);

/* predecessors_tell(p, word): send "drain" or "stop" to all predecessors that drain */
void predecessors_tell(struct predecessors *p, const char *word);

/* Descriptors for each process: socket and state. */
#define PREDECESSORS_DESCRIPTORS 2

/*
 * predecessors_lend(p, list) / predecessors_return(p):
 * Fill ${list} with descriptors for the successor: socket and current state of each process that
 * drains. Their messages stay unread / read them again.
 *
 * Owns:   valid until predecessors_return() or predecessors_close()
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int predecessors_lend(struct predecessors *p, struct launch_descriptor *list) NODISCARD;
void predecessors_return(struct predecessors *p);

/* predecessors_close(p): free ${p}; the predecessors go on. NULL is allowed. */
void predecessors_close(struct predecessors *p);

#endif
