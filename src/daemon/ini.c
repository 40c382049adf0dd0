/*
 * daemon/ini: see ini.h.
 *
 * The file is read once. iniparser only loads from a path, so it gets the same bytes through a memfd: nothing
 * can change between the two readings. Of its getters only iniparser_getstring() is used: the others crash
 * when the name is a section's (CVE-2023-33461) and take "4x" for 4.
 */
#include "daemon/ini.h"

#include <errno.h>
#include <iniparser/iniparser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "daemon/ini_scan.h"
#include "daemon/quote.h"
#include "daemon/report.h"
#include "daemon/whole_file.h"

struct ini_memory {
    struct arena *arena;
    dictionary *dictionary; /* the values live in it */
};

/* `section:key`, as iniparser names an entry. */
#define ENTRY_NAME_BYTES (3 * INI_NAME_BYTES + sizeof(" :"))

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

static int write_all(int fd, const struct ini_text *text)
{
    size_t done = 0;

    while (done < text->len) {
        ssize_t n = write(fd, text->bytes + done, text->len - done);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            done += (size_t)n;
    }
    return 0;
}

/* iniparser's own complaints are not needed: ini_scan has found what there is to say. */
static int __attribute__((format(printf, 1, 2))) say_nothing(const char *format, ...)
{
    (void)format;
    return 0;
}

static int load_dictionary(dictionary **out, const struct ini_text *text)
{
    char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
    int fd = memfd_create("reactord.ini", MFD_CLOEXEC);
    int rc;

    if (fd < 0)
        return -errno;
    rc = write_all(fd, text);
    if (rc == 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        iniparser_set_error_callback(say_nothing);
        *out = iniparser_load(path);
        iniparser_set_error_callback(NULL); /* its default */
        if (*out == NULL)
            rc = -EIO;
    }
    close(fd);
    return rc;
}

/* Put iniparser's value into ${entry}; is it the one the scanner saw? */
static bool take_value(struct ini_entry *entry, const char *section, const dictionary *d)
{
    char name[ENTRY_NAME_BYTES];
    const char *value;

    snprintf(name, sizeof(name), "%s:%s", section, entry->key);
    value = iniparser_getstring(d, name, NULL);
    if (value == NULL || strcmp(value, entry->value) != 0)
        return false;
    entry->value = value;
    return true;
}

static void take_values(struct ini *ini, struct report *report)
{
    const dictionary *d = ini->memory->dictionary;
    size_t expected = ini->n_sections;

    for (unsigned i = 0; i < ini->n_sections; i++) {
        struct ini_section *section = &ini->sections[i];

        for (unsigned j = 0; j < section->n_entries; j++) {
            struct ini_entry *entry = &section->entries[j];

            if (entry->refused)
                continue;
            expected++;
            if (take_value(entry, section->name, d))
                continue;
            entry->refused = true;
            report_add(report, entry->line, "[%s] %s: iniparser reads another value than %s",
                       section->name, entry->key, quote_text(&(struct quote){{0}}, entry->value));
        }
    }
    if ((size_t)d->n != expected)
        report_add(report, REPORT_WHOLE_FILE, "iniparser reads %d names where there are %zu", d->n,
                   expected);
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
    rc = load_dictionary(&ini->memory->dictionary, text);
    if (rc < 0) {
        report_add(report, REPORT_WHOLE_FILE, "iniparser cannot read it through /proc/self/fd: %s",
                   strerror(-rc));
        return rc;
    }
    take_values(ini, report);
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
    if (ini->memory->dictionary != NULL)
        iniparser_freedict(ini->memory->dictionary);
    arena_destroy(ini->memory->arena); /* of which ${ini} is a piece */
}
