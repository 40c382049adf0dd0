/*
 * config/ini: INI file as sections, keys and values with line numbers.
 *
 * iniparser provides the values. It is lax (silent duplicates, a directory reads as empty, an
 * overlong line ends the file), so config/ini_scan first reads the same bytes strictly.
 */
#ifndef CONFIG_INI_H
#define CONFIG_INI_H

#include <stdbool.h>

#include "base/must.h"

struct diagnostics;

/*
 * iniparser 4.1 stops at a line of 1,023 bytes; a value must leave room for `key = ""` in its line.
 */
#define INI_FILE_BYTES   (32 << 20)
#define INI_LINE_BYTES   1000
#define INI_VALUE_BYTES  INI_LINE_BYTES
#define INI_NAME_BYTES   64 /* of a key, or of a word in a section name */
#define INI_MAX_SECTIONS 8192
#define INI_MAX_ENTRIES  524288

struct ini_entry {
    const char *key;   /* lower case */
    const char *value; /* without outer blanks and quotes */
    unsigned line;
    bool refused; /* invalid, and reported */
};

struct ini_section {
    const char *name; /* between the brackets, lower case */
    unsigned line;
    unsigned n_entries;
    struct ini_entry *entries; /* in file order, unique */
};

struct ini {
    struct ini_section *sections; /* in file order, unique */
    unsigned n_sections;
    unsigned n_refused; /* invalid sections, reported and left out */
    struct ini_memory *memory;
};

/*
 * ini_load(out, path, diagnostics):
 * Read ${path}. Report invalid lines and keep the others. An unreadable or binary file is reported,
 * and ${out} is not set.
 *
 * Thread: any, one at a time (iniparser's error callback is global)
 * Errors: 0 (see diagnostics_count()); -errno from opening or reading; -EISDIR; -EINVAL (not a
 *         regular file, or not text); -EFBIG; -ENOMEM (not reported)
 */
int ini_load(struct ini **out, const char *path, struct diagnostics *diagnostics) NODISCARD;

/* ini_find(section, key): return the entry of ${key}, or NULL. */
struct ini_entry *ini_find(const struct ini_section *section, const char *key);

/* ini_free(ini): free ${ini} or NULL. */
void ini_free(struct ini *ini);

#endif
