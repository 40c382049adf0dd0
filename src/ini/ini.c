#include "ini/ini.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "ini/diagnostics.h"
#include "ini/ini_adapter.h"
#include "ini/ini_environment.h"
#include "ini/ini_include.h"
#include "ini/ini_scan.h"

struct ini_memory {
    struct arena *arena;
    struct ini_values *values;
};

static int ini_create(struct ini **out)
{
    struct arena *arena;
    struct ini *ini;
    int rc = arena_create(&arena);

    if (rc < 0)
        return rc;
    ini = arena_alloc(arena, 1, sizeof(*ini));
    if (!ini)
        goto err_arena;
    ini->memory = arena_alloc(arena, 1, sizeof(*ini->memory));
    if (!ini->memory)
        goto err_arena;
    ini->memory->arena = arena;
    *out = ini;
    return 0;

err_arena:
    arena_release(arena);
    return -ENOMEM;
}

static int ini_expand_entry(struct ini *ini, const struct ini_section *section,
                            struct ini_entry *entry, struct diagnostics *diagnostics)
{
    /* The value must fit in a line of config_dump(). */
    const size_t space = INI_LINE_BYTES - strlen(entry->key) - strlen("=''");
    struct ini_environment expanded;

    if (entry->refused || !strstr(entry->value, "${"))
        return 0;
    if (ini_environment_expand(&expanded, entry->value, space) < 0) {
        diagnostics_add(diagnostics, entry->line, "[%s] %s: %s", section->name, entry->key,
                        expanded.problem);
        entry->refused = true;
        return 0;
    }
    entry->value = arena_text(ini->memory->arena, expanded.text, strlen(expanded.text));
    return !entry->value ? -ENOMEM : 0;
}

static int ini_expand_all(struct ini *ini, struct diagnostics *diagnostics)
{
    int rc = 0;

    for (unsigned i = 0; i < ini->n_sections; i++)
        for (unsigned j = 0; rc == 0 && j < ini->sections[i].n_entries; j++)
            rc =
                ini_expand_entry(ini, &ini->sections[i], &ini->sections[i].entries[j], diagnostics);
    return rc;
}

/* Set the file and the line of each entry. */
static int ini_locate_all(struct ini *ini, const struct diagnostics *diagnostics)
{
    const char *path = "";

    for (unsigned i = 0; i < ini->n_sections; i++)
        for (unsigned j = 0; j < ini->sections[i].n_entries; j++) {
            struct ini_entry *entry = &ini->sections[i].entries[j];
            struct diagnostics_place at;

            diagnostics_locate(&at, diagnostics, entry->line);
            if (strcmp(path, at.path) != 0)
                path = arena_text(ini->memory->arena, at.path, strlen(at.path));
            if (!path)
                return -ENOMEM;
            entry->path = path;
            entry->path_line = at.path_line;
        }
    return 0;
}

static int ini_parse_text(struct ini *ini, struct ini_text *text, struct diagnostics *diagnostics)
{
    int rc = ini_scan_is_text(text, diagnostics);

    if (rc == 0)
        rc = ini_scan_lines(ini, text, ini->memory->arena, diagnostics);
    if (rc < 0)
        return rc;
    rc = ini_adapter_load(&ini->memory->values, text);
    if (rc < 0) {
        diagnostics_add(diagnostics, DIAGNOSTICS_WHOLE_FILE,
                        "iniparser cannot read it through /proc/self/fd: %s", strerror(-rc));
        return rc;
    }
    ini_adapter_take(ini->memory->values, ini, diagnostics);
    rc = ini_locate_all(ini, diagnostics);
    return rc == 0 ? ini_expand_all(ini, diagnostics) : rc;
}

int ini_load(struct ini **out, const char *path, struct diagnostics *diagnostics)
{
    struct ini_text text;
    struct ini *ini;
    uint64_t digest;
    int rc = ini_include_read(&text, &digest, path, diagnostics);

    if (rc < 0)
        return rc;
    rc = ini_create(&ini);
    if (rc < 0)
        goto err_text;
    ini->digest = digest;
    rc = ini_parse_text(ini, &text, diagnostics);
    if (rc < 0)
        goto err_ini;
    free(text.bytes);
    *out = ini;
    return 0;

err_ini:
    ini_free(ini);
err_text:
    free(text.bytes);
    return rc;
}

struct ini_entry *ini_find(const struct ini_section *section, const char *key)
{
    for (unsigned i = 0; i < section->n_entries; i++) {
        if (strcmp(section->entries[i].key, key) == 0)
            return &section->entries[i];
    }
    return NULL;
}

void ini_free(struct ini *ini)
{
    if (!ini)
        return;
    ini_adapter_free(ini->memory->values);
    arena_release(ini->memory->arena); /* includes ${ini} */
}
