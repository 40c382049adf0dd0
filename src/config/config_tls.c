#include "config/config_tls.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_memory.h"
#include "config/config_names.h"
#include "ini/diagnostics.h"
#include "net/address.h"
#include "tls/tls_profile.h"
#include "tls/tls_sections.h"
#include "tls/tls_slot.h"
#include "upstream/upstream.h"

#define CONFIG_TLS_WHY_BYTES 1024

static struct tls_conf *config_tls_find(const struct config *config, const char *name)
{
    for (unsigned i = 0; i < config->server.n_tls; i++)
        if (strcmp(config->server.tls[i].name, name) == 0)
            return &config->server.tls[i];
    return NULL;
}

/* An option of an upstream that names a [tls NAME]. */
struct config_tls_use {
    const char *key;
    const char *name_key; /* option with the name that certificates must have */
    const char *name;
    const char *server_name; /* value of name_key, or NULL */
    struct tls_slot **slot;
};

#define CONFIG_TLS_USES 2

static struct config_tls_use config_tls_use_of_upstream(struct upstream_tls_conf *tls)
{
    return (struct config_tls_use){.key = "tls",
                                   .name_key = "tls_name",
                                   .name = tls->name,
                                   .server_name = tls->server_name,
                                   .slot = &tls->slot};
}

/* Write to ${uses} the options of an upstream that name a [tls NAME]; return their number. */
static unsigned config_tls_uses(const struct section *section, struct config_tls_use *uses)
{
    unsigned n = 0;

    if (section->kind == OPTION_UPSTREAM) {
        struct upstream_conf *conf = section->conf;
        struct upstream_tls_conf *of_checks = &conf->checks.check.tls;

        if (conf->tls.name)
            uses[n++] = config_tls_use_of_upstream(&conf->tls);
        if (of_checks->name && upstream_checks_with_tls(conf)) {
            uses[n] = config_tls_use_of_upstream(of_checks);
            uses[n].key = "check_tls";
            uses[n].name_key = "check_tls_name";
            if (!of_checks->server_name)
                uses[n].server_name = conf->tls.server_name;
            n++;
        }
    }
    return n;
}

/* ---- users ---- */

/* Servers at unix sockets need tls_name: a certificate cannot name the address of a unix socket. */
static void config_tls_check_servers(const struct section *section,
                                     const struct config_tls_use *use, const struct tls_conf *tls,
                                     struct diagnostics *diagnostics)
{
    const struct upstream_conf *up = section->conf;

    if (tls->profile.verify == TLS_VERIFY_OFF || use->server_name ||
        section_refused(section, use->name_key))
        return;
    for (unsigned i = 0; i < up->n_servers; i++)
        if (up->servers[i].n_addresses > 0 && address_is_unix(&up->servers[i].addresses[0])) {
            diagnostics_add(diagnostics, section_valid_entry(section, use->key)->line,
                            "[%s] %s: server.%s is a unix socket, which has no name to verify "
                            "(set %s)",
                            section->source->name, use->key, up->servers[i].id, use->name_key);
            return;
        }
}

static void config_tls_check_spares(const struct section *section, const struct tls_conf *tls,
                                    struct diagnostics *diagnostics)
{
    if (((const struct upstream_conf *)section->conf)->spare.keep > 0)
        diagnostics_add(diagnostics, section_valid_entry(section, "spare")->line,
                        "[%s] spare: is opened before there is a client, whose protocol [tls %s] "
                        "offers (alpn = client)",
                        section->source->name, tls->name);
}

/* Find the [tls ${name}] of the option ${key}; NULL: there is none, which is reported. */
static struct tls_conf *config_tls_named(const struct config *config, const struct section *section,
                                         const char *key, const char *name,
                                         struct diagnostics *diagnostics)
{
    struct tls_conf *tls = config_tls_find(config, name);

