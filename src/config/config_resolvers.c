#include "config/config_resolvers.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "config/config_memory.h"
#include "config/config_names.h"
#include "ini/diagnostics.h"
#include "net/name_servers.h"
#include "upstream/upstream.h"

#define CONFIG_RESOLVERS_LOOKUP_NS (60 * NS_PER_S)

static const struct name_servers_conf *config_resolvers_find(const struct config_memory *m,
                                                             const char *name)
{
    for (unsigned i = 0; i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_RESOLVER && strcmp(m->sections[i].name, name) == 0)
            return m->sections[i].conf;
    return NULL;
}

static void config_resolvers_release(void *servers)
{
    name_servers_release(servers);
}

/* Takes over the reference to ${servers}. */
static int config_resolvers_keep(const struct section *section, struct name_servers *servers)
{
    int rc = arena_own(section->arena, servers, config_resolvers_release);

    if (rc < 0)
        name_servers_release(servers);
    return rc;
}

/* A lookup keeps one of the lookup_threads for as long. */
static void config_resolvers_check_time(const struct section *section,
                                        struct diagnostics *diagnostics)
{
    const struct name_servers_conf *conf = section->conf;
    int64_t lookup_ns = conf->n_addresses * conf->tries * conf->timeout_ns;

    if (lookup_ns > CONFIG_RESOLVERS_LOOKUP_NS)
        diagnostics_add(diagnostics, section->source->line,
                        "[%s] a lookup could take %" PRId64 " s: servers x tries x timeout is at "
                        "most 60 s",
                        section->source->name, lookup_ns / NS_PER_S);
}

static int config_resolvers_create(const struct section *section, struct diagnostics *diagnostics)
{
    struct name_servers_conf *conf = section->conf;
    int rc;

    if (conf->n_addresses == 0)
        return 0; /* refused, or missing */
    config_resolvers_check_time(section, diagnostics);
    rc = name_servers_create(&conf->servers, conf);
    return rc == 0 ? config_resolvers_keep(section, conf->servers) : rc;
}

static int config_resolvers_give(const struct config_memory *m, const struct section *section,
                                 struct diagnostics *diagnostics)
{
    struct upstream_conf *up = section->conf;
    const char *name = up->resolver.name;
    const struct name_servers_conf *conf = name ? config_resolvers_find(m, name) : NULL;

    if (name && !conf && !m->incomplete)
        config_names_refuse(&(struct config_name){.section = section,
                                                  .entry = section_valid_entry(section, "resolver"),
                                                  .kind = OPTION_RESOLVER,
                                                  .text = name},
                            m, diagnostics);
    if (!conf || !conf->servers)
        return 0;
    up->resolver.servers = conf->servers;
    return config_resolvers_keep(section, name_servers_hold(conf->servers));
}

int config_resolvers_all(const struct config_memory *m, struct diagnostics *diagnostics)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_RESOLVER)
            rc = config_resolvers_create(&m->sections[i], diagnostics);
    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_UPSTREAM)
            rc = config_resolvers_give(m, &m->sections[i], diagnostics);
    return rc;
}
