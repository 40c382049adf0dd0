/*
 * handlers/pipeline_template: the handlers that each session of a listener has, worked out once.
 *
 *   | state of the 1st handler | state of the 2nd | ...      behind the session, in the same
 *   allocation
 *
 * A plan does not change after it was made, but for what its handlers share (handler_step.shared).
 * Sessions borrow it.
 */
#ifndef HANDLERS_PIPELINE_TEMPLATE_H
#define HANDLERS_PIPELINE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "handlers/handler_type.h"

struct pipeline_template;

/*
 * pipeline_template_type(i) / pipeline_template_find(name):
 * The kinds of handler there are, one by one; the one called ${name}.
 *
 * Thread: any
 * Errors: NULL (no more; no such kind)
 */
const struct handler_type *pipeline_template_type(unsigned i);
const struct handler_type *pipeline_template_find(const char *name);

/*
 * pipeline_template_wanted(conf):
 * Has a listener with ${conf} any handler: one of the list, or the one for faults?
 *
 * Thread: any
 */
bool pipeline_template_wanted(const struct pipeline_conf *conf);

/*
 * pipeline_template_create(out, conf, executor):
 * The plan for ${conf}, which may have no handler.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; ${conf} and ${executor} are borrowed
 * Errors: 0; -ENOMEM
 */
int pipeline_template_create(struct pipeline_template **out, const struct pipeline_conf *conf,
                             struct executor *executor) NODISCARD;

/*
 * pipeline_template_bytes(p):
 * How much room a session's handlers need; 0 if there are none.
 *
 * Thread: any
 * Units:  bytes
 */
size_t pipeline_template_bytes(const struct pipeline_template *p);

/*
 * pipeline_template_add(p, room, ch, host):
 * Add the handlers of ${p} to the pipeline of ${ch}, in order, with their states in ${room}.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${room} (aligned for anything) and ${host} must live as long as ${ch}
 */
void pipeline_template_add(const struct pipeline_template *p, void *room, struct channel *ch,
                           struct handler_context *host);

/*
 * pipeline_template_log_stats(p, listener):
 * Write what the handlers of ${p} counted to the log.
 *
 * Thread: any
 */
void pipeline_template_log_stats(const struct pipeline_template *p, const char *listener);

/*
 * pipeline_template_destroy(p):
 * Free a plan that no session uses any more; NULL is allowed.
 *
 * Thread: before start or after stop
 */
void pipeline_template_destroy(struct pipeline_template *p);

#endif
