/* server/proxy_loop: see proxy_loop.h. */
#include "server/proxy_loop.h"

#include <string.h>

#include "server/server.h"

static bool proxy_loop_names(const char *name, const struct upstream_conf *up)
{
    return name && strcmp(name, up->name) == 0;
}

static bool proxy_loop_is_mirror(const struct server_conf *conf, const struct upstream_conf *up)
{
    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (proxy_loop_names(conf->listeners[i].mirror, up))
            return true;
    return false;
}

bool proxy_loop_is(const struct server_conf *conf, const struct upstream_conf *up,
                   const struct address *a)
{
    bool mirror = proxy_loop_is_mirror(conf, up);

    for (unsigned i = 0; i < conf->n_listeners; i++) {
        const struct listener_conf *listener = &conf->listeners[i];

        if (!mirror && !proxy_loop_names(listener->upstream, up))
            continue;
        for (unsigned j = 0; j < listener->n_addresses; j++)
            if (address_covers(&listener->addresses[j], a))
                return true;
    }
    return false;
}
