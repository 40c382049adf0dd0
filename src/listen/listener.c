#include "listen/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limits/admission.h"
#include "limits/connection_limit.h"
#include "listen/listener_generation.h"
#include "listen/listener_internal.h"

unsigned listener_conf_targets(const struct listener_conf *conf)
{
    unsigned n = 1;

    for (unsigned i = 0; i < conf->n_routes; i++)
        n += route_conf_targets(&conf->routes[i]);
    return n;
}

const char *listener_conf_target(const struct listener_conf *conf, unsigned i)
{
    const struct route_conf *route = conf->routes;

    if (i == 0)
        return conf->upstream;
    for (i--; i >= route_conf_targets(route); route++)
        i -= route_conf_targets(route);
    return route->n_shares > 0 ? route->shares[i].upstream : route->upstream;
}

const struct listener_log_conf *listener_conf_log(const struct listener_conf *conf, unsigned i)
{
    const struct listener_access_log_conf *logs = &conf->access_log;

    if (logs->n_names > 0)
        return i < logs->n_names ? &logs->logs[i] : NULL;
    return i == 0 && logs->own.where && strcmp(logs->own.where, "off") != 0 ? &logs->own : NULL;
}

int listener_create(struct listener **out, const char *name, const struct quota_conf *quota,
                    struct connection_limit *connection_limit)
{
    struct listener *ls = calloc(1, sizeof(*ls));

    if (!ls)
        return -ENOMEM;
    chooser_rounds_init(&ls->rounds);
    ls->name = strdup(name);
    if (!ls->name) {
        free(ls);
        return -ENOMEM;
    }
    ls->connection_limit = connection_limit;
    quota_init(&ls->quota, quota);
    atomic_init(&ls->leave_by_ns, CLOCK_NEVER);
    ref_init(&ls->references);
    *out = ls;
    return 0;
}

const struct service *listener_enter(struct listener *ls, struct admission_ticket *ticket,
                                     const struct address *client)
{
    struct listener_generation *gen = atomic_load(&ls->current); /* see note: current */

    if (!gen)
        return NULL;
    connection_limit_count(ls->connection_limit, &ls->quota);
    *ticket = (struct admission_ticket){.of = NULL};
    admission_carry_over(gen->admission, ticket, client);
    return &listener_generation_hold(gen)->service;
}

void listener_left(const struct service *service)
{
    struct listener_generation *gen = listener_generation_of(service);

    connection_limit_leave(gen->listener->connection_limit, &gen->listener->quota);
    listener_generation_release(gen);
}

struct listener *listener_hold(struct listener *ls)
{
    ref_hold(&ls->references);
    return ls;
}

void listener_release(struct listener *ls)
{
    if (!ref_release(&ls->references))
        return;
    free(ls->name);
    free(ls);
}

const char *listener_name(const struct listener *ls)
{
    return ls->name;
}

struct hold *listener_pause_hold(struct listener *ls)
{
    return &ls->hold;
}
