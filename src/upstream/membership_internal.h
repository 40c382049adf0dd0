/*
 * upstream/membership_internal: what the parts of the roster know of each other: roster.c (sets,
 * and how they change) and membership_server.c (one server). Private to them. On the control loop,
 * or before it starts and after it has ended.
 */
#ifndef UPSTREAM_MEMBERSHIP_INTERNAL_H
#define UPSTREAM_MEMBERSHIP_INTERNAL_H

#include "upstream/balancer.h"
#include "upstream/membership.h"

/*
 * membership_is_one(conf):
 * Is that line one server for good?
 *
 * Thread: any
 */
static inline bool membership_is_one(const struct upstream_server_conf *conf)
{
    return conf->names == UPSTREAM_LITERAL || conf->names == UPSTREAM_NAME_ONE;
}

/*
 * membership_level(conf, place):
 * On what level a server of that line is at ${place}: a backup is on the last one, whatever the
 * name says.
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
 * The weight of a server of that line at ${place}: 0 if the line gets no sessions.
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
 * One more server of ${line}, at ${place} (without an address: nobody knows yet), which is in no
 * set.
 *
 * Thread: control loop, or before start
 * Owns:   the roster owns it; what is in no set goes with the next membership_sweep()
 * Errors: 0; -ENOMEM
 */
int membership_add_server(struct upstream_server **out, struct membership *r, unsigned line,
                          const struct membership_place *place) NODISCARD;

/*
 * membership_free_server(server) / membership_free_slabs(r):
 * Free a server that is in no list; free, after all servers, what held their loads.
 *
 * Thread: control loop; after the last reader has ended
 */
void membership_free_server(struct upstream_server *server);
void membership_free_slabs(struct membership *r);

#endif
