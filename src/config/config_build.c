/* config/config_build: fills the structs from the file (first half of config_load()). */
#include "config/config_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_admin.h"
#include "config/diagnostics.h"
#include "config/foreign_lines.h"
#include "config/foreign_words.h"
#include "config/option_kind.h"
#include "net/address.h"
#include "net/name_servers.h"
#include "upstream/upstream.h"

#define TITLES_BYTES 192

static void config_build_list_word(char *list, size_t size, const char *word)
{
    size_t len = strlen(list);
    int more = snprintf(list + len, size - len, "%s%s", len > 0 ? ", " : "", word);

    MUST(more >= 0 && len + (size_t)more < size);
}

static const char *config_build_list_keys(enum option_section section, struct arena *arena)
{
    size_t size = 1;
    const struct option *o;
    char *list;

    for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++)
        size += strlen(o->key) + strlen(", ");
    list = arena_alloc(arena, size, 1);
    for (unsigned i = 0; list != NULL && (o = option_row(section, i)) != NULL; i++)
        config_build_list_word(list, size, o->key);
    return list;
}

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
        config_build_list_word(list, sizeof(list), option_section_title(k));
    }
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

static bool config_build_classify(struct config_section *out, struct ini_section *source,
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
    *out = (struct config_section){.kind = k, .name = name, .source = source};
    return true;
}

static int config_build_list_sections(struct config_memory *m, struct diagnostics *diagnostics)
{
    bool seen[OPTION_SECTIONS] = {false};
    struct config_section *first;
    unsigned n = 0;

    first = arena_alloc(m->arena, m->ini->n_sections + OPTION_SECTIONS, sizeof(*first));
    if (!first)
        return -ENOMEM;
    m->incomplete = m->ini->n_refused > 0;
    m->sections = first + OPTION_SECTIONS;
    for (unsigned i = 0; i < m->ini->n_sections; i++) {
        if (config_build_classify(&m->sections[n], &m->ini->sections[i], diagnostics))
            seen[m->sections[n++].kind] = true;
        else
            m->incomplete = true;
    }
    for (int k = OPTION_SECTIONS - 1; k >= 0; k--) {
        if (seen[k] || option_section_named((enum option_section)k))
            continue;
        *--m->sections = (struct config_section){.kind = (enum option_section)k};
        n++;
    }
    m->n_sections = n;
    return 0;
}

static unsigned config_build_count(const struct config_memory *m, enum option_section kind)
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->n_sections; i++)
        n += m->sections[i].kind == kind;
    return n;
}

/* Copy ${text}: the structs outlive the text of the file. */
static const char *config_build_copy(const struct config_section *section, const char *text)
{
    return arena_text(section->arena, text, strlen(text));
}

static int config_build_add_listener(struct config *config, struct config_section *section)
{
    struct listener_conf *conf = &config->server.listeners[config->server.n_listeners++];

    conf->name = config_build_copy(section, section->name);
    conf->memory = section->arena;
    conf->routes = arena_alloc(section->arena, section->source->n_entries, sizeof(*conf->routes));
    section->conf = conf;
    return conf->name && conf->routes ? 0 : -ENOMEM;
}

static int config_build_add_upstream(struct config *config, struct config_section *section)
{
    struct upstream_conf *conf = &config->server.upstreams[config->server.n_upstreams++];

    conf->name = config_build_copy(section, section->name);
    conf->memory = section->arena;
    conf->servers = arena_alloc(section->arena, section->source->n_entries, sizeof(*conf->servers));
    section->conf = conf;
    return conf->name && conf->servers ? 0 : -ENOMEM;
}

static int config_build_add_tls(struct config *config, struct config_section *section)
{
    struct tls_conf *conf = &config->server.tls[config->server.n_tls++];

    conf->name = conf->profile.name = config_build_copy(section, section->name);
    conf->memory = section->arena;
    section->conf = conf;
    return conf->name ? 0 : -ENOMEM;
}

static int config_build_add_resolver(struct config *config, struct config_section *section)
{
    struct name_servers_conf *conf = &config->server.resolvers[config->server.n_resolvers++];

    conf->name = config_build_copy(section, section->name);
    section->conf = conf;
    return conf->name ? 0 : -ENOMEM;
}

static int config_build_add_access_log(struct config *config, struct config_section *section)
{
    struct listener_log_conf *conf = &config->server.access_logs[config->server.n_access_logs++];

    conf->name = config_build_copy(section, section->name);
    section->conf = conf;
    return conf->name ? 0 : -ENOMEM;
}

static int config_build_attach(struct config *config, struct config_section *section)
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
    case OPTION_ACCESS_LOG: return config_build_add_access_log(config, section);
    case OPTION_SECTIONS: break;
    }
    MUST(!"a kind of section");
    return -EINVAL;
}

static int config_build_set_defaults(const struct config_section *section)
{
    struct option_value v = {.conf = section->conf, .arena = section->arena};
    const struct option *o;

    for (unsigned i = 0; (o = option_row(section->kind, i)) != NULL; i++) {
        int rc;

        if ((o->flags & OPTION_REQUIRED) != 0)
            continue;
        v.key = o->key;
        v.text = o->fallback;
        rc = option_set(o, &v);
        if (rc == -ENOMEM)
            return rc;
        MUST(rc == 0); /* all defaults are valid: tests/unit/config/test_option.c */
    }
    return 0;
}

