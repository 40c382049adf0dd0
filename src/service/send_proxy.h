/*
 * service/send_proxy: what a server is told of a client before its first byte: the PROXY header of
 * `send_proxy`.
 */
#ifndef SERVICE_SEND_PROXY_H
#define SERVICE_SEND_PROXY_H

struct channel;
struct session;

/*
 * send_proxy_send(s, server):
 * Send the header that the upstream of ${s} wants, if it does, to ${server}, which was not written
 * to yet. It tells of the client, and where that connected to: here, or as the proxy says that it
 * came from. The client of a unix socket stands for itself.
 *
 * Thread: loop of ${s}
 * Errors: none; ${server} tells what fails with an event
 */
void send_proxy_send(struct session *s, struct channel *server);

#endif
