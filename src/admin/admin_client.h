/*
 * admin/admin_client: a connection to the admin interface: its peer and its deadlines.
 *
 * At the deadline of a request the socket is shut down; libmicrohttpd, its owner, then closes it.
 *
 * TCP and unix sockets have max_connections places each. Above it, idle connections are closed for
 * new ones. If none is idle, ADMIN_CONNECTIONS_EXTRA further connections are accepted for a second
 * each: they get 503, except for routes without a token, such as /healthz. But a request with the
 * token takes the place of the oldest TCP connection that has not shown the token; and so does a
 * new connection when even the further places are taken.
 */
#ifndef ADMIN_ADMIN_CLIENT_H
#define ADMIN_ADMIN_CLIENT_H

#include <stdbool.h>

struct address;
struct admin;
struct admin_client;

/* admin_client_may_accept(a, is_unix): may another connection be accepted? Thread: admin loop */
bool admin_client_may_accept(struct admin *a, bool is_unix);

/*
 * admin_client_take_place(c):
 * Give ${c}, which is above max_connections and has shown the token, the place of the oldest
 * connection that has not; false: there is none.
 *
 * Thread: admin loop
 */
bool admin_client_take_place(struct admin_client *c);

/*
 * admin_client_accepted(a, fd, peer):
 * Serve the new connection ${fd}; without memory, close ${fd}.
 *
 * Thread: admin loop
 * Owns:   takes ${fd}
 */
void admin_client_accepted(struct admin *a, int fd, const struct address *peer);

/*
 * admin_client_begun(a, fd) / admin_client_closed(c):
 * Called by admin/admin_http: return the client of ${fd}, whose service begins / free ${c}, whose
 * socket is about to be closed.
 *
 * Thread: admin loop, or main after its end
 */
struct admin_client *admin_client_begun(struct admin *a, int fd);
void admin_client_closed(struct admin_client *c);

/*
 * admin_client_restart(c) / admin_client_wait(c):
 * Restart the timer of the deadline / stop the timer.
 *
 * Thread: admin loop, or main after its end
 */
void admin_client_restart(struct admin_client *c);
void admin_client_wait(struct admin_client *c);

/*
 * admin_client_is_last(c):
 * Is the connection closed after the request under way?
 *
 * Thread: admin loop
 */
bool admin_client_is_last(const struct admin_client *c);

/*
 * admin_client_close_idle(a):
 * Close the connections that wait between requests.
 *
 * Thread: admin loop
 */
void admin_client_close_idle(struct admin *a);

/*
 * admin_client_look_finished(a):
 * If ${a} is closing and has no connection, complete `finished`.
 *
 * Thread: admin loop
 */
void admin_client_look_finished(struct admin *a);

/*
 * admin_client_pending(a):
 * Number of requests whose handler has not answered.
 *
 * Thread: admin loop, or main after its end
 */
unsigned admin_client_pending(const struct admin *a);

#endif
