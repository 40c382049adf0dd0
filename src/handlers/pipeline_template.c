#include "handlers/pipeline_template.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/ref.h"
#include "base/arena.h"
#include "handlers/fault_handler.h"
#include "handlers/log_handler.h"
#include "handlers/pipeline_conf.h"
#include "net/handler.h"
#include "stats/counters_set.h"
#include "stats/figure.h"

/* Memory of handler_step.shared; each template that uses it holds a reference. */
struct handler_shared {
    struct ref references;
    max_align_t bytes[];
};

struct pipeline_template {
    struct ref references;
    struct arena *memory;
    struct pipeline_conf conf;
    size_t bytes;
    unsigned n;
    struct handler_step steps[];
};

static const struct {
    const struct handler_type *type;
    size_t conf; /* offset of its settings */
} kinds[] = {
    {&log_handler_type, 0},
    {&frame_handler_type, offsetof(struct pipeline_conf, frame)},
    {&idle_handler_type, offsetof(struct pipeline_conf, idle)},
    {&executor_handler_type, offsetof(struct pipeline_conf, executor)},
};

_Static_assert(ARRAY_LEN(kinds) <= PIPELINE_CONF_HANDLERS, "PIPELINE_CONF_HANDLERS is too small");

const struct handler_type *pipeline_template_type(unsigned i)
{
    return i < ARRAY_LEN(kinds) ? kinds[i].type : NULL;
}

const struct handler_type *pipeline_template_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].type->name, name) == 0)
            return kinds[i].type;
    return NULL;
}

static const void *pipeline_template_settings(const struct pipeline_conf *conf,
                                              const struct handler_type *type)
{
    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].type == type)
            return (const char *)conf + kinds[i].conf;
    return &conf->fault; /* the only one that `pipeline` cannot name */
}

static size_t pipeline_template_round_up(size_t bytes)
{
    return (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
}

static struct handler_shared *pipeline_template_shared(const struct handler_step *step)
{
    return CONTAINER_OF(step->shared, struct handler_shared, bytes);
}

static void pipeline_template_release_shared(const struct handler_step *step)
{
    struct handler_shared *shared = pipeline_template_shared(step);

    if (ref_release(&shared->references))
        free(shared);
}

static int pipeline_template_put(struct pipeline_template *p, const struct handler_type *type,
                                 struct executor *executor)
{
    struct handler_step *step = &p->steps[p->n];
    struct handler_shared *shared = calloc(1, sizeof(*shared) + type->shared_bytes);

    if (!shared)
        return -ENOMEM;
    ref_init(&shared->references);
    *step = (struct handler_step){.type = type,
                                  .conf = pipeline_template_settings(&p->conf, type),
                                  .executor = executor,
                                  .shared = shared->bytes,
                                  .offset = p->bytes};
    p->bytes += pipeline_template_round_up(type->state_bytes);
    p->n++;
    return 0;
}

bool pipeline_template_wanted(const struct pipeline_conf *conf)
{
    return conf->n > 0 || fault_handler_wanted(&conf->fault);
}

bool pipeline_template_has(const struct pipeline_conf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->n; i++)
        if (strcmp(conf->list[i]->name, name) == 0)
            return true;
    return false;
}

int pipeline_template_create(struct pipeline_template **out, const struct pipeline_conf *conf,
                             struct arena *memory, struct executor *executor)
{
    struct pipeline_template *p = calloc(1, sizeof(*p) + (conf->n + 1) * sizeof(p->steps[0]));
    int rc = 0;

    if (!p)
        return -ENOMEM;
    ref_init(&p->references);
    p->conf = *conf;
    p->memory = arena_hold(memory);
    if (fault_handler_wanted(&conf->fault))
        rc = pipeline_template_put(p, &fault_handler_type, executor);
    for (unsigned i = 0; rc == 0 && i < conf->n; i++)
        rc = pipeline_template_put(p, conf->list[i], executor);
    if (rc < 0) {
        pipeline_template_release(p);
        return rc;
    }
    *out = p;
    return 0;
}

size_t pipeline_template_bytes(const struct pipeline_template *p)
{
    return p->bytes;
}

void pipeline_template_add(const struct pipeline_template *p, void *memory, struct channel *ch,
                           struct handler_context *context)
{
    memset(memory, 0, p->bytes);
    for (unsigned i = 0; i < p->n; i++)
        p->steps[i].type->add((char *)memory + p->steps[i].offset, ch, context, &p->steps[i]);
}

bool pipeline_template_injects_faults(const struct pipeline_template *p)
{
    return p && fault_handler_wanted(&p->conf.fault);
}

bool pipeline_template_fits(const struct pipeline_template *p, const struct handler_state *states,
                            unsigned n)
{
    if (pipeline_template_injects_faults(p) || n != (p ? p->n : 0))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (strcmp(p->steps[i].type->name, states[i].name) != 0)
            return false;
    return true;
}

void pipeline_template_add_counters(const struct pipeline_template *p, struct counters_set *set)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->steps[i].type->figures)
            counters_set_add_table(set, p->steps[i].type->figures, p->steps[i].shared);
}

void pipeline_template_figures(const struct pipeline_template *p,
                               const struct figure_object *listener, struct figure_visitor *v)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->steps[i].type->figures)
            figure_show_live(v, p->steps[i].type->figures, listener, NULL, p->steps[i].shared);
}

void pipeline_template_inherit(struct pipeline_template *p, const struct pipeline_template *from)
{
    for (unsigned i = 0; i < p->n; i++)
        for (unsigned j = 0; from && j < from->n; j++) {
            if (p->steps[i].type != from->steps[j].type)
                continue;
            pipeline_template_release_shared(&p->steps[i]);
            p->steps[i].shared = from->steps[j].shared;
            ref_hold(&pipeline_template_shared(&p->steps[i])->references);
        }
}

struct pipeline_template *pipeline_template_hold(struct pipeline_template *p)
{
    if (p)
        ref_hold(&p->references);
    return p;
}

void pipeline_template_release(struct pipeline_template *p)
{
    if (!p || !ref_release(&p->references))
        return;
    for (unsigned i = 0; i < p->n; i++)
        pipeline_template_release_shared(&p->steps[i]);
    arena_release(p->memory);
    free(p);
}
