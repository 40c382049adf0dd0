#include "support/figures.h"

#include <stdlib.h>

#include "listen/listener_generation.h"
#include "listen/listeners.h"
#include "stats/figure_log.h"
#include "upstream/upstream.h"
#include "upstream/upstream_figures.h"

void figures_log_upstream(struct upstream *up)
{
    struct server_set *set = membership_hold_set(&up->membership);

    upstream_figures(up, set, figure_log());
    for (unsigned i = 0; i < set->n; i++)
        upstream_figures_server(up, set->servers[i], figure_log());
    membership_release_set(set);
}

void figures_log_listeners(struct listeners *ls)
{
    unsigned n;
    struct listener_generation **list = listeners_hold_all(ls, &n);

    for (unsigned i = 0; i < n; i++) {
        listener_generation_figures(list[i], figure_log());
        listener_generation_release(list[i]);
    }
    free(list);
}