/* Offer the key of ${o}. For an option family, compare only the part before the dot. */
static void config_build_offer_key(struct diagnostics_suggestion *near, const struct option *o,
                                   const char *key)
{
    struct diagnostics_suggestion family;
    char head[INI_NAME_BYTES + sizeof(".ID")];

    if ((o->flags & OPTION_FAMILY) == 0) {
        diagnostics_offer(near, o->key);
        return;
    }
    snprintf(head, sizeof(head), "%.*s.ID", (int)strcspn(key, "."), key);
    diagnostics_suggest(&family, head);
    diagnostics_offer(&family, o->key);
    if (family.distance < near->distance) {
        near->best = family.best;
        near->distance = family.distance;
    }
}

static const char *config_build_nearest_key(enum option_section section, const char *key)
{
    struct diagnostics_suggestion near;
    const struct option *o;

    diagnostics_suggest(&near, key);
    for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++)
        config_build_offer_key(&near, o, key);
    return near.best;
}

static int config_build_refuse_key(const struct config_section *section,
                                   const struct ini_entry *entry, struct diagnostics *diagnostics)
{
    const char *name = section->source->name, *key = entry->key, *keys;
    struct foreign_words_hint hint;
    char there[TITLES_BYTES] = "";
    unsigned n_words;
    const char *near = config_build_nearest_key(section->kind, key);
    const char *foreign = foreign_lines_find(key, &n_words);

    for (unsigned other = 0; other < OPTION_SECTIONS; other++) {
        const struct option *o = option_find(other, key);

        if (o && strcmp(o->key, key) == 0)
            config_build_list_word(there, sizeof(there), option_section_title(other));
    }
    if (*there != '\0')
        foreign = NULL; /* a word of reactord, too */
    if (foreign_words_hint(&hint, option_section_name(section->kind), key, strlen(key)))
        foreign = hint.text;
    if (foreign) {
        diagnostics_set_foreign(diagnostics);
        diagnostics_add(diagnostics, entry->line, "[%s] %s: unknown option (%s)", name, key,
                        foreign);
    } else if (near) {
        diagnostics_add(diagnostics, entry->line, "[%s] %s: unknown option (did you mean '%s'?)",
                        name, key, near);
    } else if (*there != '\0') {
        diagnostics_add(diagnostics, entry->line, "[%s] %s: unknown option here (it belongs to %s)",
                        name, key, there);
    } else {
        keys = config_build_list_keys(section->kind, section->arena);
        if (!keys)
            return -ENOMEM;
        diagnostics_add(diagnostics, entry->line, "[%s] %s: unknown option (%s)", name, key, keys);
    }
    return 0;
}

/* Report each line of ${v}->problem; the last one with the allowed values. */
static void config_build_refuse_value(const struct config_section *section,
                                      const struct ini_entry *entry, const struct option *o,
                                      const struct option_value *v, struct diagnostics *diagnostics)
{
    const char *problem = v->problem, *end;

    for (; (end = strchr(problem, '\n')) != NULL; problem = end + 1)
        diagnostics_add(diagnostics, entry->line, "[%s] %s: %.*s", section->source->name,
                        entry->key, (int)(end - problem), problem);
    diagnostics_add(diagnostics, entry->line, "[%s] %s: %s (%s%s)", section->source->name,
                    entry->key, problem, o->allowed, o->kind->units);
}

static int config_build_set_entry(const struct config_section *section, struct ini_entry *entry,
                                  struct diagnostics *diagnostics)
{
    struct option_value v = {.key = config_build_copy(section, entry->key),
                             .text = config_build_copy(section, entry->value),
                             .conf = section->conf,
                             .arena = section->arena};
    const struct option *o = option_find(section->kind, entry->key);
    int rc;

    if (!v.key || !v.text)
        return -ENOMEM;
    if (!o) {
        entry->refused = true;
        return config_build_refuse_key(section, entry, diagnostics);
    }
    if (entry->refused)
        return 0;
    rc = option_set(o, &v);
    if (rc != -EINVAL)
        return rc;
    if (v.foreign)
        diagnostics_set_foreign(diagnostics);
    config_build_refuse_value(section, entry, o, &v, diagnostics);
    entry->refused = true;
    return 0;
}

static int config_build_fill(const struct config_section *section, struct diagnostics *diagnostics)
{
    int rc = config_build_set_defaults(section);

    for (unsigned i = 0; rc == 0 && section->source && i < section->source->n_entries; i++)
        rc = config_build_set_entry(section, &section->source->entries[i], diagnostics);
    return rc;
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
            rc = config_build_fill(&m->sections[i], diagnostics);
    }
    for (unsigned i = 0; i < m->n_sections && rc == 0; i++)
        if (m->sections[i].conf == &config->admin && m->sections[i].source)
            config->admin.is_max_configured = ini_find(m->sections[i].source, "max_connections");
    config->server.set_aside = config_build_upgrade_descriptors(&config->process);
    if (config->admin.n_addresses > 0)
        config->server.set_aside +=
            config->admin.n_addresses + ADMIN_DESCRIPTORS +
            config_build_admin_kinds(&config->admin) * config_admin_share(&config->admin).open;
    return rc;
}
