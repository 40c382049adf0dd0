/* server/spares: the workers' pools of spare connections to servers. */
#ifndef SERVER_SPARES_H
#define SERVER_SPARES_H

#include "base/must.h"

struct loop_group;
struct loop_group_change;
struct server_conf;
struct spares;
struct upstream;
struct worker;

/*
 * spares_create(out, conf, upstreams, loops, workers):
 * Create a pool for each worker, if a listener of ${conf} uses an upstream with spares.
 *
 * Thread: before start
 * Owns:   ${upstreams} and ${workers} are borrowed
 * Errors: 0; -ENOMEM
 */
int spares_create(struct spares **out, const struct server_conf *conf,
                  struct upstream *const *upstreams, const struct loop_group *loops,
                  struct worker *const *workers) NODISCARD;

/*
 * spares_prepare(s, change) / spares_cancel(s, change):
 * Create the pools of new workers / undo that.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spares_prepare(struct spares *s, const struct loop_group_change *change) NODISCARD;
void spares_cancel(struct spares *s, const struct loop_group_change *change);

/*
 * spares_refill(s):
 * Let every pool open missing connections, or close surplus ones. Starts the workers' threads.
 *
 * Thread: any
 */
void spares_refill(const struct spares *s);

/*
 * spares_destroy(s):
 * Free ${s} or NULL.
 *
 * Thread: main, while no worker runs
 */
void spares_destroy(struct spares *s);

#endif
