/*
 * upstream/roster_internal: what the parts of the roster know of each other: roster.c (sets, and how they change) and
 * roster_server.c (one server). Private to them. On the control loop, or before it starts and after it has ended.
 */
#ifndef UPSTREAM_ROSTER_INTERNAL_H
#define UPSTREAM_ROSTER_INTERNAL_H

#include "upstream/balancer.h"
#include "upstream/roster.h"

/*
 * roster_is_one(conf):
 * Is that line one server for good?
 *
 * Thread: any
 * Errors: none
 */
static inline bool roster_is_one(const struct upstream_server_conf *conf)
{
    return conf->names == UPSTREAM_LITERAL || conf->names == UPSTREAM_NAME_ONE;
}

/*
 * roster_level(conf, place):
 * On what level a server of that line is at ${place}: a backup is on the last one, whatever the name says.
 *
 * Thread: any
 * Errors: none
 */
static inline unsigned roster_level(const struct upstream_server_conf *conf,
                                    const struct roster_place *place)
{
    return conf->backup ? BALANCER_LEVELS - 1 : place->level;
}

/*
 * roster_add_server(out, r, line, place):
 * One more server of ${line}, at ${place} (without an address: nobody knows yet), which is in no set.
 *
 * Thread: control loop, or before start
 * Owns:   the roster owns it; what is in no set goes with the next roster_sweep()
 * Errors: 0; -ENOMEM
 */
int roster_add_server(struct upstream_server **out, struct roster *r, unsigned line,
                      const struct roster_place *place) MUST_CHECK;

/*
 * roster_free_server(server) / roster_free_slabs(r):
 * Free a server that is in no list; free, after all servers, what held their loads.
 *
 * Thread: control loop; after the last reader has ended
 * Errors: none
 */
void roster_free_server(struct upstream_server *server);
void roster_free_slabs(struct roster *r);

#endif
