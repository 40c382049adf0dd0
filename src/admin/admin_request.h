/*
 * admin/admin_request: a request, as its handler sees it.
 */
#ifndef ADMIN_ADMIN_REQUEST_H
#define ADMIN_ADMIN_REQUEST_H

#include <jansson.h>

struct admin;
struct admin_request;
struct loop;
struct server;

/*
 * admin_fields(rq):
 * Return the fields in admin_route.fields: strings from the query (GET) or values from the body
 * (POST). Read them by admin/admin_field.
 *
 * Thread: admin loop
 * Owns:   valid until the answer
 */
json_t *admin_fields(const struct admin_request *rq);

/*
 * admin_server(rq) / admin_loop(rq) / admin_of(rq):
 * The server / the admin loop, for tasks that answer ${rq} / the admin interface.
 *
 * Thread: any, until the answer
 */
struct server *admin_server(const struct admin_request *rq);
struct loop *admin_loop(const struct admin_request *rq);
struct admin *admin_of(const struct admin_request *rq);

/*
 * admin_wait(rq):
 * Stop the timer of request_timeout, because the answer will surely come, but may take long.
 *
 * Thread: admin loop
 */
void admin_wait(struct admin_request *rq);

#endif
