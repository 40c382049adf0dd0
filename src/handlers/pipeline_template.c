/* handlers/pipeline_template: see pipeline_template.h. */
#include "handlers/pipeline_template.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/fault_handler.h"
#include "handlers/log_handler.h"
#include "handlers/pipeline_conf.h"

struct pipeline_template {
    size_t bytes;
    unsigned n;
    struct handler_step steps[];
};

static const struct handler_type *const types[] = {&log_handler_type, &frame_handler_type,
                                                   &idle_handler_type, &executor_handler_type};

_Static_assert(ARRAY_LEN(types) <= PIPELINE_CONF_HANDLERS, "there is no room for every kind");

const struct handler_type *pipeline_template_type(unsigned i)
{
    return i < ARRAY_LEN(types) ? types[i] : NULL;
}

const struct handler_type *pipeline_template_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i]->name, name) == 0)
            return types[i];
    return NULL;
}

static size_t pipeline_template_round_up(size_t bytes)
{
    return (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
}

static int pipeline_template_put(struct pipeline_template *p, const struct handler_type *type,
                                 const struct pipeline_conf *conf, struct executor *executor)
{
    struct handler_step *step = &p->steps[p->n];

    *step =
        (struct handler_step){.type = type, .conf = conf, .executor = executor, .offset = p->bytes};
    step->shared = calloc(1, type->shared_bytes);
    if (!step->shared && type->shared_bytes > 0)
        return -ENOMEM;
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
                             struct executor *executor)
{
    struct pipeline_template *p = calloc(1, sizeof(*p) + (conf->n + 1) * sizeof(p->steps[0]));
    int rc = 0;

    if (!p)
        return -ENOMEM;
    if (fault_handler_wanted(&conf->fault))
        rc = pipeline_template_put(p, &fault_handler_type, conf, executor);
    for (unsigned i = 0; rc == 0 && i < conf->n; i++)
        rc = pipeline_template_put(p, conf->list[i], conf, executor);
    if (rc < 0) {
        pipeline_template_destroy(p);
        return rc;
    }
    *out = p;
    return 0;
}

size_t pipeline_template_bytes(const struct pipeline_template *p)
{
    return p->bytes;
}

void pipeline_template_add(const struct pipeline_template *p, void *room, struct channel *ch,
                           struct handler_context *context)
{
    memset(room, 0, p->bytes);
    for (unsigned i = 0; i < p->n; i++)
        p->steps[i].type->add((char *)room + p->steps[i].offset, ch, context, &p->steps[i]);
}

void pipeline_template_log_stats(const struct pipeline_template *p, const char *listener)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->steps[i].type->log_stats)
            p->steps[i].type->log_stats(p->steps[i].shared, listener);
}

void pipeline_template_destroy(struct pipeline_template *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->n; i++)
        free(p->steps[i].shared);
    free(p);
}
