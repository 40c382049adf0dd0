/*
 * daemon/ini: see ini.h.
 *
 * The file is read once, and both readers get the same bytes: nothing can change between the two.
 */
#include "daemon/ini.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "daemon/ini_scan.h"
#include "daemon/ini_values.h"
#include "daemon/report.h"
#include "daemon/whole_file.h"

struct ini_memory {
    struct arena *arena;
    struct ini_values *values; /* which live there */
};

/* On success the caller frees text->bytes. */
static int read_file(struct ini_text *text, const char *path, struct report *report)
{
    struct whole_file file;
    int rc = whole_file_read(&file, path, INI_FILE_BYTES);

    if (rc < 0) {
        if (rc != -ENOMEM)
            report_add(report, REPORT_WHOLE_FILE, "%s", file.problem);
        return rc;
    }
    *text = (struct ini_text){file.bytes, file.len};
    return 0;
}

static int ini_create(struct ini **out)
{
    struct arena *arena;
    struct ini *ini;
    int rc = arena_create(&arena);

    if (rc < 0)
        return rc;
    ini = arena_alloc(arena, 1, sizeof(*ini));
    if (ini == NULL)
        goto err_arena;
    ini->memory = arena_alloc(arena, 1, sizeof(*ini->memory));
    if (ini->memory == NULL)
        goto err_arena;
    ini->memory->arena = arena;
    *out = ini;
    return 0;

err_arena:
    arena_destroy(arena);
    return -ENOMEM;
}

static int parse_text(struct ini *ini, struct ini_text *text, struct report *report)
{
    int rc = ini_scan_is_text(text, report);

    if (rc == 0)
        rc = ini_scan_lines(ini, text, ini->memory->arena, report);
    if (rc < 0)
        return rc;
    rc = ini_values_load(&ini->memory->values, text);
    if (rc < 0) {
        report_add(report, REPORT_WHOLE_FILE, "iniparser cannot read it through /proc/self/fd: %s",
                   strerror(-rc));
        return rc;
    }
    ini_values_take(ini->memory->values, ini, report);
    return 0;
}

int ini_load(struct ini **out, const char *path, struct report *report)
{
    struct ini_text text;
    struct ini *ini;
    int rc = read_file(&text, path, report);

    if (rc < 0)
        return rc;
    rc = ini_create(&ini);
    if (rc < 0)
        goto err_text;
    rc = parse_text(ini, &text, report);
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
    if (ini == NULL)
        return;
    ini_values_free(ini->memory->values);
    arena_destroy(ini->memory->arena); /* of which ${ini} is a piece */
}
