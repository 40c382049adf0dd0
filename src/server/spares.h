/*
 * server/spares: which workers keep spare connections to the servers of which upstreams.
 */
#ifndef SERVER_SPARES_H
#define SERVER_SPARES_H

#include "base/must.h"

struct loop_group;
struct server_conf;
struct spares;
struct upstream;
struct worker;

/*
 * spares_create(out, conf, upstreams, loops, workers):
 * A pool for each of ${workers}, one for each of ${loops}, if any of ${upstreams} is to have
 * spares; none is opened yet. An upstream that no listener of ${conf} leads to is not used, and has
 * none.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; the upstreams and workers are borrowed
 * Errors: 0; -ENOMEM
 */
int spares_create(struct spares **out, const struct server_conf *conf,
                  struct upstream *const *upstreams, const struct loop_group *loops,
                  struct worker *const *workers) NODISCARD;

/*
 * spares_look(s):
 * Have every pool open what it is to keep, and close what others need. This starts the threads of
 * the workers, if there are any pools.
 *
 * Thread: any
 */
void spares_look(const struct spares *s);

/*
 * spares_destroy(s):
 * Free it; NULL is allowed.
 *
 * Thread: main, after the workers have ended or were never started
 */
void spares_destroy(struct spares *s);

#endif
