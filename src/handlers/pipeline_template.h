/*
 * handlers/pipeline_template: the handlers of a listener's pipeline, and the layout of their
 * states.
 *
 *   | state of the 1st handler | state of the 2nd | ...    behind the session, in one allocation
 *
 * Each generation of a listener has a template, to which its sessions hold references. Only the
 * memory at handler_step.shared changes after creation.
 */
#ifndef HANDLERS_PIPELINE_TEMPLATE_H
#define HANDLERS_PIPELINE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "handlers/handler_type.h"

struct arena;
struct counters_set;
struct figure_object;
struct figure_visitor;
struct handler_state;
struct pipeline_conf;
struct pipeline_template;

/*
 * pipeline_template_type(i) / pipeline_template_find(name):
 * Return the type number ${i}, from 0 / find a type by its name.
 *
 * Errors: NULL (no more types; unknown name)
 */
const struct handler_type *pipeline_template_type(unsigned i);
const struct handler_type *pipeline_template_find(const char *name);

/* pipeline_template_wanted(conf): does ${conf} need any handler, fault injection included? */
bool pipeline_template_wanted(const struct pipeline_conf *conf);

/* pipeline_template_has(conf, name): is the handler ${name} in the list of ${conf}? */
bool pipeline_template_has(const struct pipeline_conf *conf, const char *name);

/*
 * pipeline_template_create(out, conf, memory, executor):
 * Create the template for ${conf}.
 *
 * Owns:   the caller has a reference to ${out}, which copies ${conf} and holds its ${memory};
 *         ${executor} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int pipeline_template_create(struct pipeline_template **out, const struct pipeline_conf *conf,
                             struct arena *memory, struct executor *executor) NODISCARD;

/*
 * pipeline_template_inherit(p, from):
 * Share the counters of handlers of the same types in ${from}, which may be NULL.
 *
 * Thread: any, before other threads can use ${p}
 */
void pipeline_template_inherit(struct pipeline_template *p, const struct pipeline_template *from);

/* pipeline_template_bytes(p): size of the handler states of one session. */
size_t pipeline_template_bytes(const struct pipeline_template *p);

/*
 * pipeline_template_add(p, memory, ch, context):
 * Add the handlers to the pipeline of ${ch}, with their states in ${memory}.
 *
 * Thread: loop of ${ch}
 * Owns:   ${memory} (aligned for anything) and ${context} must live as long as ${ch}
 */
void pipeline_template_add(const struct pipeline_template *p, void *memory, struct channel *ch,
                           struct handler_context *context);

/*
 * pipeline_template_injects_faults(p) / pipeline_template_fits(p, states, n):
 * Does ${p} inject faults, for some clients? / has ${p} the handlers of ${states}, in their order,
 * and injects none? ${p} NULL: no handlers.
 */
bool pipeline_template_injects_faults(const struct pipeline_template *p);
bool pipeline_template_fits(const struct pipeline_template *p, const struct handler_state *states,
                            unsigned n);

/*
 * pipeline_template_add_counters(p, set):
 * Add the handlers' counters to ${set}, so that another process can continue them.
 *
 * Thread: any; ${p} must outlive ${set}
 */
void pipeline_template_add_counters(const struct pipeline_template *p, struct counters_set *set);

/* pipeline_template_figures(p, listener, v): visit the handlers' counters. */
void pipeline_template_figures(const struct pipeline_template *p,
                               const struct figure_object *listener, struct figure_visitor *v);

/*
 * pipeline_template_hold(p) / pipeline_template_release(p):
 * Add a reference and return ${p} / release one: the last frees ${p}. NULL is allowed.
 */
struct pipeline_template *pipeline_template_hold(struct pipeline_template *p);
void pipeline_template_release(struct pipeline_template *p);

#endif
