/* upstream/membership_change_internal: a change, for membership_change.c and its neighbour. */
#ifndef UPSTREAM_MEMBERSHIP_CHANGE_INTERNAL_H
#define UPSTREAM_MEMBERSHIP_CHANGE_INTERNAL_H

#include "upstream/membership_change.h"
#include "upstream/membership_internal.h"
#include "upstream/server_lines.h"

/* A server of the new set, or a removed server that is kept outside the set. */
struct membership_next {
    struct upstream_server *server;
    unsigned position;      /* of its line */
    unsigned weight, level; /* from its place */
    bool is_new;
    bool is_wanted; /* in the set */
    bool was_listed;
    struct server_line *before;
    struct upstream_spare *spare; /* new, for ${server}; NULL: it needs none, or has one */
};

struct membership_change {
    struct membership *r;
    const struct upstream_conf *conf;
    struct server_lines lines; /* new lines; after commit: the replaced lines */
    struct membership_next *list;
    unsigned n, capacity;
    struct server_set *set;
    struct server_set *before; /* after commit: the replaced set */
};

/*
 * membership_change_share(ch, next):
 * Return weight, level and limit of ${next} in the new set.
 *
 * Thread: control loop
 */
struct balancer_share membership_change_share(const struct membership_change *ch,
                                              const struct membership_next *next);

#endif
