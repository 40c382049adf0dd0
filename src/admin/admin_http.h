/*
 * admin/admin_http: HTTP by libmicrohttpd, on the admin loop.
 *
 * libmicrohttpd has no thread: the loop watches its epoll descriptor and waits for its timeouts.
 * admin/admin_client passes accepted connections to libmicrohttpd.
 *
 * Source: libmicrohttpd(3), MHD_USE_EPOLL with MHD_USE_NO_LISTEN_SOCKET and MHD_run()
 */
#ifndef ADMIN_ADMIN_HTTP_H
#define ADMIN_ADMIN_HTTP_H

#include <stddef.h>

#include "base/must.h"

struct address;
struct admin;
struct admin_client;
struct admin_head;
struct admin_http;
struct admin_request;

/* What is done with requests; called on the admin loop. */
struct admin_http_ops {
    /* Return a request of ${c} for ${uri}, the path and query as sent; NULL: out of memory. */
    struct admin_request *(*begin)(struct admin_client *c, const char *uri);
    /* The head is complete; ${head} is used during the call only. */
    void (*head)(struct admin_request *rq, const struct admin_head *head);
    /* ${n} more bytes of the body. */
    void (*body)(struct admin_request *rq, const char *data, size_t n);
    /* ${rq} is complete, and not answered yet. */
    void (*handle)(struct admin_request *rq);
    /* Free ${rq}: its answer was sent or its connection has ended. Also on main, after the loop. */
    void (*end)(struct admin_request *rq);
};

/*
 * admin_http_create(out, a, ops):
 * Create a libmicrohttpd daemon.
 *
 * Thread: main
 * Errors: 0; -ENOMEM (also if no descriptor is free)
 */
int admin_http_create(struct admin_http **out, struct admin *a,
                      const struct admin_http_ops *ops) NODISCARD;

/* admin_http_start(h): watch the connections. Thread: admin loop */
void admin_http_start(struct admin_http *h);

/*
 * admin_http_add(h, fd, peer):
 * Serve the connection ${fd}: call admin_client_begun(), and admin_client_closed() at its end.
 * Without memory, close ${fd} and call neither.
 *
 * Thread: admin loop
 * Owns:   takes ${fd}, in any case
 */
void admin_http_add(struct admin_http *h, int fd, const struct address *peer);

/* admin_http_resume(h, rq): send the answer of the suspended ${rq}. Thread: admin loop */
void admin_http_resume(struct admin_http *h, struct admin_request *rq);

/* admin_http_stop(h): stop watching the connections. Thread: admin loop */
void admin_http_stop(struct admin_http *h);

/*
 * admin_http_destroy(h):
 * Close all connections and free ${h}; NULL is ignored.
 *
 * Thread: main, when the loop has ended
 */
void admin_http_destroy(struct admin_http *h);

#endif
