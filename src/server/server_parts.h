/* server/server_parts: parts of a server that the layers above read and change. */
#ifndef SERVER_SERVER_PARTS_H
#define SERVER_SERVER_PARTS_H

struct listeners;
struct loop;
struct resolver;
struct server;
struct upstreams;

struct loop_group;
struct worker;

struct server_parts {
    struct loop *control; /* changes the others; before server_start() main does */
    struct listeners *listeners;
    struct upstreams *upstreams;
    struct resolver *resolver;
    struct loop_group *loops; /* of the workers */
    struct worker **workers;  /* by loop number */
};

/* server_parts(sv): return the parts of ${sv}, which live as long as it. */
struct server_parts server_parts(const struct server *sv);

#endif
