#include "config/config_limits.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "config/config_memory.h"
#include "config/config_names.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "net/cidr.h"

static const struct limits_conf *config_limits_find(const struct config_memory *m, const char *name)
{
    for (unsigned i = 0; i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_LIMITS && strcmp(m->sections[i].name, name) == 0)
            return m->sections[i].conf;
    return NULL;
}

static bool config_limits_is_of(const struct section *section, const char *name)
{
    const struct listener_conf *conf = section->conf;

    return section->kind == OPTION_LISTEN && conf->limits && strcmp(conf->limits, name) == 0;
}

/* The proxies that listener ${section} trusts, if it shares [limits ${name}]; NULL: it does not. */
static const struct cidr_list *config_limits_proxies(const struct section *section,
                                                     const char *name)
{
    const struct listener_conf *conf = section->conf;

    if (!config_limits_is_of(section, name) || conf->accept_proxy.mode == PROXY_PROTOCOL_OFF)
        return NULL;
    return &conf->accept_proxy.trusted;
}

static void config_limits_append(struct cidr_list *to, struct cidr *list,
                                 const struct cidr_list *from)
{
    if (from->n > 0)
        memcpy(list + to->n, from->list, from->n * sizeof(*list));
    *to = (struct cidr_list){.list = list, .n = to->n + from->n};
}

/* Exempt the proxies that any of the listeners trusts: a ban is one of all listeners. */
static int config_limits_exempt(const struct config_memory *m, const struct section *section)
{
    struct limits_conf *conf = section->conf;
    struct cidr_list all = {.n = 0};
    const struct cidr_list *proxies;
    size_t n = conf->ban_exempt.n;
    struct cidr *list;

    for (unsigned i = 0; i < m->n_sections; i++)
        if ((proxies = config_limits_proxies(&m->sections[i], section->name)) != NULL)
            n += proxies->n;
    list = arena_alloc(section->arena, n, sizeof(*list));
    if (!list)
        return -ENOMEM;
    config_limits_append(&all, list, &conf->ban_exempt);
    for (unsigned i = 0; i < m->n_sections; i++)
        if ((proxies = config_limits_proxies(&m->sections[i], section->name)) != NULL)
            config_limits_append(&all, list, proxies);
    conf->ban_exempt = all;
    return 0;
}

/* A listener may live longer than the section: see listener_conf.memory. */
static int config_limits_copy(struct listener_conf *conf, const struct limits_conf *from,
                              struct arena *arena)
{
    struct cidr_list exempt = {.n = 0};
    struct cidr *list = arena_alloc(arena, from->ban_exempt.n, sizeof(*list));

    if (!list)
        return -ENOMEM;
    config_limits_append(&exempt, list, &from->ban_exempt);
    conf->clients = from->clients;
    conf->ban = from->ban;
    conf->ban_exempt = exempt;
    conf->over_shared = from->over_limit;
    return 0;
}

static int config_limits_give(const struct config_memory *m, const struct section *section,
                              struct diagnostics *diagnostics)
{
    struct listener_conf *conf = section->conf;
    const struct limits_conf *from = conf->limits ? config_limits_find(m, conf->limits) : NULL;

    if (from)
        return config_limits_copy(conf, from, section->arena);
    if (conf->limits && !m->incomplete)
        config_names_refuse(&(struct config_name){.section = section,
                                                  .entry = section_valid_entry(section, "limits"),
                                                  .kind = OPTION_LIMITS,
                                                  .text = conf->limits},
                            m, diagnostics);
    return 0;
}

static bool config_limits_is_used(const struct config_memory *m, const char *name)
{
    for (unsigned i = 0; i < m->n_sections; i++) {
        const struct section *section = &m->sections[i];

        if (config_limits_is_of(section, name) ||
            (section->kind == OPTION_LISTEN &&
             section_refused(section, "limits"))) /* perhaps there */
            return true;
    }
    return false;
}

static void config_limits_check(const struct config_memory *m, const struct section *section,
                                struct diagnostics *diagnostics)
{
    const struct limits_conf *conf = section->conf;

    if (!config_limits_is_used(m, section->name))
        diagnostics_warn(diagnostics, section->source->line,
                         "[%s] has no effect: no listener names it (limits = %s)",
                         section->source->name, section->name);
    else if (conf->clients.each.max_connections == 0 && conf->clients.each.rate.tokens == 0 &&
             conf->ban.offences == 0 && !section_refused(section, "max_connections_per_client") &&
             !section_refused(section, "connection_rate_per_client") &&
             !section_refused(section, "ban"))
        diagnostics_warn(diagnostics, section->source->line,
                         "[%s] has no effect: it sets no limit and no ban", section->source->name);
}

int config_limits_all(const struct config_memory *m, struct diagnostics *diagnostics)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_LIMITS) {
            config_limits_check(m, &m->sections[i], diagnostics);
            rc = config_limits_exempt(m, &m->sections[i]);
        }
    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_LISTEN)
            rc = config_limits_give(m, &m->sections[i], diagnostics);
    return rc;
}
