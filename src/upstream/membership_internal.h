/* upstream/membership_internal: shared by membership.c and membership_server.c. */
#ifndef UPSTREAM_MEMBERSHIP_INTERNAL_H
#define UPSTREAM_MEMBERSHIP_INTERNAL_H

#include "upstream/balancer.h"
#include "upstream/membership.h"

/*
 * membership_is_one(conf):
 * Is the line one server for good?
 *
 * Thread: any
 */
static inline bool membership_is_one(const struct upstream_server_conf *conf)
{
    return conf->names == UPSTREAM_LITERAL || conf->names == UPSTREAM_NAME_ONE || conf->disabled;
}

/*
 * membership_level(conf, place):
 * Level of a server; backups are always on the last one.
 *
 * Thread: any
 */
static inline unsigned membership_level(const struct upstream_server_conf *conf,
                                        const struct membership_place *place)
{
    return conf->backup ? BALANCER_LEVELS - 1 : place->level;
}

/*
 * membership_weight(conf, place):
 * Weight of a server; 0 if its line is unused.
 *
 * Thread: any
 */
static inline unsigned membership_weight(const struct upstream_server_conf *conf,
                                         const struct membership_place *place)
{
    return upstream_server_is_used(conf) ? place->weight : 0;
}

/*
 * membership_add_server(out, r, line, place):
 * Create a server at ${place} (may be unresolved), in no set yet.
 *
 * Thread: control loop, or before start
 * Owns:   ${r} owns it; membership_sweep() frees it unless a set gets it
 * Errors: 0; -ENOMEM
 */
int membership_add_server(struct upstream_server **out, struct membership *r, unsigned line,
                          const struct membership_place *place) NODISCARD;

/*
 * membership_free_server(server) / membership_free_slabs(r):
 * Free an unlinked server; all slabs, after the servers.
 *
 * Thread: control loop; after the last reader has ended
 */
void membership_free_server(struct upstream_server *server);
void membership_free_slabs(struct membership *r);

#endif
