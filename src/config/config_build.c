/* config/config_build: fills the structs from the file (first half of config_load()). */
#include "config/config_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_admin.h"
#include "config/config_defaults.h"
#include "config/config_fill.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "ini/foreign_lines.h"
#include "ini/foreign_words.h"
#include "net/address.h"
#include "net/name_servers.h"
#include "upstream/upstream.h"

#define TITLES_BYTES 256

static void config_build_refuse_kind(const struct ini_section *source, const char *word,
                                     struct diagnostics *diagnostics)
{
    unsigned n_words;
    const char *meant = NULL, *line = foreign_lines_find(word, &n_words);
    struct foreign_words_hint hint;
    char list[TITLES_BYTES] = "";
    struct diagnostics_suggestion near;

    diagnostics_suggest(&near, word);
    for (unsigned k = 0; k < OPTION_SECTIONS; k++) {
        diagnostics_offer(&near, option_section_name(k));
        if (near.best == option_section_name(k))
            meant = option_section_title(k);
        section_list_word(list, sizeof(list), option_section_title(k));
    }
    section_list_word(list, sizeof(list), "[defaults KIND]");
    diagnostics_offer(&near, "defaults");
    if (near.best && strcmp(near.best, "defaults") == 0)
        meant = "[defaults KIND]";
    if (foreign_words_hint(&hint, FOREIGN_WORDS_SECTION, word, strlen(word)))
        line = hint.text;
    if (line)
        diagnostics_set_foreign(diagnostics);
    if (line)
        diagnostics_add(diagnostics, source->line, "[%s] is not known (%s)", source->name, line);
    else if (meant)
        diagnostics_add(diagnostics, source->line, "[%s] is not known (did you mean %s?)",
                        source->name, meant);
    else
        diagnostics_add(diagnostics, source->line, "[%s] is not known (%s)", source->name, list);
}

static bool config_build_classify(struct section *out, struct ini_section *source,
                                  struct diagnostics *diagnostics)
{
    size_t len = strcspn(source->name, " ");
    const char *name = source->name[len] == ' ' ? source->name + len + 1 : NULL;
    char word[2 * INI_NAME_BYTES + 1];
    unsigned k = 0;

    snprintf(word, sizeof(word), "%.*s", (int)len, source->name);
    while (k < OPTION_SECTIONS && strcmp(option_section_name(k), word) != 0)
        k++;
    if (k == OPTION_SECTIONS) {
        config_build_refuse_kind(source, word, diagnostics);
        return false;
    }
    if (option_section_named(k) != (name != NULL)) {
        diagnostics_add(diagnostics, source->line, "[%s] %s (%s)", source->name,
                        name ? "takes no name" : "needs a name", option_section_title(k));
        return false;
    }
    if (name && !option_kind_is_name(name)) {
        diagnostics_add(
            diagnostics, source->line,
            "[%s] has a name that is too long (at most %d letters, digits, '_', '.' and '-')",
            source->name, OPTION_KIND_NAME_BYTES);
        return false;
    }
    *out = (struct section){.kind = k, .name = name, .source = source};
    return true;
}

static int config_build_list_section(struct config_memory *m, struct config_defaults *defaults,
                                     struct ini_section *source, struct diagnostics *diagnostics)
{
    config_defaults_leave(defaults, source);
    if (config_defaults_is(source))
        return config_defaults_add(defaults, source, diagnostics);
    if (!config_build_classify(&m->sections[m->n_sections], source, diagnostics)) {
        m->incomplete = true;
        return 0;
    }
    return config_defaults_apply(defaults, &m->sections[m->n_sections++]);
}

static int config_build_list_sections(struct config_memory *m, struct diagnostics *diagnostics)
{
    struct config_defaults *defaults = arena_alloc(m->arena, 1, sizeof(*defaults));
    bool seen[OPTION_SECTIONS] = {false};
    struct section *first;
    int rc = 0;

    first = arena_alloc(m->arena, m->ini->n_sections + OPTION_SECTIONS, sizeof(*first));
    if (!first || !defaults)
        return -ENOMEM;
    defaults->arena = m->arena;
    m->incomplete = m->ini->n_refused > 0;
    m->sections = first + OPTION_SECTIONS;
    for (unsigned i = 0; i < m->ini->n_sections && rc == 0; i++)
        rc = config_build_list_section(m, defaults, &m->ini->sections[i], diagnostics);
    for (unsigned i = 0; i < m->n_sections; i++)
        seen[m->sections[i].kind] = true;
    for (int k = OPTION_SECTIONS - 1; k >= 0; k--) {
        if (seen[k] || option_section_named((enum option_section)k))
            continue;
        *--m->sections = (struct section){.kind = (enum option_section)k};
        m->n_sections++;
    }
    return rc;
}

static unsigned config_build_count(const struct config_memory *m, enum option_section kind)
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->n_sections; i++)
        n += m->sections[i].kind == kind;
    return n;
}

static int config_build_add_listener(struct config *config, struct section *section)
{
    struct listener_conf *conf = &config->server.listeners[config->server.n_listeners++];

    conf->name = config_fill_copy(section, section->name);
    conf->memory = section->arena;
    conf->routes = arena_alloc(section->arena, section->source->n_entries, sizeof(*conf->routes));
    section->conf = conf;
    return conf->name && conf->routes ? 0 : -ENOMEM;
}