    if (!tls && !config->memory->incomplete)
        config_names_refuse(&(struct config_name){.section = section,
                                                  .entry = section_valid_entry(section, key),
                                                  .kind = OPTION_TLS,
                                                  .text = name},
                            config->memory, diagnostics);
    return tls;
}

static void config_tls_check_listener(const struct config *config, const struct section *section,
                                      struct diagnostics *diagnostics)
{
    const struct listener_tls_conf *conf = &((const struct listener_conf *)section->conf)->tls;

    for (unsigned i = 0; i < conf->n_names; i++) {
        struct tls_conf *tls =
            config_tls_named(config, section, "tls", conf->names[i], diagnostics);

        if (tls)
            tls->profile.for_clients = true;
    }
}

static void config_tls_check_use(const struct config *config, const struct section *section,
                                 const struct config_tls_use *use, struct diagnostics *diagnostics)
{
    struct tls_conf *tls = config_tls_named(config, section, use->key, use->name, diagnostics);

    if (!tls)
        return;
    tls->profile.for_servers = true;
    config_tls_check_servers(section, use, tls, diagnostics);
    if (tls->profile.alpn_of_client && strcmp(use->key, "tls") == 0)
        config_tls_check_spares(section, tls, diagnostics);
}

static void config_tls_check_kind(const struct section *section, struct diagnostics *diagnostics)
{
    const struct upstream_conf *up = section->conf;

    if (up->checks.kind != UPSTREAM_CHECK_TLS || upstream_checks_with_tls(up) ||
        section_refused(section, "check_tls") || section_refused(section, "tls"))
        return;
    diagnostics_add(diagnostics, section_valid_entry(section, "check")->line,
                    "[%s] check: tls needs the settings of a [tls NAME] (set check_tls)",
                    section->source->name);
}

static void config_tls_check_user(const struct config *config, const struct section *section,
                                  struct diagnostics *diagnostics)
{
    struct config_tls_use uses[CONFIG_TLS_USES];
    unsigned n = config_tls_uses(section, uses);

    if (section->kind == OPTION_LISTEN)
        config_tls_check_listener(config, section, diagnostics);
    for (unsigned i = 0; i < n; i++)
        config_tls_check_use(config, section, &uses[i], diagnostics);
    if (section->kind == OPTION_UPSTREAM)
        config_tls_check_kind(section, diagnostics);
}

static void config_tls_release_slot(void *slot)
{
    tls_slot_release(slot);
}

/* Give ${use} the slot of the [tls NAME] that it names; the section's arena has a reference. */
static int config_tls_give_slot(const struct config *config, const struct section *section,
                                const struct config_tls_use *use)
{
    const struct tls_conf *tls = config_tls_find(config, use->name);

    if (!tls || !tls->slot)
        return 0;
    if (arena_own(section->arena, tls_slot_hold(tls->slot), config_tls_release_slot) < 0) {
        tls_slot_release(tls->slot);
        return -ENOMEM;
    }
    *use->slot = tls->slot;
    return 0;
}

static void config_tls_release_sections(void *sections)
{
    tls_sections_release(sections);
}

static int config_tls_give_sections(const struct config *config, const struct section *section)
{
    struct listener_tls_conf *conf = &((struct listener_conf *)section->conf)->tls;
    struct tls_slot *slots[TLS_SECTIONS_MAX];
    struct tls_sections *sections;
    int rc;

    for (unsigned i = 0; i < conf->n_names; i++) {
        const struct tls_conf *tls = config_tls_find(config, conf->names[i]);

        if (!tls || !tls->slot)
            return 0; /* which is reported */
        slots[i] = tls->slot;
    }
    if (conf->n_names == 0)
        return 0;
    rc = tls_sections_create(&sections, conf->names, slots, conf->n_names);
    if (rc == 0 && arena_own(section->arena, sections, config_tls_release_sections) < 0) {
        tls_sections_release(sections);
        rc = -ENOMEM;
    }
    if (rc == 0)
        conf->sections = sections;
    return rc;
}

