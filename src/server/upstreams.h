/*
 * server/upstreams: all upstreams of the server, and how a new configuration changes them.
 *
 * An upstream of the same name keeps its servers (upstream/upstream_change). A removed upstream
 * serves its sessions, and is freed after the last user (upstream_hold()).
 *
 *   prepare (creates the new ones) -> complete (builds all server sets) -> commit | cancel
 *
 * Between the steps other tasks may run, such as lookups and first checks. From complete to commit
 * (or cancel) nothing else changes servers.
 */
#ifndef SERVER_UPSTREAMS_H
#define SERVER_UPSTREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct loop;
struct membership_place;
struct server_conf;
struct upstream;
struct upstream_env;
struct upstream_next;
struct upstream_server;
struct upstream_server_conf;
struct upstreams;
struct upstreams_change;

/* Interval of upstreams_sweep() while something is to be freed. */
#define UPSTREAMS_SWEEP_NS INT64_C(1000000000)

/*
 * upstreams_create(out, control, env):
 * Create an empty set, of upstreams with ${env}.
 *
 * Thread: main
 * Owns:   all but ${out} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int upstreams_create(struct upstreams **out, struct loop *control,
                     const struct upstream_env *env) NODISCARD;

/*
 * upstreams_prepare(us, conf, out):
 * Create the new upstreams of ${conf}. One change at a time.
 *
 * Thread: control loop, or main before start
 * Owns:   ${conf} must live until commit or cancel; each upstream holds its section's memory
 *         (upstream_conf.memory)
 * Errors: 0; -ENOMEM; as upstream_create()
 */
int upstreams_prepare(struct upstreams *us, const struct server_conf *conf,
                      struct upstreams_change **out) NODISCARD;

/*
 * upstreams_keep_unchanged(change):
 * Leave upstreams alone whose section is the one in use (upstream_conf.memory).
 *
 * Thread: as upstreams_prepare(), before upstreams_complete()
 */
void upstreams_keep_unchanged(struct upstreams_change *change);

/*
 * upstreams_is_settled(change):
 * Is upstream_change_is_settled() true for all upstreams that ${change} changes?
 *
 * Thread: control loop, before upstreams_complete()
 */
bool upstreams_is_settled(const struct upstreams_change *change);

/*
 * upstreams_find(change, name) / upstreams_next(change, n):
 * In the new configuration: return the upstream ${name} (NULL: not found) / return all upstreams in
 * file order, and set ${n} to their number.
 *
 * Thread: as upstreams_prepare()
 * Owns:   valid until commit or cancel; upstream_hold() keeps an upstream longer
 */
struct upstream *upstreams_find(const struct upstreams_change *change, const char *name);
const struct upstream_next *upstreams_next(const struct upstreams_change *change, unsigned *n);

/* Fill ${places} from the first answer to a new name, as resolver_find_places(). */
typedef unsigned upstreams_places(const void *cookie, const struct upstream *up,
                                  const struct upstream_server_conf *line,
                                  struct membership_place *places);

/*
 * upstreams_complete(change, places, cookie):
 * Build all that the new configuration needs.
 *
 * Thread: as upstreams_prepare()
 * Errors: 0; -ENOMEM; -E2BIG (too many servers)
 */
int upstreams_complete(struct upstreams_change *change, upstreams_places *places,
                       const void *cookie) NODISCARD;

/*
 * upstreams_each_new(change, visit, cookie):
 * After upstreams_complete(): call visit(cookie, i, server, line) as upstream_change_each_new()
 * does, for the upstreams of upstreams_next(), ${i} is the index. Stops at an error.
 *
 * Thread: control loop
 * Errors: 0; as visit()
 */
typedef int upstreams_visit(void *cookie, unsigned i, struct upstream_server *server,
                            const struct upstream_server_conf *line);
int upstreams_each_new(const struct upstreams_change *change, upstreams_visit *visit,
                       void *cookie) NODISCARD;

/*
 * upstreams_commit(change) / upstreams_cancel(change):
 * Use the new configuration from now on, after upstreams_complete() / undo the prepare.
 *
 * Thread: as upstreams_prepare()
 * Owns:   ${change} is freed
 */
void upstreams_commit(struct upstreams_change *change);
void upstreams_cancel(struct upstreams_change *change);

/*
 * upstreams_sweep(us):
 * Free removed upstreams and servers without users; true if some still have users. After a commit
 * the control loop calls it every UPSTREAMS_SWEEP_NS, as long as it returns true.
 *
 * Thread: control loop
 */
bool upstreams_sweep(struct upstreams *us);

/*
 * upstreams_configured(us, name, len):
 * Find the configured upstream by its name of ${len} bytes; NULL: not found.
 *
 * Thread: as upstreams_prepare()
 */
struct upstream *upstreams_configured(const struct upstreams *us, const char *name, size_t len);

/*
 * upstreams_hold_all(us, removed, n):
 * List the upstreams, in the order of the configuration; with ${removed} also removed upstreams
 * that are not freed yet: then several upstreams may have one name.
 *
 * Owns:   the caller releases each of the ${n} upstreams, and frees the list
 * Errors: NULL (out of memory)
 */
struct upstream **upstreams_hold_all(struct upstreams *us, bool removed, unsigned *n);

/*
 * upstreams_each(us, visit, cookie):
 * Call visit(up, cookie) for each upstream, also for removed ones that are not freed yet.
 *
 * Owns:   ${up} is valid during the call
 */
void upstreams_each(struct upstreams *us, void (*visit)(struct upstream *up, void *cookie),
                    void *cookie);

/*
 * upstreams_destroy(us):
 * Free ${us} and all upstreams; NULL is allowed.
 *
 * Thread: main, while no loop runs and no session is left
 */
void upstreams_destroy(struct upstreams *us);

#endif