static int config_build_add_upstream(struct config *config, struct section *section)
{
    struct upstream_conf *conf = &config->server.upstreams[config->server.n_upstreams++];

    conf->name = config_fill_copy(section, section->name);
    conf->memory = section->arena;
    conf->servers = arena_alloc(section->arena, section->source->n_entries, sizeof(*conf->servers));
    section->conf = conf;
    return conf->name && conf->servers ? 0 : -ENOMEM;
}

static int config_build_add_tls(struct config *config, struct section *section)
{
    struct tls_conf *conf = &config->server.tls[config->server.n_tls++];

    conf->name = conf->profile.name = config_fill_copy(section, section->name);
    conf->memory = section->arena;
    section->conf = conf;
    return conf->name ? 0 : -ENOMEM;
}

static int config_build_add_resolver(struct config *config, struct section *section)
{
    struct name_servers_conf *conf = &config->server.resolvers[config->server.n_resolvers++];

    conf->name = config_fill_copy(section, section->name);
    section->conf = conf;
    return conf->name ? 0 : -ENOMEM;
}

static int config_build_add_limits(struct section *section)
{
    struct limits_conf *conf = arena_alloc(section->arena, 1, sizeof(*conf));

    section->conf = conf;
    return conf ? 0 : -ENOMEM;
}

static int config_build_add_access_log(struct config *config, struct section *section)
{
    struct listener_log_conf *conf = &config->server.access_logs[config->server.n_access_logs++];

    conf->name = config_fill_copy(section, section->name);
    section->conf = conf;
    return conf->name ? 0 : -ENOMEM;
}

static int config_build_attach(struct config *config, struct section *section)
{
    int rc = arena_create(&section->arena);

    if (rc < 0)
        return rc;
    switch (section->kind) {
    case OPTION_REACTORD: section->conf = config; return 0;
    case OPTION_BOSS: section->conf = &config->server.boss; return 0;
    case OPTION_WORKER: section->conf = &config->server.worker; return 0;
    case OPTION_EXECUTOR: section->conf = &config->server.executor; return 0;
    case OPTION_HANDSHAKE: section->conf = &config->server.handshake; return 0;
    case OPTION_ADMIN: section->conf = &config->admin; return 0;
    case OPTION_LISTEN: return config_build_add_listener(config, section);
    case OPTION_UPSTREAM: return config_build_add_upstream(config, section);
    case OPTION_TLS: return config_build_add_tls(config, section);
    case OPTION_RESOLVER: return config_build_add_resolver(config, section);
    case OPTION_LIMITS: return config_build_add_limits(section);
    case OPTION_ACCESS_LOG: return config_build_add_access_log(config, section);
    case OPTION_SECTIONS: break;
    }
    MUST(!"a kind of section");
    return -EINVAL;
}

/* Descriptors that connections leave for an upgrade, if there can be one. */
static unsigned config_build_upgrade_descriptors(const struct process_conf *conf)
{
    return conf->chroot || conf->seccomp ? 0 : UPGRADE_DESCRIPTORS + conf->max_old_processes;
}

/* TCP and unix sockets have max_connections places each. */
static unsigned config_build_admin_kinds(const struct admin_conf *conf)
{
    unsigned n_unix = 0;

    for (unsigned i = 0; i < conf->n_addresses; i++)
        n_unix += address_is_unix(&conf->addresses[i]);
    return n_unix > 0 && n_unix < conf->n_addresses ? 2 : 1;
}

int config_build_all(struct config *config, struct diagnostics *diagnostics)
{
    struct config_memory *m = config->memory;
    int rc = config_build_list_sections(m, diagnostics);

    if (rc < 0)
        return rc;
    config->server.listeners = arena_alloc(m->arena, config_build_count(m, OPTION_LISTEN),
                                           sizeof(*config->server.listeners));
    config->server.upstreams = arena_alloc(m->arena, config_build_count(m, OPTION_UPSTREAM),
                                           sizeof(*config->server.upstreams));
    config->server.tls =
        arena_alloc(m->arena, config_build_count(m, OPTION_TLS), sizeof(*config->server.tls));
    config->server.resolvers = arena_alloc(m->arena, config_build_count(m, OPTION_RESOLVER),
                                           sizeof(*config->server.resolvers));
    config->server.access_logs = arena_alloc(m->arena, config_build_count(m, OPTION_ACCESS_LOG),
                                             sizeof(*config->server.access_logs));
    if (!config->server.listeners || !config->server.upstreams || !config->server.tls ||
        !config->server.resolvers || !config->server.access_logs)
        return -ENOMEM;
    for (unsigned i = 0; i < m->n_sections && rc == 0; i++) {
        rc = config_build_attach(config, &m->sections[i]);
        if (rc == 0)
            rc = config_fill(&m->sections[i], diagnostics);
    }
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < m->n_sections; i++)
        if (m->sections[i].conf == &config->admin && m->sections[i].source)
            config->admin.is_max_configured = ini_find(m->sections[i].source, "max_connections");
    config->server.set_aside = config_build_upgrade_descriptors(&config->process);
    if (config->admin.n_addresses > 0)
        config->server.set_aside +=
            config->admin.n_addresses + ADMIN_DESCRIPTORS +
            config_build_admin_kinds(&config->admin) * config_admin_share(&config->admin).open;
    return 0;
}
