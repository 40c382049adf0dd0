/*
 * handover/sessions_import: takes sessions from the process that this one has replaced.
 *
 *   main: reads a message -> control loop: finds listener and server, counts the session in
 *         -> a worker's loop: builds it, sends TAKEN, serves it
 *
 * Whatever is refused was not touched: the other process serves it on. See note: commit in
 * handover/session_message.h.
 */
#ifndef HANDOVER_SESSIONS_IMPORT_H
#define HANDOVER_SESSIONS_IMPORT_H

#include <stdbool.h>

#include "base/must.h"

struct handoff_figures;
struct server;
struct sessions_import;

/*
 * sessions_import_begin(out, sv, fd, rate):
 * Ask for sessions at ${fd}, ${rate} a second.
 *
 * Thread: main
 * Owns:   ${sv} must outlive ${out}, which owns ${fd}, also after an error
 * Errors: 0; -ENOMEM; -EPERM (the other end belongs to another user); as session_message_send()
 */
int sessions_import_begin(struct sessions_import **out, struct server *sv, int fd,
                          unsigned rate) NODISCARD;

/*
 * sessions_import_fd(im) / sessions_import_step(im):
 * Descriptor that is readable when there are messages / read them; true: the last one was read, and
 * all are answered. Then, or when the server has stopped, destroy ${im}.
 *
 * Thread: main
 */
int sessions_import_fd(const struct sessions_import *im);
bool sessions_import_step(struct sessions_import *im) NODISCARD;

/*
 * sessions_import_figures(im, out):
 * The sessions that were taken, and those that stay, as the other process told last.
 *
 * Thread: main
 */
void sessions_import_figures(const struct sessions_import *im, struct handoff_figures *out);

/* sessions_import_stop(im): take no more sessions than those that were read. Thread: main */
void sessions_import_stop(struct sessions_import *im);

/* sessions_import_destroy(im): free ${im}; NULL is allowed. Thread: main */
void sessions_import_destroy(struct sessions_import *im);

#endif
