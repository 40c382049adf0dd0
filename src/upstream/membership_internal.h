/* upstream/membership_internal: shared by membership.c and membership_server.c. */
#ifndef UPSTREAM_MEMBERSHIP_INTERNAL_H
#define UPSTREAM_MEMBERSHIP_INTERNAL_H

#include "balance/balancer.h"
#include "upstream/membership.h"
#include "upstream/server_line.h"

struct upstream_conf;

/*
 * membership_is_one(conf) / membership_level(conf, place) / membership_weight(line, server, place):
 * membership_is_one: does the line have only one server? (literal address, resolve=one, disabled)
 * membership_level: level of a server at ${place}; backups have the last.
 * membership_weight: weight of ${server} at ${place} in ${line}; 0 if it is disabled, draining or
 * has weight 0.
 *
 * Thread: any; membership_weight(): control loop, or main before start
 */
static inline bool membership_is_one(const struct upstream_server_conf *conf)
{
    return conf->names == UPSTREAM_LITERAL || conf->names == UPSTREAM_NAME_ONE || conf->disabled;
}

static inline unsigned membership_level(const struct upstream_server_conf *conf,
                                        const struct membership_place *place)
{
    return conf->backup ? BALANCER_LEVELS - 1 : place->level;
}

static inline unsigned membership_weight(const struct server_line *line,
                                         const struct upstream_server *server,
                                         const struct membership_place *place)
{
    return server_line_own_weight(line, server->name, place->weight);
}

/*
 * membership_create_server(out, r, line, place) / membership_add_server(out, r, position, place):
 * Create a server of ${line} at ${place} (n == 0: unresolved), in no set / of the line at
 * ${position}, and add it to ${r}.
 *
 * Thread: control loop, or main before start
 * Owns:   the caller owns a created ${out}; ${r} owns an added ${out}, and membership_sweep() frees
 *         it unless it gets into a set
 * Errors: 0; -ENOMEM
 */
int membership_create_server(struct upstream_server **out, struct membership *r,
                             struct server_line *line,
                             const struct membership_place *place) NODISCARD;
int membership_add_server(struct upstream_server **out, struct membership *r, unsigned position,
                          const struct membership_place *place) NODISCARD;

/*
 * membership_is_at(server, place):
 * Does ${server} have the addresses of ${place}?
 *
 * Thread: control loop
 */
bool membership_is_at(const struct upstream_server *server, const struct membership_place *place);

struct membership_wanted {
    struct upstream_server **servers;
    struct balancer_share *shares; /* NULL: see balancer_conf.shares */
    unsigned n;
};

/*
 * membership_build_set(out, r, conf, wanted) / membership_free_set(set):
 * Build a set, with the balancer of ${conf} / free a set, or NULL.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -ENOMEM; -E2BIG (over BALANCER_MAX_ENDPOINTS)
 */
int membership_build_set(struct server_set **out, struct membership *r,
                         const struct upstream_conf *conf,
                         const struct membership_wanted *wanted) NODISCARD;
void membership_free_set(struct server_set *set);

/*
 * membership_reset_returning(r) / membership_publish(r, set) / membership_note_changes(r):
 * The steps of a change, in this order, after `is_wanted` was set: reset flags of returning servers
 * / replace the set and return the old one / report to the watch.
 *
 * Thread: control loop, or main before start
 */
void membership_reset_returning(struct membership *r);
struct server_set *membership_publish(struct membership *r, struct server_set *set);
void membership_note_changes(struct membership *r);

/*
 * membership_replace_set(r):
 * Publish a set of the wanted servers, with their weights.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -ENOMEM; -E2BIG
 */
int membership_replace_set(struct membership *r) NODISCARD;

/*
 * membership_warm(r, server):
 * Begin the slow start of an added server, if configured.
 *
 * Thread: control loop
 */
void membership_warm(const struct membership *r, struct upstream_server *server);

/*
 * membership_bring_in(r, server, line):
 * Begin the slow start of ${server}, which is about to get a weight above 0, by ${line}; if it is
 * disabled and a check must pass first, set ENDPOINT_DOWN.
 *
 * Thread: control loop, before sessions can come and `is_disabled` changes
 */
void membership_bring_in(const struct membership *r, struct upstream_server *server,
                         const struct server_line *line);

/* membership_set_unseen(set): record that no worker sees ${set}, a struct server_set, any more. */
void membership_set_unseen(void *set);

/*
 * membership_free_server(server) / membership_free_slabs(r):
 * Free ${server} / free all slabs, after the servers.
 *
 * Thread: control loop, or main while it does not run
 */
void membership_free_server(struct upstream_server *server);
void membership_free_slabs(struct membership *r);

#endif
