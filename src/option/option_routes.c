#include "option/option_routes.h"

#include <stdio.h>
#include <string.h>

#include "option/section.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"

bool option_routes_wanted(const struct section *section)
{
    const struct option *o = option_find(OPTION_LISTEN, "route.ID");

    for (unsigned i = 0; section->source && i < section->source->n_entries; i++)
        if (option_matches(o, section->source->entries[i].key))
            return true;
    return false;
}

bool option_routes_refuse(const struct listener_conf *conf)
{
    for (unsigned i = 0; i < conf->n_routes; i++)
        if (!conf->routes[i].upstream)
            return true;
    return false;
}

const struct ini_entry *option_routes_entry(const struct section *section,
                                            const struct route_conf *route)
{
    char key[INI_NAME_BYTES + 1];

    snprintf(key, sizeof(key), "route.%s", route->id);
    return section_entry(section, key);
}

static bool option_routes_has(const char *const *list, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

/* Does ${route} have ${name}? Empty ${name}: does it have no names? */
static bool option_routes_has_name(const struct route_conf *route, const char *name)
{
    return *name == '\0' ? route->n_names == 0
                         : option_routes_has(route->names, route->n_names, name);
}

/* Without `src:` a route takes each client. */
static struct cidr_list option_routes_clients(const struct route_conf *route)
{
    static struct cidr all[] = {{.len = 4}, {.len = 16}, {.len = 0}};

    return route->clients.n > 0 ? route->clients : (struct cidr_list){all, ARRAY_LEN(all)};
}

static bool option_routes_covers_clients(const struct route_conf *earlier,
                                         const struct route_conf *later)
{
    struct cidr_list a = option_routes_clients(earlier), b = option_routes_clients(later);

    for (unsigned i = 0; i < b.n; i++) {
        unsigned j = 0;

        while (j < a.n && !cidr_covers(&a.list[j], &b.list[i]))
            j++;
        if (j == a.n)
            return false;
    }
    return true;
}

static bool option_routes_covers_protocols(const struct route_conf *earlier,
                                           const struct route_conf *later)
{
    for (unsigned i = 0; i < later->n_protocols; i++)
        if (!option_routes_has(earlier->protocols, earlier->n_protocols, later->protocols[i]))
            return false;
    return later->n_protocols > 0;
}

static bool option_routes_covers_first(const struct route_conf *earlier,
                                       const struct route_conf *later)
{
    for (unsigned i = 0; i < later->n_first; i++) {
        const struct route_first *first = &later->first[i];
        unsigned j = 0;

        while (j < earlier->n_first &&
               (earlier->first[j].n > first->n ||
                memcmp(earlier->first[j].at, first->at, earlier->first[j].n) != 0))
            j++;
        if (j == earlier->n_first)
            return false;
    }
    return later->n_first > 0;
}

/* Does ${route} come before ${other}? A shorter `after:` is over sooner. */
static bool option_routes_precedes(const struct route_conf *route, const struct route_conf *other)
{
    return route->after_ns > 0 && other->after_ns > 0 && route->after_ns != other->after_ns
               ? route->after_ns < other->after_ns
               : route < other;
}

/* Does ${earlier} hold for all clients of ${later}, for a name that both have? */
static bool option_routes_hides(const struct route_conf *earlier, const struct route_conf *later)
{
    return option_routes_covers_clients(earlier, later) &&
           (earlier->n_protocols == 0 || option_routes_covers_protocols(earlier, later)) &&
           (earlier->n_first == 0 || option_routes_covers_first(earlier, later)) &&
           (earlier->tls == 0 || (later->tls != 0 && (later->tls & ~earlier->tls) == 0)) &&
           (earlier->after_ns == 0 || later->after_ns > 0);
}

static const char *option_routes_what(const struct route_conf *route, const char *name)
{
    if (*name != '\0')
        return " for sni:";
    return route->n_protocols > 0 && route->n_first == 0 && route->clients.n == 0 && route->tls == 0
               ? " for its protocols"
               : "";
}

static void option_routes_check_name(const struct section *section, const struct route_conf *route,
                                     const char *name, struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;

    for (unsigned i = 0; i < conf->n_routes; i++) {
        const struct route_conf *earlier = &conf->routes[i];

        if (!option_routes_precedes(earlier, route) || !option_routes_has_name(earlier, name) ||
            !option_routes_hides(earlier, route))
            continue;
        diagnostics_add(diagnostics, option_routes_entry(section, route)->line,
                        "[%s] route.%s: has no effect%s%s: route.%s of %s comes first (each "
                        "name once, or with other conditions)",
                        section->source->name, route->id, option_routes_what(route, name), name,
                        earlier->id,
                        DIAGNOSTICS_LINE(diagnostics, option_routes_entry(section, earlier)->line));
        return;
    }
}

/* With TLS at the listener, routes are chosen after the handshake. */
static void option_routes_check_tls(const struct section *section, const struct route_conf *route,
                                    struct diagnostics *diagnostics)
{
    const char *condition = route->n_first > 0                 ? "first:"
                            : route->after_ns > 0              ? "after:"
                            : (route->tls & ROUTE_TLS_NO) != 0 ? "tls:no"
                                                               : NULL;

    if (condition)
        diagnostics_add(diagnostics, option_routes_entry(section, route)->line,
                        "[%s] route.%s: %s never holds with tls: all clients begin with TLS "
                        "(sni:, alpn:, src:, tls:1.2 or tls:1.3)",
                        section->source->name, route->id, condition);
}

/* Report what ends a client that sends nothing before `after:` is over, or keeps it waiting. */
static void option_routes_check_after(const struct section *section, const struct route_conf *route,
                                      struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    const struct {
        const char *name;
        int64_t ns;
    } ends[] = {{"client_hello_timeout", conf->client_hello_timeout_ns},
                {"idle_timeout", conf->session.idle_timeout_ns},
                {"max_lifetime", conf->session.max_lifetime_ns}};
    unsigned line = option_routes_entry(section, route)->line;

    if (route->after_ns == 0)
        return;
    if (conf->session.connect_on == SESSION_CONNECT_ON_FIRST_BYTE)
        diagnostics_add(diagnostics, line,
                        "[%s] route.%s: after: never holds with connect_on = first_byte: no "
                        "server is connected for a client that has sent nothing (set connect_on "
                        "= accept)",
                        section->source->name, route->id);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (ends[i].ns > 0 && ends[i].ns <= route->after_ns)
            diagnostics_add(diagnostics, line,
                            "[%s] route.%s: after: never holds: %s ends a client that has sent "
                            "nothing before (a shorter time, or a longer %s)",
                            section->source->name, route->id, ends[i].name, ends[i].name);
}

void option_routes_check(const struct section *section, struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;

    for (unsigned i = 0; i < conf->n_routes; i++) {
        const struct route_conf *route = &conf->routes[i];

        for (unsigned j = 0; j < route->n_names; j++)
            option_routes_check_name(section, route, route->names[j], diagnostics);
        if (route->n_names == 0)
            option_routes_check_name(section, route, "", diagnostics);
        if (conf->tls.n_names > 0)
            option_routes_check_tls(section, route, diagnostics);
        else
            option_routes_check_after(section, route, diagnostics);
    }
}
