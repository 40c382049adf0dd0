/*
 * admin/admin_dispatch: checks a request and calls its handler, for admin/admin_http.
 *
 *   READING --head: checks--> READING --body--> HANDLING --admin_answer_*()--> ANSWERED
 *                  \--refused--> ANSWERED, and the body is dropped
 */
#ifndef ADMIN_ADMIN_DISPATCH_H
#define ADMIN_ADMIN_DISPATCH_H

#include <stddef.h>

struct admin_client;
struct admin_head;
struct admin_request;

/*
 * admin_dispatch_begin(c, uri):
 * Create the request of ${c} for ${uri}, the path and query as sent; NULL: out of memory.
 *
 * Thread: admin loop
 */
struct admin_request *admin_dispatch_begin(struct admin_client *c, const char *uri);

/*
 * admin_dispatch_head(rq, head):
 * Check where the request comes from, and find its route; answer the request if it is refused.
 *
 * Thread: admin loop
 * Owns:   ${head} is used during the call only
 */
void admin_dispatch_head(struct admin_request *rq, const struct admin_head *head);

/*
 * admin_dispatch_body(rq, data, n):
 * Add ${n} bytes to the body; if ${rq} is answered already, drop them.
 *
 * Thread: admin loop
 */
void admin_dispatch_body(struct admin_request *rq, const char *data, size_t n);

/*
 * admin_dispatch_handle(rq):
 * Check the fields of the complete request, and call its handler.
 *
 * Thread: admin loop
 */
void admin_dispatch_handle(struct admin_request *rq);

/*
 * admin_dispatch_end(rq):
 * Free ${rq}, after its answer was sent or its connection has ended.
 *
 * Thread: admin loop, or main after its end
 */
void admin_dispatch_end(struct admin_request *rq);

#endif
