#include "admin/admin_routes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "admin/route_bans.h"
#include "admin/route_edits.h"
#include "admin/route_figures.h"
#include "admin/route_history.h"
#include "admin/route_page.h"
#include "admin/route_pause.h"
#include "admin/route_process.h"
#include "admin/route_servers.h"
#include "admin/route_sessions.h"
#include "base/must.h"

static const struct admin_routes *const families[] = {
    &route_process, &route_figures, &route_page,    &route_sessions, &route_servers,
    &route_edits,   &route_pause,   &route_history, &route_bans,
};

static void admin_routes_allow(char allow[ADMIN_ROUTE_ALLOW_BYTES], const char *method)
{
    size_t len = strlen(allow);

    snprintf(allow + len, ADMIN_ROUTE_ALLOW_BYTES - len, "%s%s", len > 0 ? ", " : "", method);
}

const struct admin_route *admin_routes_find(const char *path, const char *method,
                                            char allow[ADMIN_ROUTE_ALLOW_BYTES])
{
    allow[0] = '\0';
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        for (unsigned i = 0; i < families[f]->n; i++) {
            const struct admin_route *route = &families[f]->list[i];

            if (strcmp(route->path, path) != 0)
                continue;
            if (strcmp(route->method, method) == 0)
                return route;
            admin_routes_allow(allow, route->method);
        }
    }
    return NULL;
}
