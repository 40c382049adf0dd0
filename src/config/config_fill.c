#include "config/config_fill.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "option/option_need.h"
#include "ini/diagnostics.h"
#include "ini/foreign_lines.h"
#include "ini/foreign_words.h"
#include "listen/listener.h"
#include "net/name_servers.h"
#include "tls/tls_conf.h"
#include "upstream/upstream.h"

#define TITLES_BYTES 192

static const char *config_fill_list_keys(enum option_section section, struct arena *arena)
{
    size_t size = 1;
    const struct option *o;
    char *list;

    for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++)
        size += strlen(o->key) + strlen(", ");
    list = arena_alloc(arena, size, 1);
    for (unsigned i = 0; list != NULL && (o = option_row(section, i)) != NULL; i++)
        section_list_word(list, size, o->key);
    return list;
}

const char *config_fill_copy(const struct section *section, const char *text)
{
    return arena_text(section->arena, text, strlen(text));
}

static int config_fill_set_defaults(const struct section *section)
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
        MUST(rc == 0); /* all defaults are valid: tests/unit/option/test_option.c */
    }
    return 0;
}

/* Offer the key of ${o}. For an option family, compare only the part before the dot. */
static void config_fill_offer_key(struct diagnostics_suggestion *near, const struct option *o,
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

static const char *config_fill_nearest_key(enum option_section section, const char *key)
{
    struct diagnostics_suggestion near;
    const struct option *o;

    diagnostics_suggest(&near, key);
    for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++)
        config_fill_offer_key(&near, o, key);
    return near.best;
}

static int config_fill_refuse_key(const struct section *section, const struct ini_entry *entry,
                                  struct diagnostics *diagnostics)
{
    const char *name = section->source->name, *key = entry->key, *keys;
    struct foreign_words_hint hint;
    char there[TITLES_BYTES] = "";
    unsigned n_words;
    const char *near = config_fill_nearest_key(section->kind, key);
    const char *foreign = foreign_lines_find(key, &n_words);

    for (unsigned other = 0; other < OPTION_SECTIONS; other++) {
        const struct option *o = option_find(other, key);

        if (o && strcmp(o->key, key) == 0)
            section_list_word(there, sizeof(there), option_section_title(other));
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
        keys = config_fill_list_keys(section->kind, section->arena);
        if (!keys)
            return -ENOMEM;
        diagnostics_add(diagnostics, entry->line, "[%s] %s: unknown option (%s)", name, key, keys);
    }
    return 0;
}

/* Report each line of ${v}->problem; the last one with the allowed values. */
static void config_fill_refuse_value(const struct section *section, const struct ini_entry *entry,
                                     const struct option *o, const struct option_value *v,
                                     struct diagnostics *diagnostics)
{
    const char *problem = v->problem, *end;

    for (; (end = strchr(problem, '\n')) != NULL; problem = end + 1)
        diagnostics_add(diagnostics, entry->line, "[%s] %s: %.*s", section->source->name,
                        entry->key, (int)(end - problem), problem);
    diagnostics_add(diagnostics, entry->line, "[%s] %s: %s (%s%s)", section->source->name,
                    entry->key, problem, o->allowed, o->kind->units);
}

int config_fill_entry(const struct section *section, struct ini_entry *entry,
                      struct diagnostics *diagnostics)
{
    struct option_value v = {.key = config_fill_copy(section, entry->key),
                             .text = config_fill_copy(section, entry->value),
                             .conf = section->conf,
                             .arena = section->arena};
    const struct option *o = option_find(section->kind, entry->key);
    int rc;

    if (!v.key || !v.text)
        return -ENOMEM;
    if (!o) {
        if (!diagnostics)
            return 0; /* as reported before */
        entry->refused = true;
        return config_fill_refuse_key(section, entry, diagnostics);
    }
    if (entry->refused)
        return 0;
    rc = option_set(o, &v);
    if (rc != -EINVAL)
        return rc;
    if (v.foreign)
        diagnostics_set_foreign(diagnostics);
    config_fill_refuse_value(section, entry, o, &v, diagnostics);
    entry->refused = true;
    return 0;
}

static int config_fill_set_entries(const struct section *section, struct diagnostics *diagnostics)
{
    int rc = config_fill_set_defaults(section);

    for (unsigned i = 0; rc == 0 && section->source && i < section->source->n_entries; i++)
        rc = config_fill_entry(section, &section->source->entries[i], diagnostics);
    return rc;
}

static size_t config_fill_conf_bytes(enum option_section kind)
{
    switch (kind) {
    case OPTION_LISTEN: return sizeof(struct listener_conf);
    case OPTION_UPSTREAM: return sizeof(struct upstream_conf);
    case OPTION_TLS: return sizeof(struct tls_conf);
    case OPTION_RESOLVER: return sizeof(struct name_servers_conf);
    case OPTION_LIMITS: return sizeof(struct limits_conf);
    case OPTION_ACCESS_LOG: return sizeof(struct listener_log_conf);
    default: MUST(!"a kind with names"); return 0;
    }
}

int config_fill_check(const struct section *section, struct diagnostics *diagnostics)
{
    struct section copy = *section;

    copy.conf = arena_alloc(section->arena, 1, config_fill_conf_bytes(section->kind));
    return copy.conf ? config_fill_set_entries(&copy, diagnostics) : -ENOMEM;
}

/* Remove defaults that have no effect; true: there were some. */
static bool config_fill_drop_unused(const struct section *section)
{
    struct ini_section *source = section->source;
    bool dropped = false;
    unsigned n = 0;

    for (unsigned i = 0; i < source->n_entries; i++) {
        const struct ini_entry *entry = &source->entries[i];
        const struct option *o = option_find(section->kind, entry->key);

        if (entry->is_default && !entry->refused && option_need_missing(o->need, section)) {
            dropped = true;
            continue;
        }
        source->entries[n++] = *entry;
    }
    source->n_entries = n;
    return dropped;
}

int config_fill(const struct section *section, struct diagnostics *diagnostics)
{
    size_t bytes = section_has_defaults(section) ? config_fill_conf_bytes(section->kind) : 0;
    void *empty = arena_alloc(section->arena, 1, bytes);
    int rc;

    if (!empty)
        return -ENOMEM;
    memcpy(empty, section->conf, bytes);
    rc = config_fill_set_entries(section, diagnostics);
    if (rc < 0 || bytes == 0 || !config_fill_drop_unused(section))
        return rc;
    memcpy(section->conf, empty, bytes);
    return config_fill_set_entries(section, NULL);
}
