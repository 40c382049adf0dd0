/*
 * handlers/pipeline_plan: the handlers that each session of a listener has, worked out once.
 *
 *   | state of the 1st handler | state of the 2nd | ...      behind the session, in the same allocation
 *
 * A plan does not change after it was made, but for what its handlers share (handler_step.shared). Sessions borrow it.
 */
#ifndef HANDLERS_PIPELINE_PLAN_H
#define HANDLERS_PIPELINE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "handlers/handler_type.h"

struct pipeline_plan;

/*
 * pipeline_plan_type(i) / pipeline_plan_find(name):
 * The kinds of handler there are, one by one; the one called ${name}.
 *
 * Thread: any
 * Errors: NULL (no more; no such kind)
 */
const struct handler_type *pipeline_plan_type(unsigned i);
const struct handler_type *pipeline_plan_find(const char *name);

/*
 * pipeline_plan_wanted(conf):
 * Has a listener with ${conf} any handler: one of the list, or the one for faults?
 *
 * Thread: any
 * Errors: none
 */
bool pipeline_plan_wanted(const struct pipeline_conf *conf);

/*
 * pipeline_plan_create(out, conf, executor):
 * The plan for ${conf}, which may have no handler.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; ${conf} and ${executor} are borrowed
 * Errors: 0; -ENOMEM
 */
int pipeline_plan_create(struct pipeline_plan **out, const struct pipeline_conf *conf,
                         struct executor *executor) MUST_CHECK;

/*
 * pipeline_plan_bytes(p):
 * How much room a session's handlers need; 0 if there are none.
 *
 * Thread: any
 * Units:  bytes
 * Errors: none
 */
size_t pipeline_plan_bytes(const struct pipeline_plan *p);

/*
 * pipeline_plan_add(p, room, ch, host):
 * Add the handlers of ${p} to the pipeline of ${ch}, in order, with their states in ${room}.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${room} (aligned for anything) and ${host} must live as long as ${ch}
 * Errors: none
 */
void pipeline_plan_add(const struct pipeline_plan *p, void *room, struct channel *ch,
                       struct handler_host *host);

/*
 * pipeline_plan_log_stats(p, listener):
 * Write what the handlers of ${p} counted to the log.
 *
 * Thread: any
 * Errors: none
 */
void pipeline_plan_log_stats(const struct pipeline_plan *p, const char *listener);

/*
 * pipeline_plan_destroy(p):
 * Free a plan that no session uses any more; NULL is allowed.
 *
 * Thread: before start or after stop
 * Errors: none
 */
void pipeline_plan_destroy(struct pipeline_plan *p);

#endif
