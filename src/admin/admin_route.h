/*
 * admin/admin_route: what a family of routes (admin/route_*.c) declares, for admin/admin_routes.c.
 */
#ifndef ADMIN_ADMIN_ROUTE_H
#define ADMIN_ADMIN_ROUTE_H

struct admin_request;

enum admin_access {
    ADMIN_OPEN,  /* answered without a token, and above max_connections */
    ADMIN_READ,  /* needs the token, over TCP */
    ADMIN_ACTION /* changes something: logged, refused with `write = no` */
};

struct admin_route {
    const char *method; /* GET also serves HEAD */
    const char *path;
    enum admin_access access;
    /* Names allowed in the query of a GET and in the body of a POST; NULL ends them; NULL: none. */
    const char *const *fields;
    /*
     * Answer ${rq} once, with a function of admin/admin_answer: inside this call, or later on the
     * admin loop (admin_loop()).
     */
    void (*handle)(struct admin_request *rq);
};

struct admin_routes {
    const struct admin_route *list;
    unsigned n;
};

#endif
