/*
 * service/proxy_greeting: what a server is told of a client before its first byte: the PROXY header of `send_proxy`.
 */
#ifndef SERVICE_PROXY_GREETING_H
#define SERVICE_PROXY_GREETING_H

struct channel;
struct session;

/*
 * proxy_greeting_send(s, server):
 * Send the header that the upstream of ${s} wants, if it does, to ${server}, which was not written to yet. It tells of the
 * client, and where that connected to: here, or as the proxy says that it came from. The client of a unix socket stands
 * for itself.
 *
 * Thread: loop of ${s}
 * Errors: none; ${server} tells what fails with an event
 */
void proxy_greeting_send(struct session *s, struct channel *server);

#endif
