/*
 * admin/admin_route: routes, as a file admin/route_*.c declares them for admin/admin_routes.c.
 */
#ifndef ADMIN_ADMIN_ROUTE_H
#define ADMIN_ADMIN_ROUTE_H

struct admin_request;

enum admin_access {
    ADMIN_OPEN,  /* answered without a token, and above max_connections */
    ADMIN_READ,  /* needs the token, over TCP */
    ADMIN_ACTION /* as ADMIN_READ, but changes something: logged; refused if `write = no` */
};

struct admin_route {
    const char *method; /* GET also serves HEAD */
    const char *path;
    enum admin_access access;
    /* Allowed fields in the query of a GET or the body of others, ended by NULL; NULL: none. */
    const char *const *fields;
    /* Answer ${rq} once, by admin/admin_answer: inside this call, or later on the admin loop. */
    void (*handle)(struct admin_request *rq);
};

/* Space for the methods of a path, as in the header field Allow. */
#define ADMIN_ROUTE_ALLOW_BYTES 32

struct admin_routes {
    const struct admin_route *list;
    unsigned n;
};

#endif
