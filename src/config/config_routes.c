#include "config/config_routes.h"

#include <stdio.h>
#include <string.h>

#include "config/config_section.h"
#include "config/diagnostics.h"
#include "listen/listener.h"

bool config_routes_wanted(const struct config_section *section)
{
    const struct option *o = option_find(OPTION_LISTEN, "route.ID");

    for (unsigned i = 0; section->source && i < section->source->n_entries; i++)
        if (option_matches(o, section->source->entries[i].key))
            return true;
    return false;
}

const struct ini_entry *config_routes_entry(const struct config_section *section,
                                            const struct route_conf *route)
{
    char key[INI_NAME_BYTES + 1];

    snprintf(key, sizeof(key), "route.%s", route->id);
    return config_section_entry(section, key);
}

static bool config_routes_has(const char *const *list, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

/* Does ${route} have ${name}? Empty ${name}: does it have no names? */
static bool config_routes_has_name(const struct route_conf *route, const char *name)
{
    return *name == '\0' ? route->n_names == 0
                         : config_routes_has(route->names, route->n_names, name);
}

/* Does ${earlier} take all clients that ${later} could, for a name that both have? */
static bool config_routes_hides(const struct route_conf *earlier, const struct route_conf *later)
{
    if (earlier->n_protocols == 0)
        return true;
    for (unsigned i = 0; i < later->n_protocols; i++)
        if (!config_routes_has(earlier->protocols, earlier->n_protocols, later->protocols[i]))
            return false;
    return later->n_protocols > 0;
}

static void config_routes_check_name(const struct config_section *section, unsigned later,
                                     const char *name, struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    const struct route_conf *route = &conf->routes[later];

    for (unsigned i = 0; i < later; i++) {
        const struct route_conf *earlier = &conf->routes[i];

        if (!config_routes_has_name(earlier, name) || !config_routes_hides(earlier, route))
            continue;
        diagnostics_add(diagnostics, config_routes_entry(section, route)->line,
                        "[%s] route.%s: has no effect for %s%s: route.%s of %s comes first (each "
                        "name once, or with other protocols)",
                        section->source->name, route->id, *name != '\0' ? "sni:" : "its protocols",
                        name, earlier->id,
                        DIAGNOSTICS_LINE(diagnostics, config_routes_entry(section, earlier)->line));
        return;
    }
}

void config_routes_check(const struct config_section *section, struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;

    for (unsigned i = 0; i < conf->n_routes; i++) {
        const struct route_conf *route = &conf->routes[i];

        for (unsigned j = 0; j < route->n_names; j++)
            config_routes_check_name(section, i, route->names[j], diagnostics);
        if (route->n_names == 0)
            config_routes_check_name(section, i, "", diagnostics);
    }
}
