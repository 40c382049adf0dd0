/* listen/listeners_limits: listeners that share limits: see struct admission_share. */
#include <string.h>

#include "listen/listener_generation.h"
#include "listen/listener_internal.h"
#include "listen/listeners_internal.h"

static struct admission *listeners_limits_of(const struct listener_generation *gen,
                                             const char *limits)
{
    return gen && gen->conf.limits && strcmp(gen->conf.limits, limits) == 0 ? gen->admission : NULL;
}

struct admission_share listeners_limits_share(const struct listeners_change *change,
                                              const char *limits)
{
    const struct listeners *ls = change->listeners;
    struct admission_share share = {.name = limits};

    if (!limits)
        return share;
    for (unsigned i = 0; !share.with && i < change->n; i++)
        share.with = listeners_limits_of(change->items[i].generation, limits);
    share.is_first = !share.with;
    for (unsigned i = 0; !share.with && i < ls->n; i++)
        share.with =
            listeners_limits_of(atomic_load(&ls->list[i]->current), limits); /* see note: current */
    return share;
}
