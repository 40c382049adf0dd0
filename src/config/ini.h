/*
 * config/ini: an INI file as sections, keys and values, with the line of each.
 *
 * The values are those that iniparser reads. iniparser is lax (a duplicate wins silently, a
 * directory is an empty file, a line that is too long ends it all), so config/ini_scan reads the
 * same bytes first, by strict rules, and every value the two do not agree on is a problem of the
 * file.
 */
#ifndef CONFIG_INI_H
#define CONFIG_INI_H

#include <stdbool.h>

#include "base/must.h"

struct diagnostics;

/*
 * What a file may have at most. iniparser 4.1 ends at a line of 1023 bytes; a value is shorter than
 * a line so that it can always be written again as `key = "value"`.
 */
#define INI_FILE_BYTES   (32 << 20)
#define INI_LINE_BYTES   1000
#define INI_VALUE_BYTES  900
#define INI_NAME_BYTES   64 /* of a key, and of either word of a section's name */
#define INI_MAX_SECTIONS 8192
#define INI_MAX_ENTRIES  524288

struct ini_entry {
    const char *key;   /* lower case */
    const char *value; /* blanks around it and quotes removed; "" when there is none */
    unsigned line;
    bool refused; /* the value is already in the report, and not to be used */
};

struct ini_section {
    const char *name; /* what stands between the brackets, in lower case */
    unsigned line;
    unsigned n_entries;
    struct ini_entry *entries; /* in the order of the file, no key twice */
};

struct ini {
    struct ini_section *sections; /* in the order of the file, no name twice */
    unsigned n_sections;
    unsigned n_refused; /* sections that are in the report and not here */
    struct ini_memory *memory;
};

/*
 * ini_load(out, path, report):
 * Read the file at ${path}. What is wrong with a line goes to ${report}, and the rest of the file
 * is there to be checked further; a file that cannot be read, or is no text, goes to ${report} too
 * and there is no ${out}.
 *
 * Thread: main, one call at a time (iniparser has one error callback in the process)
 * Owns:   the caller owns ${out}, and frees it with ini_free()
 * Errors: 0 (ask diagnostics_count()); -errno from opening or reading; -EISDIR; -EINVAL (not a
 *         regular file, or not text); -EFBIG; -ENOMEM (not in ${report})
 */
int ini_load(struct ini **out, const char *path, struct diagnostics *diagnostics) NODISCARD;

/*
 * ini_find(section, key):
 * The line that gives ${key}, or NULL.
 *
 * Thread: the user of the file
 * Owns:   lives as long as the file
 * Errors: NULL
 */
struct ini_entry *ini_find(const struct ini_section *section, const char *key);

/*
 * ini_free(ini):
 * Free it and all its texts; NULL is allowed.
 *
 * Thread: the user of the file
 */
void ini_free(struct ini *ini);

#endif
