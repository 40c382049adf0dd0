/*
 * handover/sessions_place: the place of another process's session in this one: its listener,
 * upstream and server by their names.
 */
#ifndef HANDOVER_SESSIONS_PLACE_H
#define HANDOVER_SESSIONS_PLACE_H

#include "service/session_handover.h"

struct server;
struct session;
struct session_state;

/*
 * sessions_place(out, sv, st, server_fd):
 * Create the session of ${st}, and count it in the limits and loads of its listener, client and
 * server, even above them. ${server_fd}: the connection to its server, to compare its address; -1:
 * an echo.
 *
 * sessions_place_leave(sv, s):
 * Undo that; the descriptors are the caller's.
 *
 * Thread: control loop; sessions_place_leave(): or the loop of a worker that has ended
 * Errors: SESSION_STAYS_NOT; _NAME, _CHANGED, _SCARCE
 */
enum session_stay sessions_place(struct session **out, struct server *sv,
                                 const struct session_state *st, int server_fd);
void sessions_place_leave(struct server *sv, struct session *s);

#endif
