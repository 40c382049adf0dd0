#include "config/config_defaults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "config/config_fill.h"
#include "ini/diagnostics.h"

#define KINDS_BYTES 192

bool config_defaults_is(const struct ini_section *source)
{
    size_t len = strlen(INI_DEFAULTS) - 1;

    return strncmp(source->name, INI_DEFAULTS, len) == 0 && strchr(" ", source->name[len]) != NULL;
}

static const char *config_defaults_word(const struct ini_section *source)
{
    size_t len = strlen(INI_DEFAULTS) - 1;

    return source->name[len] == ' ' ? source->name + len + 1 : "";
}

static void config_defaults_refuse_kind(const struct ini_section *source,
                                        struct diagnostics *diagnostics)
{
    const char *word = config_defaults_word(source);
    struct diagnostics_suggestion near;
    char list[KINDS_BYTES] = "", title[KINDS_BYTES];

    diagnostics_suggest(&near, word);
    for (unsigned k = 0; k < OPTION_SECTIONS; k++) {
        if (!option_section_named(k))
            continue;
        diagnostics_offer(&near, option_section_name(k));
        snprintf(title, sizeof(title), "[" INI_DEFAULTS "%s]", option_section_name(k));
        section_list_word(list, sizeof(list), title);
    }
    if (*word == '\0')
        diagnostics_add(diagnostics, source->line, "[%s] needs a kind of section (%s)",
                        source->name, list);
    else if (near.best)
        diagnostics_add(diagnostics, source->line,
                        "[%s] is not known (did you mean [" INI_DEFAULTS "%s]?)", source->name,
                        near.best);
    else
        diagnostics_add(diagnostics, source->line, "[%s] is not known (%s)", source->name, list);
}

static bool config_defaults_classify(enum option_section *out, const struct ini_section *source)
{
    for (unsigned k = 0; k < OPTION_SECTIONS; k++)
        if (option_section_named(k) &&
            strcmp(option_section_name(k), config_defaults_word(source)) == 0) {
            *out = k;
            return true;
        }
    return false;
}

static void config_defaults_refuse_single(struct ini_section *source, enum option_section kind,
                                          struct diagnostics *diagnostics)
{
    for (unsigned i = 0; i < source->n_entries; i++) {
        struct ini_entry *entry = &source->entries[i];
        const struct option *o = option_find(kind, entry->key);

        if (!o || (o->flags & OPTION_SINGLE) == 0)
            continue;
        diagnostics_add(diagnostics, entry->line,
                        "[%s] %s: has no default: it differs from section to section (in each %s)",
                        source->name, entry->key, option_section_title(kind));
        entry->refused = true;
    }
}

void config_defaults_leave(struct config_defaults *d, const struct ini_section *source)
{
    while (d->n > 0 && d->in_use[d->n - 1].depth > source->floor)
        d->n--;
}

/* Return the nearest defaults of ${kind}, or NULL. */
static const struct config_defaults_of *config_defaults_find(const struct config_defaults *d,
                                                             enum option_section kind)
{
    for (unsigned i = d->n; i > 0; i--)
        if (d->in_use[i - 1].kind == kind)
            return &d->in_use[i - 1];
    return NULL;
}

static bool config_defaults_has(const struct ini_section *section, const struct option *o)
{
    for (unsigned i = 0; i < section->n_entries; i++)
        if (option_matches(o, section->entries[i].key))
            return true;
    return false;
}

/* Make ${out} have what ${own} has, and the entries of ${more} that it has not. */
static int config_defaults_merge(struct ini_section *out, const struct config_defaults *d,
                                 enum option_section kind, const struct ini_section *own,
                                 const struct ini_section *more)
{
    struct ini_entry *entries =
        arena_alloc(d->arena, (size_t)own->n_entries + more->n_entries, sizeof(*entries));

    if (!entries)
        return -ENOMEM;
    *out = *own;
    out->entries = entries;
    if (own->n_entries > 0)
        memcpy(entries, own->entries, own->n_entries * sizeof(*entries));
    for (unsigned i = 0; i < more->n_entries; i++) {
        const struct option *o = option_find(kind, more->entries[i].key);

        if (!o || (o->flags & OPTION_SINGLE) != 0 || config_defaults_has(own, o))
            continue;
        entries[out->n_entries] = more->entries[i];
        entries[out->n_entries++].is_default = true;
    }
    return 0;
}

/* Use the entries of ${source} in the sections of ${kind} that follow. */
static int config_defaults_use(struct config_defaults *d, enum option_section kind,
                               const struct ini_section *source)
{
    const struct config_defaults_of *before = config_defaults_find(d, kind);
    struct config_defaults_of *to = &d->in_use[d->n];
    const struct ini_section none = {.name = source->name};
    struct ini_section merged;
    int rc = config_defaults_merge(&merged, d, kind, source, before ? &before->section : &none);

    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < d->n; i++)
        if (d->in_use[i].kind == kind && d->in_use[i].depth == source->depth)
            to = &d->in_use[i];
    d->n += to == &d->in_use[d->n];
    *to = (struct config_defaults_of){kind, source->depth, merged};
    return 0;
}

int config_defaults_add(struct config_defaults *d, struct ini_section *source,
                        struct diagnostics *diagnostics)
{
    struct section section = {.source = source, .arena = d->arena};
    int rc;

    if (!config_defaults_classify(&section.kind, source)) {
        config_defaults_refuse_kind(source, diagnostics);
        return 0;
    }
    config_defaults_refuse_single(source, section.kind, diagnostics);
    rc = config_fill_check(&section, diagnostics);
    return rc == 0 ? config_defaults_use(d, section.kind, source) : rc;
}

int config_defaults_apply(const struct config_defaults *d, struct section *section)
{
    const struct config_defaults_of *defaults = config_defaults_find(d, section->kind);
    struct ini_section *merged;

    if (!defaults)
        return 0;
    merged = arena_alloc(d->arena, 1, sizeof(*merged));
    if (!merged ||
        config_defaults_merge(merged, d, section->kind, section->source, &defaults->section) < 0)
        return -ENOMEM;
    section->source = merged;
    return 0;
}