static int config_tls_give(const struct config *config, const struct section *section)
{
    struct config_tls_use uses[CONFIG_TLS_USES];
    unsigned n = config_tls_uses(section, uses);
    int rc = section->kind == OPTION_LISTEN ? config_tls_give_sections(config, section) : 0;

    for (unsigned i = 0; rc == 0 && i < n; i++)
        rc = config_tls_give_slot(config, section, &uses[i]);
    return rc;
}

/* ---- profiles ---- */

/*
 * Report ${text}, of ${len} bytes, at the line of the option named at its start, else of the
 * section.
 */
static void config_tls_report(const struct section *section, const char *text, size_t len,
                              struct diagnostics *diagnostics, bool is_warning)
{
    size_t key_len = strcspn(text, ":");
    unsigned line = section->source->line;

    for (unsigned i = 0; i < section->source->n_entries; i++) {
        const struct ini_entry *entry = &section->source->entries[i];

        if (strlen(entry->key) == key_len && memcmp(entry->key, text, key_len) == 0)
            line = entry->line;
    }
    if (is_warning)
        diagnostics_warn(diagnostics, line, "[%s] %.*s", section->source->name, (int)len, text);
    else
        diagnostics_add(diagnostics, line, "[%s] %.*s", section->source->name, (int)len, text);
}

static void config_tls_warn(const struct section *section, const struct tls_profile *p,
                            struct diagnostics *diagnostics)
{
    for (const char *line = tls_profile_warnings(p); *line != '\0'; line++) {
        size_t len = strcspn(line, "\n");

        config_tls_report(section, line, len, diagnostics, true);
        line += len;
    }
}

static void config_tls_release_profile(void *profile)
{
    tls_profile_release(profile);
}

/* Takes over the reference to ${p}. */
static int config_tls_keep(struct tls_conf *conf, struct tls_profile *p)
{
    int rc = arena_own(conf->memory, p, config_tls_release_profile);

    if (rc < 0)
        tls_profile_release(p);
    else
        conf->loaded = p;
    return rc;
}

/* Takes over the reference to ${slot}. */
static int config_tls_keep_slot(struct tls_conf *conf, struct tls_slot *slot)
{
    int rc = arena_own(conf->memory, slot, config_tls_release_slot);

    if (rc < 0)
        tls_slot_release(slot);
    else
        conf->slot = slot;
    return rc;
}

static int config_tls_create_slot(struct tls_conf *conf)
{
    struct tls_profile *p = tls_profile_hold(conf->loaded);
    struct tls_slot *slot;
    int rc = tls_slot_create(&slot, p);

    if (rc < 0) {
        tls_profile_release(p);
        return rc;
    }
    return config_tls_keep_slot(conf, slot);
}

/* Load a profile. ${before}: the running section of this name, or NULL. */
static int config_tls_load(const struct section *section, const struct tls_conf *before,
                           struct diagnostics *diagnostics)
{
    struct tls_conf *conf = section->conf;
    struct tls_profile *current = before ? tls_slot_current(before->slot) : NULL;
    struct tls_profile *p;
    char why[CONFIG_TLS_WHY_BYTES];
    int rc;

    conf->profile.before = current;
    rc = tls_profile_load(&conf->profile, &p, why, sizeof(why));
    conf->profile.before = NULL;
    if (rc == 0) {
        config_tls_warn(section, p, diagnostics);
        if (current && tls_profile_same(p, current)) {
            tls_profile_release(p);
            p = tls_profile_hold(current);
        }
        rc = config_tls_keep(conf, p);
    } else if (rc == -EINVAL) {
        config_tls_report(section, why, strlen(why), diagnostics, false);
        rc = 0;
    }
    tls_profile_release(current);
    if (rc < 0 || !conf->loaded)
        return rc;
    return before ? config_tls_keep_slot(conf, tls_slot_hold(before->slot))
                  : config_tls_create_slot(conf);
}

static bool config_tls_is_refused(const struct section *section)
{
    for (unsigned i = 0; i < section->source->n_entries; i++)
        if (section->source->entries[i].refused)
            return true;
    return false;
}

static int config_tls_load_section(const struct section *section, const struct config *running,
                                   struct diagnostics *diagnostics)
{
    struct tls_conf *conf = section->conf;
    const struct tls_conf *before = running ? config_tls_find(running, conf->name) : NULL;

    if (config_tls_is_refused(section))
        return 0;
    /*
     * No section uses the profile: check it for clients if it has certificates, else for servers.
     */
    if (!conf->profile.for_clients && !conf->profile.for_servers) {
        conf->profile.for_clients =
            conf->profile.certificates.n > 0 && !conf->profile.alpn_of_client;
        conf->profile.for_servers = !conf->profile.for_clients;
    }
    return config_tls_load(section, before, diagnostics);
}

/* ---- names of several sections ---- */

static const char *config_tls_section_of(const struct listener_tls_conf *conf,
                                         struct tls_profile *const *profiles, const char *name)
{
    unsigned i = 0;

    while (tls_profile_match(profiles[i], name) != TLS_MATCH_EXACT)
        i++;
    return conf->names[i];
}

/* Section ${i} of a listener: warn of its names that lead to another. */
static void config_tls_check_names(const struct section *section,
                                   struct tls_profile *const *profiles, unsigned i,
                                   struct diagnostics *diagnostics)
{
    const struct listener_tls_conf *conf = &((const struct listener_conf *)section->conf)->tls;
    unsigned line = section_valid_entry(section, "tls")->line;
    const char *first;
    unsigned all = tls_profile_shared_names(profiles[i], NULL, 0, &first);
    unsigned shared = tls_profile_shared_names(profiles[i], profiles, i, &first);
    const char *of = shared > 0 ? config_tls_section_of(conf, profiles, first) : NULL;

    if (all == 0)
        diagnostics_warn(diagnostics, line,
                         "[%s] tls: [tls %s] is never used: its certificates have no host name "
                         "(set names in it)",
                         section->source->name, conf->names[i]);
    else if (shared == all)
        diagnostics_warn(diagnostics, line,
                         "[%s] tls: [tls %s] is never used: all its names, such as %s of [tls %s], "
                         "are in the sections before it (set names)",
                         section->source->name, conf->names[i], first, of);
    else if (shared > 0)
        diagnostics_warn(diagnostics, line,
                         "[%s] tls: [tls %s] is not used for %s, which is also in [tls %s] before "
                         "it; names of both: %u",
                         section->source->name, conf->names[i], first, of, shared);
}

static void config_tls_check_list(const struct config *config, const struct section *section,
                                  struct diagnostics *diagnostics)
{
    const struct listener_tls_conf *conf;
    struct tls_profile *profiles[TLS_SECTIONS_MAX];

    if (section->kind != OPTION_LISTEN)
        return;
    conf = &((const struct listener_conf *)section->conf)->tls;
    if (!conf->sections)
        return;
    for (unsigned i = 0; i < conf->n_names; i++) {
        profiles[i] = config_tls_find(config, conf->names[i])->loaded;
        if (i > 0)
            config_tls_check_names(section, profiles, i, diagnostics);
    }
}

int config_tls_all(struct config *config, const struct config *running,
                   struct diagnostics *diagnostics)
{
    const struct config_memory *m = config->memory;
    int rc = 0;

    for (unsigned i = 0; i < m->n_sections; i++)
        config_tls_check_user(config, &m->sections[i], diagnostics);
    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_TLS)
            rc = config_tls_load_section(&m->sections[i], running, diagnostics);
    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        rc = config_tls_give(config, &m->sections[i]);
    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        config_tls_check_list(config, &m->sections[i], diagnostics);
    return rc;
}
